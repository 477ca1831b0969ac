"""The example notebooks run, and show what was committed."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
FOLDER = Path(__file__).parent.parent / "examples" / "notebooks"
NAMES = ["comparing_planners", "first_certificate", "inventory"]


def test_all_notebooks_are_here():
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_notebook(name, tmp_path):
    """In a kernel of its own: what its cells print is what was committed."""
    done = subprocess.run(
        [sys.executable, FOLDER / "execute.py", "--check", name],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []
