"""Compiled kernels on disk: there for later processes, never outdated, and plans go on without."""

import errno
import importlib
import json
import os
import sys

import pytest
from numba.core import serialize

from kernel_files import VALUE, folder_of_kernels, kernels, start
from pacplan.compiled import cache

pytestmark = pytest.mark.processes

SCRIPT = """
import json
from typing import NamedTuple
from pacplan.compiled.jit import kernel
from pacplan.compiled.dispatch import generic

@generic
def asked(subject):
    return 0

class Tuple(NamedTuple):
    value: int

@asked.register(Tuple)
def _asked(subject):
    return subject.value

@kernel
def run(subject):
    return asked(subject)

print(json.dumps([run(Tuple(5)), sum(run.stats.cache_hits.values())]))
"""
folder = pytest.fixture(folder_of_kernels)
needs_owners = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs owners of files")


@pytest.fixture
def fresh(folder, monkeypatch, caplog):
    """Imports the kernel anew and calls it: its value, whether it was loaded, and the log."""

    def again(meanwhile=lambda: None):
        for remembered in (cache._warned, caplog, cache._file_digest.cache_clear):
            (remembered if callable(remembered) else remembered.clear)()
        for name in ("module", "ingredient"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        importlib.invalidate_caches()
        module = importlib.import_module("module")
        meanwhile()
        value = module.run(10)
        messages = [record.getMessage() for record in caplog.records]
        loaded = bool(module.run.stats.cache_hits)
        assert loaded != any("compiling run of module" in message for message in messages)
        return value, loaded, [message for message in messages if "compiling" not in message]

    return again


def edit(path, before, after):
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


@pytest.mark.versions
def test_processes(folder):
    """Any number may start cold at once; a script's own classes and their answers are found again."""
    script = folder / "script.py"
    for answer, value in (("subject.value", 5), ("subject.value + 1", 6)):
        script.write_text(SCRIPT.replace("subject.value", answer))
        for count in (3, 1):
            for process in [start(folder, script) for _ in range(count)]:
                with process:
                    output, messages = process.communicate()
                assert process.returncode == 0, messages
                found, loaded = json.loads(output)
                assert found == value
                assert ("compiling run of __main__" in messages) == (not loaded)
        assert loaded, "the last one came late"
    assert len(kernels(folder)) == 2


@pytest.mark.parametrize(
    ("name", "before", "after", "value"),
    [
        ("module.py", "FACTOR * k", "FACTOR * k + 1", VALUE + 10),
        ("module.py", "make(0)", "make(1)", VALUE + 10),
        ("module.py", "n: n + 0", "n: n + 1", VALUE + 70),
        ("ingredient.py", "7", "10", 450),
    ],
)
def test_what_contains_something_edited_is_compiled_again(folder, fresh, name, before, after, value):
    assert fresh() == (VALUE, False, [])
    edit(folder / name, before, after)
    assert fresh() == (value, False, [])
    assert fresh() == (value, True, [])
    edit(folder / name, after, before)
    assert fresh() == (VALUE, True, []), "it was not replaced"


NAMESAKE = SCRIPT.partition("print")[0]
MEET = """
import json
import one, two
print(json.dumps([each.run(each.Tuple(5)) for each in (one, two)]))
"""


@pytest.mark.versions
def test_classes_of_the_same_name_are_told_apart(folder):
    """Compiled by different processes, they would have the same symbols, and the first would be run."""
    for name, answer in (("one", "subject.value"), ("two", "2 * subject.value")):
        (folder / f"{name}.py").write_text(NAMESAKE.replace("subject.value", answer))
    script = folder / "script.py"
    for text in ("import one; one.run(one.Tuple(5))", "import two; two.run(two.Tuple(5))", MEET):
        script.write_text(text)
        with start(folder, script) as process:
            output, messages = process.communicate()
        assert process.returncode == 0, messages
    assert json.loads(output) == [5, 10]
    assert messages == ""


# Files


@pytest.mark.parametrize("damage", ["flipped", "cut", "empty", "foreign"])
def test_damaged_files_are_replaced(folder, fresh, damage):
    fresh()
    (path,) = kernels(folder)
    content = path.read_bytes()
    flipped = content[:-100] + bytes([content[-100] ^ 1]) + content[-99:]
    contents = {"flipped": flipped, "cut": content[:3000], "empty": b""}
    path.write_bytes(contents.get(damage, serialize.dumps([1, 2])))
    value, loaded, (message,) = fresh()
    assert (value, loaded) == (VALUE, False)
    assert str(path) in message and "delete" in message
    assert fresh() == (VALUE, True, [])


# Folders


def refused(outcome, *words):
    """The plan went on without files, and one line says why and what to do."""
    value, loaded, messages = outcome
    assert (value, loaded) == (VALUE, False)
    (message,) = messages
    for word in (*words, "NUMBA_CACHE_DIR"):
        assert word in message


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_writing_fails(folder, fresh, monkeypatch, number):
    def fail(*_):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        refused(fresh(), os.strerror(number))
        assert not cache.compilations[-1][1]
    assert kernels(folder) == [], "nothing is left of what was not written"
    assert fresh() == (VALUE, False, [])
    assert cache.compilations[-1][1]


@needs_owners
@pytest.mark.parametrize("change", [0o777, 0o1777, 0o770, 0o702, "somebody else's"])
def test_a_folder_that_others_can_write_to_is_not_trusted(folder, fresh, change):
    """To read compiled code back means to execute it."""
    fresh()
    place = folder / "cache" / "pacplan"
    assert place.stat().st_mode & 0o077 == 0, "it was made for the user alone"
    if isinstance(change, int):
        place.chmod(change)
    elif os.geteuid() == 0:
        os.chown(place, 54321, -1)
    else:
        pytest.skip("only root gives files away")
    refused(fresh(), f"{place} (others can write to it)")
