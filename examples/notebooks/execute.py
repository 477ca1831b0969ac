"""Run the notebooks of this folder, and keep what they show.

    python examples/notebooks/execute.py            run them, and write their outputs
    python examples/notebooks/execute.py --check    run them, and compare with the outputs written

Outputs on the error stream, which tells what is compiled, are left out, and so is all that differs from
run to run.
"""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def executed(path):
    """The notebook with fresh outputs."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook, timeout=600, kernel_name="python3", record_timing=False, coalesce_streams=True
    )
    client.execute()
    notebook.metadata = METADATA
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.metadata = {}
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    return notebook


def texts(notebook):
    """What each cell says, and what it shows as text; pictures and pages depend on what draws them."""
    return [
        (
            cell.source,
            [
                output.get("text") or output.get("data", {}).get("text/plain")
                for output in cell.get("outputs", ())
            ],
        )
        for cell in notebook.cells
    ]


def main():
    """Run those that are named, or all."""
    names = [name for name in sys.argv[1:] if name != "--check"]
    for path in sorted(FOLDER.glob("*.ipynb")):
        if names and path.stem not in names:
            continue
        found = executed(path)
        if "--check" not in sys.argv:
            nbformat.write(found, path)
        elif texts(found) != texts(nbformat.read(path, as_version=4)):
            sys.exit(f"{path.name} shows something else now; run examples/notebooks/execute.py")


if __name__ == "__main__":
    main()
