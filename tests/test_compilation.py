"""The kernels' cache: a second process starts warm, and edited sources are compiled again."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import pacplan
from pacplan import _jit

PLAN = """
import pacplan
model = pacplan.envs.garnet(states=20, seed=0)
print(pacplan.MDPGapE(epsilon=1, delta=.1, gamma=.5).plan(model, 0, seed=0).samples)
"""


def plan_in_a_process(**environment):
    start = time.perf_counter()
    process = subprocess.run(
        [sys.executable, "-c", PLAN],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return process.stdout, process.stderr, time.perf_counter() - start


def test_only_the_first_process_compiles(tmp_path):
    cold, message, seconds = plan_in_a_process(NUMBA_CACHE_DIR=str(tmp_path))
    assert "compiling" in message
    warm, silence, faster = plan_in_a_process(NUMBA_CACHE_DIR=str(tmp_path))
    assert silence == ""
    assert warm == cold
    assert faster < seconds / 2
    package = Path(pacplan.__file__).parent
    assert not list(package.rglob("*.nbi")), "nothing is written beside the sources"


def test_the_cache_follows_every_module_of_the_package(tmp_path, monkeypatch):
    (tmp_path / "inner").mkdir()
    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "inner" / "b.py").write_text("y = 1\n")
    monkeypatch.setattr(_jit, "_PACKAGE", tmp_path)
    digest = _jit.source_digest.__wrapped__
    before = digest()
    assert digest() == before
    (tmp_path / "inner" / "b.py").write_text("y = 2\n")
    assert digest() != before
    locator = _jit._Locator(test_the_cache_follows_every_module_of_the_package)
    assert locator.get_source_stamp() == _jit.source_digest()


def test_the_cache_folder_is_the_users_and_falls_back(tmp_path, monkeypatch):
    find = _jit.cache_folder.__wrapped__
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(_jit, "user_cache_path", lambda name: tmp_path / "cache" / name)
    assert find().parent == tmp_path / "cache" / "pacplan"
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setattr(_jit, "user_cache_path", lambda name: tmp_path / "file" / name)
    monkeypatch.setattr(_jit.tempfile, "tempdir", str(tmp_path))
    assert find().is_relative_to(tmp_path)
    monkeypatch.setattr(_jit.tempfile, "gettempdir", lambda: str(tmp_path / "file"))
    assert find() is None


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs owners of files")
def test_compiled_code_of_another_user_is_not_trusted(tmp_path, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(_jit, "user_cache_path", lambda name: tmp_path / "cache")
    folder = _jit.cache_folder.__wrapped__()
    assert folder.is_relative_to(tmp_path / "cache")
    monkeypatch.setattr(_jit.os, "getuid", lambda: folder.stat().st_uid + 1)
    monkeypatch.setattr(_jit.tempfile, "gettempdir", lambda: str(tmp_path / "other"))
    assert _jit.cache_folder.__wrapped__() is None
