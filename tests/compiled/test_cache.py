"""Compiled kernels on disk: whatever happens to files, plans go on and are right."""

import importlib
import os
import random
import shutil
import signal
import stat
import sys
import threading
import time

import numba
import pytest
from numba.core import compiler, serialize

from kernel_files import (
    ASK,
    ASK_KINDS,
    VALUE,
    ask,
    everything,
    finish,
    folder_of_kernels,
    fresh_kernel,
    kernel_file,
    needs_owners,
    start,
)
from pacplan.compiled import cache
from pacplan.compiled.private import warned

folder = pytest.fixture(folder_of_kernels)
fresh = pytest.fixture(fresh_kernel)


# Processes and threads


def test_cold_processes_do_not_disturb_each_other(folder):
    kinds = ["constant", "nested", "doubly"]
    for process in [start(folder, ASK_KINDS, kind) for kind in 2 * kinds]:
        assert finish(process)[0] == ""
    assert len(everything(folder)) == 3
    assert finish(start(folder, ASK_KINDS, *kinds)) == ("", "")


NAMESAKES = """
from typing import Any, NamedTuple
from handled import action_count, run
from pacplan.compiled.questions import answers

class Handle(NamedTuple):
    value: int

@answers(action_count, Handle)
def constant(handle: Any, state: Any, h: Any) -> Any:
    return {answer}
"""
MEET = """
import sys
from importlib import import_module
from handled import run
found = [run(import_module(name).Handle(3), 10) for name in sys.argv[1:]]
print(found, sum(run.stats.cache_hits.values()))
"""


@pytest.mark.versions
def test_kernels_for_classes_of_the_same_name_are_not_confused(folder):
    """Compiled by different processes, they would have the same symbols, and the first would be run."""
    for name, answer in (("one", "handle.value"), ("two", "2 * handle.value")):
        (folder / f"{name}.py").write_text(NAMESAKES.format(answer=answer))
        finish(start(folder, MEET, name))
    assert finish(start(folder, MEET, "one", "two"))[0] == "[30, 60] 2\n"


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
