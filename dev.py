#!/usr/bin/env python3
"""Set up the project's own virtual environment, then run something in it.

    python3 dev.py pacplan plan garnet     the command, with any arguments
    python3 dev.py test                    the tests, with any arguments for pytest
    python3 dev.py lint                    ruff
    python3 dev.py types                   mypy
    python3 dev.py docs                    build the documentation
    python3 dev.py python script.py        any other program of the environment

Needs nothing but Python 3.11 or later. The environment is `.venv` beside this file.
"""

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
ENVIRONMENT = ROOT / ".venv"
PROGRAMS = ENVIRONMENT / ("Scripts" if os.name == "nt" else "bin")
TASKS = {
    "test": ("dev", ["python", "-m", "pytest"]),
    "lint": ("dev", ["ruff", "check", "."]),
    "types": ("dev", ["mypy"]),
    "docs": ("docs", ["mkdocs", "build", "--strict"]),
}


def main() -> int:
    """Prepare the environment for the task and run it."""
    if sys.version_info < (3, 11):  # noqa: UP036
        sys.exit(f"pacplan needs Python 3.11 or later; this is {sys.version.split()[0]}")
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return 0
    extra, command = TASKS.get(sys.argv[1], ("", [sys.argv[1]]))
    prepare(extra)
    os.chdir(ROOT)
    command = [str(PROGRAMS / command[0]), *command[1:], *sys.argv[2:]]
    return subprocess.call(command)


def prepare(extra: str) -> None:
    """Install pacplan in the environment, with the extra that a task needs, unless it is there."""
    stamp = ENVIRONMENT / f".ready{'-' + extra if extra else ''}"
    wanted = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    print(f"dev.py: preparing {ENVIRONMENT.name} ...", file=sys.stderr)
    try:
        if not (PROGRAMS / "python").exists() and not (PROGRAMS / "python.exe").exists():
            venv.create(ENVIRONMENT, with_pip=True)
        target = f".[{extra}]" if extra else "."
        pip = [str(PROGRAMS / "python"), "-m", "pip", "--disable-pip-version-check", "--quiet"]
        subprocess.run([*pip, "install", "--editable", target], cwd=ROOT, check=True, stdout=2)
    except subprocess.CalledProcessError as error:
        sys.exit(
            f"dev.py: {' '.join(map(str, error.cmd))} failed. If it is about ensurepip, this Python "
            "comes without venv (Debian and Ubuntu: install python3-venv)."
        )
    stamp.write_text(wanted)


if __name__ == "__main__":
    sys.exit(main())
