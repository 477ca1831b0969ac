"""Kernels are compiled again if something that they contain has changed, and only then."""

import importlib
import os
import re
import shutil
import sys
from pathlib import Path

import numba
import pytest

import pacplan
from kernel_files import KERNEL, VALUE, ask, everything, finish, folder_of_kernels, fresh_kernel, start
from pacplan.compiled import cache, sources

folder = pytest.fixture(folder_of_kernels)
fresh = pytest.fixture(fresh_kernel)


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
    dict(pacplan.planners)  # Their modules are loaded on demand.
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
    dict(pacplan.planners)
    handle_classes = [each for each in sources._chosen if each.__module__.startswith("pacplan.")]
    assert len(handle_classes) >= 4
    count = 0
    for function in kernels():
        hashed = []
        assert sources.kernel_digest(function, handle_classes)
        names = {os.path.realpath(path) for path in hashed}
        for part in called(function, set()):
            assert os.path.realpath(part.__code__.co_filename) in names, (function, part)
        modules = {Path(path).relative_to(Path(pacplan.__file__).parent).as_posix() for path in hashed}
        assert {"models/handles.py", "engine/tree.py", "compiled/jit.py"} <= modules
        assert not modules & {
            "cli.py",
            "agent.py",
            "__init__.py",
            "models/showing.py",
            "views/explorer.py",
        }, function
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
    text = (Path(__file__).parents[2] / "examples" / path.name).read_text()
    path.write_text(text)

    def compiles(script):
        output, messages = finish(start(folder, script))
        return "pacplan: compiling" in messages, re.findall(r"^>? +\d.*$", output, re.MULTILINE)

    found = {}
    for script in (path, PLAN):
        first, found[script] = compiles(script)
        again, same = compiles(script)
        assert (first, again) == (True, False)
        assert found[script] == same
    path.write_text(text.replace("].n <", "].n >"))
    compiled, after = compiles(PLAN)
    assert compiled
    assert after != found[PLAN]
    assert not compiles(PLAN)[0]
