"""A kernel of a user's own, in processes and folders of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pacplan

KERNEL = """
from numba.extending import overload
from pacplan.compiled.jit import inlined, kernel
import ingredient

def shifted(n):
    return n

@overload(shifted)
def _compile_shifted(n):
    return lambda n: n + 0

def make(step):
    @inlined
    def enclosed(n):
        return n + step
    return enclosed

plus = make(0)

@inlined
def times(k):
    return plus(ingredient.FACTOR * k)

@kernel
def run(n):
    total = 0
    for k in range(n):
        total += times(shifted(k))
    return total
"""
VALUE = 7 * 45  # of run(10), if FACTOR is 7


def folder_of_kernels(tmp_path, monkeypatch):
    """A fixture: a folder with the modules of a user, and room for their kernels."""
    (tmp_path / "module.py").write_text(KERNEL)
    (tmp_path / "ingredient.py").write_text("FACTOR = 7\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return tmp_path


def kernels(folder):
    return sorted(path for path in (folder / "cache").rglob("*") if path.is_file())


def start(folder, script):
    paths = os.pathsep.join([str(folder), str(Path(pacplan.__file__).parents[1])])
    return subprocess.Popen(
        [sys.executable, script],
        env=os.environ | {"PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
