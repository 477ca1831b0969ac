"""The names of the package: imported when they are used, and the same for those who read types."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import pacplan


def declared():
    """Where type checkers find each name."""
    source = ast.parse(Path(pacplan.__file__).read_text("utf-8"))
    (block,) = (
        node
        for node in source.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    return {alias.name: node.module for node in block.body for alias in node.names}


def test_type_checkers_see_the_same_names():
    places = declared()
    assert {*places, "__version__"} == set(pacplan.__all__)
    for name, module in places.items():
        if module == "pacplan":
            assert getattr(pacplan, name) is import_module(f"pacplan.{name}")
        else:
            assert getattr(pacplan, name) is getattr(import_module(module), name)
    assert set(pacplan.__all__) <= set(dir(pacplan))


def test_a_name_that_there_is_not():
    with pytest.raises(AttributeError, match="module 'pacplan' has no attribute 'nothing'"):
        pacplan.nothing  # noqa: B018
    with pytest.raises(ImportError, match="nothing"):
        from pacplan import nothing  # noqa: F401


def test_the_package_alone_imports_no_compiler():
    script = "import sys, pacplan; print(pacplan.__version__, 'numba' in sys.modules)"
    script += (
        "; pacplan.UCT; print('numba' in sys.modules); from pacplan import *; print(plan.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == f"{pacplan.__version__} False\nTrue\nplan\n"
