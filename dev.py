#!/usr/bin/env python3
"""Set up the project's own virtual environment, then run something in it.

    python3 dev.py pacplan plan garnet     the command, with any arguments
    python3 dev.py test                    the tests, with any arguments for pytest (-n 0: one process)
    python3 dev.py lint                    ruff
    python3 dev.py types                   mypy
    python3 dev.py docs                    build the documentation
    python3 dev.py figures                 draw its pictures
    python3 dev.py python script.py        any other program of the environment

Needs nothing but Python 3.11 or later. The environment is `.venv` beside this file.
"""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
ENVIRONMENT = ROOT / ".venv"
PROGRAMS = ENVIRONMENT / ("Scripts" if os.name == "nt" else "bin")
# Each task: the extra it needs, and its commands; arguments go to the last one.
TASKS = {
    "test": ("dev", [["python", "-m", "pytest", "--numprocesses=auto", "--dist=loadfile"]]),
    "lint": ("dev", [["ruff", "format", "--check", "."], ["ruff", "check", "."]]),
    "types": ("dev", [["mypy"]]),
    "docs": ("docs", [["mkdocs", "build", "--strict"]]),
    "figures": ("viz", [["python", "docs/figures.py"]]),
}


def main() -> int:
    """Prepare the environment for the task and run it."""
    if sys.version_info < (3, 11):  # noqa: UP036
        sys.exit(f"pacplan needs Python 3.11 or later; this is {sys.version.split()[0]}")
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return 0
    extra, commands = TASKS.get(sys.argv[1], ("", [[sys.argv[1]]]))
    prepare(extra)
    if sys.argv[1] in TASKS:
        os.chdir(ROOT)
    for command in [*commands[:-1], [*commands[-1], *sys.argv[2:]]]:
        program = shutil.which(command[0], path=PROGRAMS)
        if program is None:
            sys.exit(f"dev.py: there is no task or program {command[0]!r}; see dev.py --help")
        code = run([program, *command[1:]])
        if code != 0:
            return code
    return 0


def run(command: list[str]) -> int:
    """Run a program to its end. It shares our terminal, so Ctrl-C is its own to handle."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return subprocess.call(command, preexec_fn=None if os.name == "nt" else default_interrupts)
    finally:
        signal.signal(signal.SIGINT, before)


def default_interrupts() -> None:
    """Give the child the usual Ctrl-C back."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


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
