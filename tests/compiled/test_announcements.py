"""Every compilation is announced in plain words."""

import gc
import os
import re
import sys
from contextlib import nullcontext
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import event
from numba.extending import overload

import pacplan
from kernel_files import ASK_KINDS, finish, folder_of_kernels, fresh_kernel, start
from pacplan.algorithms import mdp_gape, stop, uct
from pacplan.algorithms.mdp_gape.sweep import sweep
from pacplan.bounds.bernoulli import kl_lower
from pacplan.compiled import announcements
from pacplan.compiled.jit import kernel
from pacplan.engine.episodes import play
from pacplan.engine.steps import work
from pacplan.models.handles import Handle
from terminal import on_terminal, plain

folder = pytest.fixture(folder_of_kernels)
fresh = pytest.fixture(fresh_kernel)


LISTEN = "import logging; logging.basicConfig()\n"
# A table of a user's program, in whose rows something is compiled.
TABLE = (
    ASK_KINDS.replace("for kind", "print('rows')\nfor kind").replace(
        "    assert", "    print(kind, end=' ', flush=True)\n    assert"
    )
    + "    print('is', expected)\nprint('end')\n"
)
PRINTED = "rows\nconstant is 30\nnested is 65\nend\n"


@pytest.mark.parametrize("listen", ["", LISTEN], ids=["nobody", "a logger"])
def test_every_compilation_is_announced(folder, listen):
    kinds = ("constant", "nested")
    output, messages = finish(start(folder, listen + TABLE, *kinds))
    assert output == PRINTED, "messages go to the error stream"
    lines = messages.splitlines()
    for line, words in zip(lines, ("a constant model", "a nested array model"), strict=True):
        told = rf"pacplan: compiling run of handled for {words} took \d+\.\d s; later runs start warm"
        assert re.search(f"{told}$", line)
    assert finish(start(folder, listen + TABLE, *kinds)) == (PRINTED, "")


def on_a_terminal(folder, script):
    code, shown = on_terminal(
        100,
        "-c",
        script,
        "constant",
        "nested",
        command=sys.executable,
        NUMBA_CACHE_DIR=str(folder / "cache"),
        PYTHONPATH=os.pathsep.join([str(folder), str(Path(pacplan.__file__).parents[1])]),
    )
    assert code == 0, shown
    return shown


def test_on_a_terminal_messages_vanish_from_a_users_table(folder):
    shown = on_a_terminal(folder, TABLE)
    meanwhile = re.findall(r"\x1b7(.*?)\x1b8\x1b\[J", shown)
    assert [text.removesuffix(" ...") for text in meanwhile] == [
        "pacplan: compiling run of handled for a constant model",
        "pacplan: compiling run of handled for a nested array model",
    ]
    left = re.sub(r"\x1b7.*?\x1b8\x1b\[J", "", shown)
    assert left.startswith(PRINTED)
    told = left.removeprefix(PRINTED).splitlines()
    assert len(told) == 2 and all("took" in line for line in told), "the times come in the end"
    assert on_a_terminal(folder, TABLE) == PRINTED


def test_on_a_terminal_a_logger_gets_the_messages(folder):
    shown = on_a_terminal(folder, LISTEN + TABLE)
    assert "\x1b" not in shown and shown.count("WARNING:pacplan:pacplan: compiling") == 2
    quiet = "import logging; logging.getLogger('pacplan').setLevel(logging.ERROR)\n"
    for file in (folder / "cache" / "pacplan").iterdir():
        file.unlink()
    assert on_a_terminal(folder, quiet + TABLE) == PRINTED


BAR = """
import sys, time
from pacplan.views.bar import bar
from handled import KINDS, run
with bar(2, 0, "things", show=True) as advance:
    for kind in sys.argv[1:]:
        run(KINDS[kind][0], 10)
        advance(1)
"""


def test_a_progress_bar_is_not_written_across(folder):
    shown = on_a_terminal(folder, BAR)
    assert "\x1b7" not in shown
    lines = [line for line in plain(shown).splitlines() if "compiling" in line]
    assert len(lines) == 2
    for line in lines:
        assert re.fullmatch(r"\s*pacplan: compiling run of handled .* took .* start warm\s*", line)


def test_jitted_simulators_are_announced_once(caplog):
    @numba.njit
    def stroll(state, action, rng):
        return state + action, 0.5, False

    model = pacplan.Simulator(stroll, actions=2)
    for _ in range(2):
        model.open(np.random.SeedSequence(0)).close()
    (record,) = caplog.records
    assert re.fullmatch(r"pacplan: compiling the simulator stroll took .* s", record.getMessage())
    assert not announcements.compilations[-1].is_kernel


@pytest.mark.versions
def test_planners_are_announced_in_plain_words():
    def title(function, *classes):
        kinds = tuple(numba.types.NamedTuple((), kind) for kind in classes)
        data = {"dispatcher": function, "args": kinds}
        return announcements._title(event.Event("numba:compile", event.EventStatus.START, data))

    assert title(play, uct.Search, Handle) == "uct"
    assert title(work, stop.Draws, Handle) == "stop"
    assert title(sweep, mdp_gape.records.Search, Handle) == "sweep of mdp_gape"
    assert title(kl_lower) == "kl_lower of bernoulli"


@pytest.mark.versions
@pytest.mark.parametrize("collecting", [True, False])
@pytest.mark.parametrize("fails", [False, True])
def test_the_garbage_collector_rests_while_a_kernel_is_compiled(collecting, fails):
    during = []

    def asked(n):
        """Answered by Numba while it compiles."""

    @overload(asked)
    def _answer(n):
        during.append(gc.isenabled())
        return None if fails else lambda n: n

    @kernel
    def run(n):
        return asked(n)

    was = gc.isenabled()
    try:
        (gc.enable if collecting else gc.disable)()
        with pytest.raises(numba.TypingError) if fails else nullcontext():
            run(1)
        after = gc.isenabled()
    finally:
        (gc.enable if was else gc.disable)()
    assert during and not any(during)
    assert after == collecting
