"""A kernel of a user's own, in processes and folders of its own."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import pacplan
from pacplan.compiled.private import warned

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
from pacplan.compiled.questions import answers, must_answer

@must_answer
def action_count(handle: Any, state: Any, h: Any) -> Any:
    raise NotImplementedError

class ConstantHandle(NamedTuple):
    value: int

class ArrayHandle(NamedTuple):
    values: Any

class NestedHandle(NamedTuple):
    inner: Any
    more: int

@answers(action_count, ConstantHandle)
def constant(handle: Any, state: Any, h: Any) -> Any:
    return handle.value

@answers(action_count, ArrayHandle)
def array(handle: Any, state: Any, h: Any) -> Any:
    return handle.values[state]

@answers(action_count, NestedHandle)
def nested(handle: Any, state: Any, h: Any) -> Any:
    return action_count(handle.inner, state, h) + handle.more

@kernel
def run(handle, states):
    total = 0
    for state in range(states):
        total += action_count(handle, state, 0)
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


def folder_of_kernels(tmp_path):
    """A fixture: a folder with the modules of a user, and room for their kernels."""
    (tmp_path / "module.py").write_text(KERNEL)
    (tmp_path / "ingredient.py").write_text("FACTOR = 7\n")
    (tmp_path / "handled.py").write_text(HANDLES)
    return tmp_path


def fresh_kernel(folder, monkeypatch, caplog):
    """A fixture: imports the kernel anew and calls it: its value, whether it was loaded, the log.

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
