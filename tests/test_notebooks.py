"""The example notebooks run, and show what was committed."""

import json
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


def test_a_notebook_that_shows_something_else_is_found_out(tmp_path):
    notebook = json.loads((FOLDER / "first_certificate.ipynb").read_text("utf-8"))
    shown = next(cell for cell in notebook["cells"] if cell.get("outputs"))
    shown["source"] = ["'this'"]
    shown["outputs"][0]["data"] = {"text/plain": ["'something else'"]}
    notebook["cells"] = [shown]
    (tmp_path / "first_certificate.ipynb").write_text(json.dumps(notebook), "utf-8")
    (tmp_path / "execute.py").write_text((FOLDER / "execute.py").read_text("utf-8"), "utf-8")
    done = subprocess.run(
        [sys.executable, tmp_path / "execute.py", "--check"],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 1
    assert "first_certificate.ipynb shows something else now" in done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_what_is_committed(name):
    """Executed from top to bottom, and nothing that belongs to one machine or one run."""
    text = (FOLDER / f"{name}.ipynb").read_text("utf-8")
    notebook = json.loads(text)
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert sum(bool(cell["outputs"]) for cell in cells) >= len(cells) - 2
    outputs = json.dumps([cell["outputs"] for cell in cells])
    for word in ("/home/", "/tmp/", "/root/", "site-packages", "stderr", "Traceback", "compiling"):
        assert word not in outputs
    assert all(cell["metadata"] == {} for cell in notebook["cells"])
