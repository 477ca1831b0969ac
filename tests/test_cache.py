"""Compiled kernels on disk: whatever happens to files and folders, plans go on and are right."""

import errno
import gc
import importlib
import json
import os
import random
import re
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from pathlib import Path

import numba
import pytest
from numba.core import compiler, event, serialize
from numba.extending import overload

import pacplan
from pacplan.algorithms import bracket, mdp_gape, stop, uct
from pacplan.algorithms.mdp_gape.sweep import sweep
from pacplan.bounds.bernoulli import kl_lower
from pacplan.compiled import announcements, cache, sources
from pacplan.compiled.jit import kernel
from pacplan.compiled.private import warned
from pacplan.engine.episodes import play
from pacplan.models.bounded import BoundedHandle
from pacplan.models.simulator import PythonHandle
from pacplan.models.tabular import TabularHandle

needs_owners = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs owners of files")
needs_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away"
)
SOMEBODY_ELSE = 54321

KERNEL = """
from pacplan.compiled.jit import inlined, kernel
from ingredient import FACTOR

@inlined
def times(k):
    return FACTOR * k

@kernel
def run(n):
    total = 0
    for k in range(n):
        total += times(k)
    return total
"""
VALUE = 7 * 45  # of run(10), if FACTOR is 7

HANDLES = """
from typing import Any, NamedTuple
import numpy as np
from pacplan.compiled.jit import kernel
from pacplan.compiled.questions import answers
from pacplan.models import handles

class ConstantHandle(NamedTuple):
    value: int

class ArrayHandle(NamedTuple):
    values: Any

class NestedHandle(NamedTuple):
    inner: Any
    more: int

@answers(handles.action_count, ConstantHandle)
def constant(handle: Any, state: Any, h: Any) -> Any:
    return handle.value

@answers(handles.action_count, ArrayHandle)
def array(handle: Any, state: Any, h: Any) -> Any:
    return handle.values[state]

@answers(handles.action_count, NestedHandle)
def nested(handle: Any, state: Any, h: Any) -> Any:
    return handles.action_count(handle.inner, state, h) + handle.more

@kernel
def run(handle, states):
    total = 0
    for state in range(states):
        total += handles.action_count(handle, state, 0)
    return total

KINDS = {
    "constant": (ConstantHandle(3), 30),
    "nested": (NestedHandle(ArrayHandle(np.arange(10)), 2), 65),
    "doubly": (NestedHandle(NestedHandle(ConstantHandle(1), 1), 1), 30),
}
"""
ASK = """
import json, sys
from module import run
print(json.dumps([run(10), sum(run.stats.cache_hits.values())]))
"""
ASK_KINDS = """
import sys
from handled import KINDS, run
for kind in sys.argv[1:]:
    handle, expected = KINDS[kind]
    assert run(handle, 10) == expected, kind
"""


def start(folder, script, *arguments, prefix=(), **environment):
    """A Python process that finds modules in `folder` and keeps its kernels in `folder`/cache."""
    paths = [str(folder), str(Path(pacplan.__file__).parents[1])]
    settings = {"NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": os.pathsep.join(paths)}
    command = [script] if isinstance(script, Path) else ["-c", script]
    return subprocess.Popen(
        [*prefix, sys.executable, *command, *arguments],
        env=os.environ | settings | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    with process:
        output, messages = process.communicate()
    assert process.returncode == 0, messages
    return output, messages


def ask(folder, script=ASK, **settings):
    """What `run(10)` gives in a process, whether it was found in the cache, and the log."""
    output, messages = finish(start(folder, script, **settings))
    value, hits = json.loads(output)
    assert (hits == 0) == ("compiling run of module" in messages)
    return value, bool(hits), [line for line in messages.splitlines() if "compiling" not in line]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "module.py").write_text(KERNEL)
    (tmp_path / "ingredient.py").write_text("FACTOR = 7\n")
    (tmp_path / "handled.py").write_text(HANDLES)
    return tmp_path


@pytest.fixture
def fresh(folder, monkeypatch, caplog):
    """Import the kernel anew in this process and call it: its value, whether it was loaded, the log.

    Something else may happen before it is called.
    """
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder / "cache"))

    def again(meanwhile=lambda: None):
        warned.clear()
        caplog.clear()
        for name in ("module", "ingredient"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        importlib.invalidate_caches()
        run = importlib.import_module("module").run
        meanwhile()
        value = run(10)
        messages = [record.getMessage() for record in caplog.records]
        loaded = bool(run.stats.cache_hits)
        assert loaded != any("compiling run of module" in message for message in messages)
        return value, loaded, [message for message in messages if "compiling" not in message]

    return again


def kernel_file(folder):
    (path,) = (folder / "cache" / "pacplan").glob("module.run-*.kernel")
    return path


def everything(folder):
    return sorted(path.name for path in (folder / "cache").rglob("*") if path.is_file())


# Processes and threads


def test_cold_processes_do_not_disturb_each_other(folder):
    kinds = ["constant", "nested", "doubly"]
    for process in [start(folder, ASK_KINDS, kind) for kind in 2 * kinds]:
        assert finish(process)[0] == ""
    assert len(everything(folder)) == 3
    assert finish(start(folder, ASK_KINDS, *kinds)) == ("", "")


@pytest.mark.versions
def test_threads_compile_a_kernel_once(folder, fresh, caplog):
    fresh()
    kernel_file(folder).unlink()
    sys.modules.pop("module")
    run = importlib.import_module("module").run
    caplog.clear()
    values, barrier = [], threading.Barrier(8)

    def call():
        barrier.wait()
        values.append(run(10))

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert values == [VALUE] * 8
    assert len(caplog.records) == 1
    assert fresh() == (VALUE, True, [])


def test_killed_while_writing(folder):
    kill = "import os, signal; os.fsync = lambda number: os.kill(os.getpid(), signal.SIGKILL)"
    process = start(folder, kill + ASK)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    (left,) = everything(folder)
    assert left.endswith(".unfinished")
    place = folder / "cache" / "pacplan"
    shutil.copy(place / left, place / f"older{left}")
    os.utime(place / f"older{left}", (time.time() - 7200,) * 2)
    assert ask(folder) == (VALUE, False, [])
    assert set(everything(folder)) == {left, kernel_file(folder).name}, "one may still be at work"


# Files


def damages(content):
    random_numbers = random.Random(0)
    header = len(content.partition(b"\n")[0]) + 65
    for place in [*range(0, header, 4), *random_numbers.sample(range(header, len(content)), 40)]:
        flipped = bytearray(content)
        flipped[place] ^= 1 << random_numbers.randrange(8)
        yield f"bit flipped at {place}", bytes(flipped)
    for length in [
        0,
        1,
        16,
        17,
        48,
        header - 1,
        header,
        header + 1,
        len(content) // 2,
        len(content) - 1,
    ]:
        yield f"cut to {length}", content[:length]
    yield "longer", content + b"\0"
    yield "a foreign pickle", serialize.dumps(("numba", {}))


def test_damage_is_seen_wherever_it_is(folder, fresh):
    assert fresh() == (VALUE, False, [])
    path = kernel_file(folder)
    content = path.read_bytes()
    identity = content[len(cache._MAGIC) : len(cache._MAGIC) + 32]
    assert content.endswith(cache._read(path, identity))
    for name, damaged in damages(content):
        path.write_bytes(damaged)
        try:
            cache._read(path, identity)
        except cache.UnusableError:
            continue
        pytest.fail(name)


@pytest.mark.parametrize("damage", ["flipped", "cut", "empty", "pickle", "other", "fifo", "link"])
def test_damaged_files_are_replaced(folder, fresh, damage):
    assert fresh() == (VALUE, False, [])
    path = kernel_file(folder)
    content = path.read_bytes()
    path.unlink()
    if damage == "fifo":
        os.mkfifo(path)
    elif damage == "link":
        (folder / "elsewhere").write_bytes(content)
        path.symlink_to(folder / "elsewhere")
    else:
        flipped = content[:-100] + bytes([content[-100] ^ 1]) + content[-99:]
        other = content.replace(content[17:49], bytes(32))
        contents = {"flipped": flipped, "cut": content[:3000], "empty": b"", "other": other}
        path.write_bytes(contents.get(damage, serialize.dumps([1, 2])))
    value, loaded, (message,) = fresh()
    assert (value, loaded) == (VALUE, False)
    assert str(path) in message and "delete" in message
    assert stat.S_ISREG(path.lstat().st_mode)
    assert fresh() == (VALUE, True, [])


def test_a_damaged_file_in_real_processes(folder):
    assert ask(folder) == (VALUE, False, [])
    path = kernel_file(folder)
    path.write_bytes(path.read_bytes()[:5000])
    value, loaded, (message,) = ask(folder)
    assert (value, loaded) == (VALUE, False) and str(path) in message


def test_a_folder_in_place_of_a_file(folder, fresh):
    fresh()
    path = kernel_file(folder)
    path.unlink()
    path.mkdir()
    for _ in range(2):
        value, loaded, (message,) = fresh()
        assert (value, loaded) == (VALUE, False) and str(path) in message
    path.rmdir()
    assert fresh() == (VALUE, False, [])
    assert fresh() == (VALUE, True, [])


@needs_owners
def test_a_file_that_others_can_write_to_is_replaced(folder, fresh):
    fresh()
    path = kernel_file(folder)
    path.chmod(0o666)
    value, loaded, (message,) = fresh()
    assert (value, loaded) == (VALUE, False) and "others can write" in message
    assert fresh() == (VALUE, True, [])


def test_a_file_that_vanishes_is_written_again(folder, fresh, monkeypatch):
    fresh()
    read = cache._read

    def read_too_late(path, identity):
        path.unlink()
        return read(path, identity)

    with monkeypatch.context() as patch:
        patch.setattr(cache, "_read", read_too_late)
        assert fresh() == (VALUE, False, [])
    assert fresh() == (VALUE, True, [])


def test_what_nobody_uses_is_removed(folder, fresh, monkeypatch):
    fresh()
    path = kernel_file(folder)
    place, now = path.parent, time.time()
    days = {"old": 40, "older": 20, "newer": 10, "newest": 1}
    for name, age in days.items():
        file = place / f"{name}.kernel"
        file.write_bytes(bytes(1000))
        os.utime(file, (now - age * 86400,) * 2)
    (place / "notes.txt").write_text("not ours")
    path.unlink()
    fresh()
    names = {"older.kernel", "newer.kernel", "newest.kernel", "notes.txt", path.name}
    assert set(everything(folder)) == names
    monkeypatch.setattr(cache, "_MOST_BYTES", 2500)
    path.unlink()
    fresh()
    assert set(everything(folder)) == names - {"older.kernel"}
    os.utime(path, (now - 20 * 86400,) * 2)
    assert fresh() == (VALUE, True, [])
    assert path.stat().st_mtime > now - 60, "it is in use"


# Folders


def refused(outcome, *words):
    """The plan went on without files, and one line says why and what to do."""
    value, loaded, messages = outcome
    assert (value, loaded) == (VALUE, False)
    (message,) = messages
    for word in (*words, "NUMBA_CACHE_DIR"):
        assert word in message


@pytest.mark.skipif(os.name == "nt", reason="needs limits on processes")
def test_a_file_that_is_too_large(folder):
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))\n"
    refused(ask(folder, limit + ASK), "File too large", str(folder / "cache"))
    assert everything(folder) == []


@needs_root
def test_a_full_disk(folder):
    cache = folder / "cache"
    cache.mkdir()
    mount = f"mount -t tmpfs -o size=8k,mode=700 none {cache} && exec "
    shell = ["unshare", "-m", "sh", "-c", mount + '"$0" "$@"']
    if shutil.which("unshare") is None or subprocess.run([*shell, "true"], check=False).returncode:
        pytest.skip("no way to have a small disk here")
    refused(ask(folder, prefix=shell), "No space left", str(cache))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EIO, errno.EACCES])
def test_writing_fails(folder, fresh, monkeypatch, number):
    def fail(*_):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        refused(fresh(), os.strerror(number))
    assert everything(folder) == [], "nothing is left of what was not written"
    assert fresh() == (VALUE, False, [])


@pytest.mark.skipif(sys.platform != "linux", reason="needs a folder that root cannot write to")
def test_a_folder_that_cannot_be_made(fresh, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/proc")
    refused(fresh(), "/proc/pacplan")


def test_a_file_in_place_of_a_folder(folder, fresh):
    (folder / "cache").write_text("not a folder")
    refused(fresh(), "ot a ")


def test_the_folder_is_the_users_and_falls_back(folder, fresh, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    home, temporary = folder / "home", folder / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(cache, "user_cache_path", lambda name: home / "cache" / name)
    monkeypatch.setattr(cache.tempfile, "gettempdir", lambda: str(temporary))
    assert fresh() == (VALUE, False, [])
    assert list((home / "cache" / "pacplan").iterdir()) and not list(temporary.iterdir())
    shutil.rmtree(home)
    home.write_text("not a folder")
    refused(fresh(), str(home), f"kept in {temporary}")
    assert fresh() == (VALUE, True, [])


def test_no_home_and_no_folder_for_temporary_files(fresh, monkeypatch):
    def none():
        raise FileNotFoundError("no usable temporary directory")

    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setattr(cache, "user_cache_path", lambda name: Path("~/.cache") / name)
    monkeypatch.setattr(cache.tempfile, "gettempdir", none)
    refused(fresh(), "any folder")


@needs_owners
def test_folders_are_made_for_the_user_alone(folder, fresh):
    before = os.umask(0)
    try:
        fresh()
    finally:
        os.umask(before)
    for place in (folder / "cache", folder / "cache" / "pacplan", kernel_file(folder)):
        assert place.stat().st_mode & 0o077 == 0


@needs_owners
@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o770, 0o702])
def test_a_folder_that_others_can_write_to_is_not_trusted(folder, fresh, mode):
    fresh()
    place = folder / "cache" / "pacplan"
    place.chmod(mode)
    refused(fresh(), f"others can write to {place}")
    place.chmod(0o755)
    assert fresh() == (VALUE, True, [])


