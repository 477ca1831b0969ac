"""Folders of compiled kernels: only those of the user are trusted, and plans go on without."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_files import (
    ASK,
    SOMEBODY_ELSE,
    VALUE,
    ask,
    everything,
    folder_of_kernels,
    fresh_kernel,
    kernel_file,
    needs_owners,
    needs_root,
)
from pacplan.compiled import cache

folder = pytest.fixture(folder_of_kernels)
fresh = pytest.fixture(fresh_kernel)


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
