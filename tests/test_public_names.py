"""The names of the package: imported when they are used, and the same for those who read types."""

import subprocess
import sys
from importlib import import_module

import pytest

import pacplan


def test_every_public_name_is_there():
    assert all(getattr(pacplan, name) is not None for name in pacplan.__all__)
    assert set(pacplan.__all__) <= set(dir(pacplan))
    assert pacplan.views is import_module("pacplan.views")


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