@needs_owners
def test_others_may_write_beside_the_folder_only_under_a_sticky_bit(folder, fresh):
    fresh()
    place = folder / "cache"
    place.chmod(0o777)
    refused(fresh(), f"others can write to {place}")
    place.chmod(0o1777)
    assert fresh() == (VALUE, True, [])


@needs_owners
def test_the_users_own_links_are_trusted(folder, fresh):
    (folder / "elsewhere" / "kernels").mkdir(parents=True, mode=0o700)
    (folder / "cache").mkdir()
    (folder / "cache" / "pacplan").symlink_to("../elsewhere/../elsewhere/kernels")
    assert fresh() == (VALUE, False, [])
    assert fresh() == (VALUE, True, [])
    (folder / "elsewhere").chmod(0o777)
    refused(fresh(), f"others can write to {folder / 'elsewhere'}")


@needs_owners
def test_a_link_to_itself(folder, fresh):
    (folder / "cache").symlink_to("cache")
    refused(fresh(), "link")


@needs_root
@pytest.mark.parametrize("given", ["cache", "cache/pacplan"])
def test_somebody_elses_folder_is_not_trusted(folder, fresh, given):
    fresh()
    os.chown(folder / given, SOMEBODY_ELSE, -1)
    refused(fresh(), f"{folder / given} belongs to another user")


@needs_root
def test_somebody_elses_link_is_not_trusted(folder, fresh):
    fresh()
    (folder / "cache").rename(folder / "mine")
    (folder / "cache").symlink_to("mine")
    assert fresh() == (VALUE, True, [])
    os.lchown(folder / "cache", SOMEBODY_ELSE, -1)
    refused(fresh(), f"{folder / 'cache'} is a link of another user")


@needs_root
def test_somebody_elses_file_is_replaced(folder, fresh):
    fresh()
    os.chown(kernel_file(folder), SOMEBODY_ELSE, -1)
    value, loaded, (message,) = fresh()
    assert (value, loaded) == (VALUE, False) and str(kernel_file(folder)) in message
    assert fresh() == (VALUE, True, [])


# Sources


# An edit changes the size: Python itself takes files of the same second and size for the same.
EDITED = KERNEL.replace("FACTOR * k", "FACTOR * k + 1")


def test_an_edited_kernel_of_the_users_own_is_compiled_again(folder):
    assert ask(folder) == (VALUE, False, [])
    (folder / "module.py").write_text(EDITED)
    assert ask(folder) == (VALUE + 10, False, [])


@pytest.mark.versions
def test_so_is_one_that_uses_an_edited_module(folder, fresh):
    assert fresh() == (VALUE, False, [])
    (folder / "unrelated.py").write_text("x = 1\n")
    assert fresh() == (VALUE, True, [])
    (folder / "ingredient.py").write_text("FACTOR = 10\n")
    assert fresh() == (450, False, [])


