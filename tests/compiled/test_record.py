"""Records of which kernels belong together."""

import os
import time

import pytest

from pacplan.compiled import cache, record
from pacplan.compiled.record import read_record, write_record


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    place = tmp_path / "pacplan"
    place.mkdir(mode=0o700)
    for name in ("a.kernel", "b.kernel"):
        (place / name).touch()
    return place


def test_a_list_counts_as_long_as_all_its_files_are_there(folder):
    lists = {"one": ["a.kernel"], "both": ["a.kernel", "b.kernel"], "none": []}
    write_record("things", lists)
    assert read_record("things") == lists
    assert read_record("others") == {}
    (folder / "b.kernel").unlink()
    assert read_record("things") == {"one": ["a.kernel"], "none": []}


def test_a_record_is_for_these_sources_and_this_compiler(folder, monkeypatch):
    write_record("things", {"one": ["a.kernel"]})
    with monkeypatch.context() as patched:
        patched.setattr(record, "source_digest", lambda: "edited")
        assert read_record("things") == {}
    with monkeypatch.context() as patched:
        patched.setattr(record, "circumstances", lambda codegen: ("another processor",))
        assert read_record("things") == {}
    assert read_record("things") == {"one": ["a.kernel"]}


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"one": 3}', b"\xff"])
def test_a_damaged_record_is_none(folder, content):
    write_record("things", {"one": ["a.kernel"]})
    (path,) = folder.glob("*.record")
    path.write_bytes(content)
    assert read_record("things") == {}


def test_without_a_folder_there_is_none(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "nowhere"))
    write_record("things", {"one": []})
    assert read_record("things") == {} and not list(tmp_path.iterdir())


def test_old_records_are_removed(folder):
    write_record("things", {"one": ["a.kernel"]})
    (path,) = folder.glob("*.record")
    cache._tidy(folder, "a.kernel")
    assert path.exists()
    month = time.time() - 31 * 24 * 3600
    os.utime(path, (month, month))
    cache._tidy(folder, "a.kernel")
    assert not path.exists()
