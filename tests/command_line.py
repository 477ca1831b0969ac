"""The command, run in this process or in one of its own, on models of a user's."""

import io
import re
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from inspect import signature
from pathlib import Path

import pacplan
from pacplan.cli import main

COMMAND = Path(sys.executable).with_name("pacplan")
FAST = ("--epsilon", "1", "--delta", "0.1", "--gamma", "0.7", "--seed", "0")

MODELS = '''
import time
from pathlib import Path

import numpy as np
import pacplan

table = pacplan.TabularMDP(np.full((3, 2, 3), 1 / 3), np.full((3, 2), 0.5), terminal=[2])


def stay(state, action, rng):
    return state, 0.5, False


def make(successors=1, initial=None, word=None):
    """A model that says where it was asked to plan from, through the names of its actions."""
    def actions(state):
        return [f"{type(state).__name__} {state}", f"word {word!r}"]
    return pacplan.Simulator(stay, actions=actions, successors=successors, initial=initial)


def odd_names():
    names = ["[red]", "[/up]", "two words", (0, 1)]
    return pacplan.Simulator(stay, actions=lambda state: names, successors=1, initial=0)


def too_rich(state, action, rng):
    return state, 2.0, False


broken = pacplan.Simulator(too_rich, actions=2, successors=1, initial="vault")


def raises(state, action, rng):
    raise ZeroDivisionError("own words")


raising = pacplan.Simulator(raises, actions=2, successors=1, initial=0)


def broken_factory():
    raise RuntimeError("no model today")


def slow_step(state, action, rng):
    Path("started").touch()
    time.sleep(0.01)
    return state, 0.5, False


slow = pacplan.Simulator(slow_step, actions=2, successors=1, initial=0)


def slow_factory():
    Path("started").touch()
    time.sleep(3600)


def ctrl_c(calls, last):
    """Ctrl-C is pressed during the call of that number, the first time that it is made."""
    calls.append(0)
    if len(calls) == last and not Path("pressed").exists():
        import os
        import signal

        Path("pressed").touch()
        os.kill(os.getpid(), signal.SIGINT)


def pressing(last=200):
    calls = []

    def step(state, action, rng):
        ctrl_c(calls, last)
        return state, 0.5, False

    return pacplan.Simulator(step, actions=2, successors=1, initial=0)


def walking(last):
    """A walk on a line."""
    calls = []

    def step(state, action, rng):
        ctrl_c(calls, last)
        place = state + (1 if action == (rng.random() < 0.8) else -1)
        return place, float(place > 0), False

    return pacplan.Simulator(step, actions=2, initial=0)


bounds = (lambda state, h: 0.0, lambda state, h: 5.0)
flat = pacplan.bounds.Thresholds(np.ones_like, np.ones_like, proven=False, name="flat")


number = 3
game = pacplan.envs.game_tree([[0.6, 0.2], [0.5, 0.9]])


def environment():
    import gymnasium
    return gymnasium.make("FrozenLake-v1")
'''


# Arguments of planners and plans as Python takes them; after --option they are the command's.
_NAMES = {name for cls in pacplan.planners.values() for name in signature(cls).parameters}
_NAMES |= {"state", "budget", "time_limit", "memory_limit", "checkpoint", "every", "callback"}
PYTHON_ARGUMENTS = re.compile(rf"(?<!--option )(?<![-\w])(?:{'|'.join(_NAMES)})=")


def folder_of_models(tmp_path, monkeypatch):
    """A fixture: a current folder with a user's module, whose name no other test has imported."""
    name = "user_" + re.sub(r"\W", "_", tmp_path.name)
    (tmp_path / f"{name}.py").write_text(MODELS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield name
    sys.modules.pop(name, None)


class Outcome:
    """What a run left behind; the note that kernels are being compiled is no part of it."""

    def __init__(self, code, stdout, stderr):
        self.code = code
        self.stdout = stdout
        self.stderr = "".join(
            line for line in stderr.splitlines(keepends=True) if "pacplan: compiling" not in line
        )

    @property
    def output(self):
        return self.stdout + self.stderr

    @property
    def words(self):
        """The output with line breaks and runs of blanks made one blank."""
        return " ".join(self.stdout.split())


def run(*arguments):
    stdout, stderr = io.StringIO(), io.StringIO()
    try:
        with redirect_stdout(stdout), redirect_stderr(stderr):
            main([str(argument) for argument in arguments])
    except SystemExit as ended:
        return Outcome(int(ended.code), stdout.getvalue(), stderr.getvalue())


def run_process(*arguments, cwd=None):
    done = subprocess.run(
        [COMMAND, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, timeout=600
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def assert_refused(outcome, code, *words):
    """Nothing on stdout, one line on stderr that has the words, and this exit code."""
    assert outcome.stdout == ""
    assert "Traceback" not in outcome.stderr
    assert len(outcome.stderr.splitlines()) == 1
    assert outcome.stderr.startswith("pacplan: ")
    for word in words:
        assert word in outcome.stderr
    # What a planner's name is followed by, in brackets, describes the planner.
    assert not PYTHON_ARGUMENTS.search(re.sub(r"\w+\(.*?\)", "", outcome.stderr))
    assert outcome.code == code