@pytest.mark.parametrize(
    ("name", "text", "later"),
    [("module.py", EDITED, VALUE + 10), ("ingredient.py", "FACTOR = 10\n", 450)],
)
def test_a_file_edited_after_it_was_imported(folder, fresh, name, text, later):
    assert fresh(lambda: (folder / name).write_text(text)) == (VALUE, False, [])
    assert everything(folder) == [], "no file tells what was compiled"
    assert fresh() == (later, False, [])


def test_a_kernel_defined_after_its_file_was_edited(folder, fresh):
    path = folder / "module.py"
    text = "from pacplan.compiled.jit import kernel\ndef make():\n    @kernel\n    def run(n):\n"
    text += "        return n"
    path.write_text(f"{text}\n    return run\nrun = make()\n")

    def edit():
        path.write_text(f"{text} + 1\n    return run\nrun = make()\n")
        assert sys.modules["module"].make()(10) == 10

    assert fresh(edit) == (10, False, [])
    assert everything(folder) == []
    assert fresh() == (11, False, [])


SOLVE = """
import logging
from pacplan.bounds.bernoulli import kl_lower
print(kl_lower(0.5, 0.1))
"""


def test_only_what_a_kernel_can_contain_makes_it_compile_again(folder):
    package = folder / "pacplan"
    shutil.copytree(
        Path(pacplan.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )

    def compiles():
        return "compiling kl_lower of bernoulli" in finish(start(folder, SOLVE))[1]

    def edit(name):
        with open(package / name, "a") as file:
            file.write("\n# Another state\n")

    assert compiles()
    for name in ("cli.py", "views/outline.py", "views/__init__.py", "algorithms/bracket/episode.py"):
        edit(name)
    assert not compiles()
    edit("bounds/bernoulli.py")
    assert compiles()


def kernels():
    for name, module in sorted(sys.modules.items()):
        if name.startswith("pacplan."):
            for function in vars(module).values():
                if isinstance(getattr(function, "_cache", None), cache.KernelCache):
                    yield function.py_func


def called(function, seen):
    """The functions that a kernel names, and those that they name."""
    if function not in seen:
        seen.add(function)
        for name in function.__code__.co_names:
            value = function.__globals__.get(name)
            value = getattr(value, "py_func", value)
            if hasattr(value, "__code__") and value.__module__.startswith("pacplan"):
                called(value, seen)
    return seen


def test_the_sources_of_a_kernel_are_those_of_all_that_it_calls(monkeypatch):
    monkeypatch.setattr(sources, "_digest", lambda path: hashed.append(path) or "")
    handle_classes = list(sources._chosen)
    assert len(handle_classes) >= 4
    count = 0
    for function in kernels():
        hashed = []
        assert sources.kernel_digest(function, handle_classes)
        names = {os.path.realpath(path) for path in hashed}
        for part in called(function, set()):
            assert os.path.realpath(part.__code__.co_filename) in names, (function, part)
        modules = {Path(path).relative_to(Path(pacplan.__file__).parent).as_posix() for path in hashed}
        assert {"models/tabular.py", "models/simulator.py", "compiled/jit.py"} <= modules
        assert not modules & {"cli.py", "agent.py", "__init__.py", "views/explorer.py"}, function
        count += 1
    assert count >= 20


def test_what_is_registered_for_the_class_of_an_argument_counts(folder, monkeypatch):
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(sources, "_digest", lambda path: hashed.append(path) or "")
    handled = importlib.import_module("handled")
    function = next(kernels())
    for kinds, expected in (([handled.ArrayHandle], True), ([], False)):
        hashed = []
        sources.kernel_digest(function, kinds)
        assert (str(folder / "handled.py") in hashed) == expected
    monkeypatch.delitem(sys.modules, "handled")


def test_functions_without_a_file_are_not_kept(folder):
    output, messages = finish(start(folder, KERNEL + "print(run(10))"))
    assert output == f"{VALUE}\n"
    assert "compiling run of __main__" in messages and "warm" not in messages
    assert everything(folder) == []


def test_what_else_changes_the_code(folder, fresh, monkeypatch):
    fresh()
    for setting, value in (("BOUNDSCHECK", 1), ("OPT", 1)):
        monkeypatch.setattr(numba.config, setting, value)
        assert fresh() == (VALUE, False, [])
        assert fresh() == (VALUE, True, [])
    assert len(everything(folder)) == 3


def test_values_that_a_function_encloses(fresh, folder):
    (folder / "module.py").write_text(
        "from pacplan.compiled.jit import kernel\n"
        "def make(step):\n"
        "    @kernel\n"
        "    def run(n):\n"
        "        return n + step\n"
        "    return run\n"
        "run, other = make(1), make(2)\n"
    )
    for loaded in (False, True):
        assert fresh() == (11, loaded, [])
        assert sys.modules["module"].other(10) == 12


PLAN = """
import pacplan
from flat_monte_carlo import FlatMonteCarlo
print(FlatMonteCarlo(gamma=0.7, horizon=2).plan(pacplan.envs.garnet(seed=0), seed=0, budget=100))
"""


def test_a_planner_outside_the_package(folder):
    """Compiled once, imported or run as a script; and again when its file is edited."""
    path = folder / "flat_monte_carlo.py"
    text = (Path(__file__).parent.parent / "examples" / path.name).read_text()
    path.write_text(text)

    def compiles(script):
        output, messages = finish(start(folder, script))
        return "compiling episodes.play" in messages, re.findall(r"^>? +\d.*$", output, re.MULTILINE)

    for script in (PLAN, path):
        first, found = compiles(script)
        again, same = compiles(script)
        assert (first, again) == (True, False)
        assert found == same
    _, before = compiles(PLAN)
    path.write_text(text.replace("].n <", "].n >"))
    compiled, after = compiles(PLAN)
    assert compiled
    assert after != before
    assert not compiles(PLAN)[0]


# Announcements


def test_every_compilation_is_announced(folder):
    log = "import logging; logging.basicConfig(level=logging.INFO)\n"
    kinds = ("constant", "nested")
    lines = finish(start(folder, log + ASK_KINDS, *kinds))[1].splitlines()
    assert len(lines) == 4
    for line, words in zip(lines[::2], ("a constant model", "a nested array model"), strict=True):
        assert f"compiling run of handled for {words}" in line and "later runs start warm" in line
    assert all("took" in line and line.endswith("s to compile") for line in lines[1::2])
    assert finish(start(folder, log + ASK_KINDS, *kinds))[1] == ""


@pytest.mark.versions
def test_planners_are_announced_in_plain_words():
    def title(function, *classes):
        kinds = tuple(numba.types.NamedTuple((), kind) for kind in classes)
        data = {"dispatcher": function, "args": kinds}
        return announcements._title(event.Event("numba:compile", event.EventStatus.START, data))

    python, tabular, bounded = PythonHandle, TabularHandle, BoundedHandle
    assert title(play, uct.Search, tabular) == "uct for a tabular model"
    assert title(play, bracket.records.Search, python) == "bracket for a Python model"
    assert title(stop.run, stop.Draws, bounded, tabular) == "stop for a bounded tabular model"
    assert title(sweep, mdp_gape.records.Search, tabular) == "sweep of mdp_gape for a tabular model"
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


# Numba's private names


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (compiler.CompileResult, "_reduce"),
        (numba.core.codegen.CPUCodeLibrary, "serialize_using_object_code"),
        (compiler.CompileResult, "codegen"),
        (numba.core.codegen.CPUCodegen, "magic_tuple"),
    ],
)
def test_numba_without_what_writing_needs(folder, fresh, monkeypatch, owner, name):
    monkeypatch.delattr(owner, name)
    for _ in range(2):
        value, loaded, (message,) = fresh()
        assert (value, loaded) == (VALUE, False)
        assert numba.__version__ in message and name in message
    assert everything(folder) == []


@pytest.mark.versions
@pytest.mark.parametrize("change", ["missing", "other arguments"])
def test_numba_without_what_reading_needs(fresh, monkeypatch, change):
    fresh()
    with monkeypatch.context() as patch:
        if change == "missing":
            patch.delattr(compiler.CompileResult, "_rebuild")
        else:
            patch.setattr(compiler.CompileResult, "_rebuild", lambda: None)
        value, loaded, (message,) = fresh()
    assert (value, loaded) == (VALUE, False)
    assert numba.__version__ in message
    assert fresh() == (VALUE, True, [])


@pytest.mark.versions
def test_numba_whose_dispatchers_have_no_cache(caplog):
    warned.clear()
    for _ in range(2):
        cache.keep_on_disk(lambda: None)
    assert [numba.__version__ in record.getMessage() for record in caplog.records] == [True]
