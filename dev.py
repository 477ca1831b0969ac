#!/usr/bin/env python3
"""Set up the project's own virtual environment, then run something in it.

    python3 dev.py setup                   all that the tasks below need, at once
    python3 dev.py pacplan plan garnet     the command, with any arguments
    python3 dev.py test                    the tests, with any arguments for pytest (-n 0: one process)
    python3 dev.py lint                    ruff
    python3 dev.py types                   mypy
    python3 dev.py versions                some of the tests with the oldest NumPy and Numba
    python3 dev.py docs                    build the documentation
    python3 dev.py figures                 draw its pictures
    python3 dev.py wheel [python3.13 ...]  build a release into dist/, and try it in fresh environments
    python3 dev.py notebooks               run the example notebooks, and keep what they show
    python3 dev.py python script.py        any other program of the environment

Needs nothing but Python 3.11 or later. The environment is `.venv` beside this file; for the oldest
versions it is `.venv-oldest`.
"""

import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent
ENVIRONMENT, OLDEST = ROOT / ".venv", ROOT / ".venv-oldest"
PROGRAMS = "Scripts" if os.name == "nt" else "bin"
# Files with tests that are run with the oldest versions too: the others need more than pytest.
VERSIONS = ["tests/compiled/test_cache.py", "tests/compiled/test_versions.py"]
# Files of tests are shared out in the order in which they are collected (`tests/conftest.py`).
PROCESSES = ["--numprocesses=auto", "--dist=loadfile", "--no-loadscope-reorder"]
# Each task: the extras it needs, and its commands; arguments go to the last one.
TASKS = {
    "setup": ("dev,docs", []),
    "test": ("dev", [["python", "-m", "pytest", *PROCESSES]]),
    "lint": ("dev", [["ruff", "format", "--check", "."], ["ruff", "check", "."]]),
    "types": ("dev", [["mypy"]]),
    "versions": ("dev", [["python", "-m", "pytest", "-m", "versions", *VERSIONS]]),
    "docs": ("docs", [["python", "docs/build.py"]]),
    "figures": ("viz", [["python", "docs/figures.py"]]),
    "wheel": ("dev", []),  # see below
    "notebooks": ("dev", [["python", "examples/notebooks/execute.py"]]),
}


def main() -> int:
    """Prepare the environment for the task and run it."""
    if sys.version_info < (3, 11):  # noqa: UP036
        sys.exit(f"pacplan needs Python 3.11 or later; this is {sys.version.split()[0]}")
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return 0
    # The tests start hundreds of processes: what Python compiles of their sources is kept.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if sys.argv[1] in ("test", "versions"):
        # There is a process for each core: threads of theirs would wait for each other, and spin.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    extras, commands = TASKS.get(sys.argv[1], ("", [[sys.argv[1]]]))
    with ThreadPoolExecutor() as pool:
        ready = [pool.submit(prepare, ENVIRONMENT, extras)]
        if sys.argv[1] in ("setup", "versions"):
            ready.append(pool.submit(prepare, OLDEST, "", "pytest", *oldest("numba", "numpy")))
    for done in ready:
        done.result()
    programs = ENVIRONMENT / PROGRAMS
    if sys.argv[1] == "setup":
        return 0
    if sys.argv[1] == "versions":
        os.environ["PACPLAN_NEWEST"] = str(programs / "python")
        programs = OLDEST / PROGRAMS
    if sys.argv[1] == "wheel":
        try:
            return wheel(programs, sys.argv[2:] or [sys.executable])
        except (OSError, subprocess.CalledProcessError) as error:
            sys.exit(f"dev.py: the release does not work: {error}")
    if sys.argv[1] in TASKS:
        os.chdir(ROOT)
    for command in [*commands[:-1], [*commands[-1], *sys.argv[2:]]]:
        program = shutil.which(command[0], path=programs)
        if program is None:
            sys.exit(f"dev.py: there is no task or program {command[0]!r}; see dev.py --help")
        code = run([program, *command[1:]])
        if code != 0:
            return code
    return 0


def wheel(programs: Path, interpreters: list[str]) -> int:
    """Build the archive and the wheel, and make a plan with the wheel under each interpreter."""
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    build = ["-m", "build", "--outdir", str(dist), str(ROOT)]
    subprocess.run([str(programs / "python"), *build], check=True, stdout=subprocess.DEVNULL)
    (built,) = dist.glob("*.whl")
    for interpreter in interpreters:
        with tempfile.TemporaryDirectory() as folder:
            # Away from the checkout and from compiled kernels, as on a machine that has seen neither.
            fresh, home = Path(folder) / "venv", {"cwd": folder, "check": True}
            settings = {**os.environ, "NUMBA_CACHE_DIR": folder}
            subprocess.run([interpreter, "-m", "venv", str(fresh)], **home)
            python = str(fresh / PROGRAMS / "python")
            subprocess.run([python, "-m", "pip", "--quiet", "install", str(built)], **home)
            version = subprocess.check_output([python, "--version"], text=True).strip()
            print(f"dev.py: {built.name} with {version}:", flush=True)
            plan = ["plan", "garnet", "--epsilon", "1", "--delta", "0.1", "--gamma", "0.7"]
            subprocess.run([python, "-I", "-m", "pacplan", *plan], env=settings, **home)
    return 0


def run(command: list[str]) -> int:
    """Run a program to its end. It shares our terminal, so it handles Ctrl-C itself."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return subprocess.call(command, preexec_fn=None if os.name == "nt" else default_interrupts)
    finally:
        signal.signal(signal.SIGINT, before)


def default_interrupts() -> None:
    """Give the child the usual Ctrl-C back."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def oldest(*names: str) -> list[str]:
    """The oldest versions of packages that pyproject.toml supports."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    bounds = dict(re.findall(r"([\w-]+)>=([\d.]+)", " ".join(project["dependencies"])))
    return [f"{name}=={bounds[name]}" for name in names]


def prepare(environment: Path, extras: str, *others: str) -> None:
    """Install pacplan in an environment, with what else a task needs, unless that was done."""
    stamps = [environment / f".ready-{extra}".rstrip("-") for extra in extras.split(",")]
    wanted = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    if all(stamp.exists() and stamp.read_text() == wanted for stamp in stamps):
        return
    print(f"dev.py: preparing {environment.name} ...", file=sys.stderr)
    programs = environment / PROGRAMS
    try:
        if not (programs / "python").exists() and not (programs / "python.exe").exists():
            venv.create(environment, with_pip=True)
        target = f".[{extras}]" if extras else "."
        pip = [str(programs / "python"), "-m", "pip", "--disable-pip-version-check", "--quiet"]
        # Modules are compiled when they are first imported, which most never are.
        pip += ["install", "--no-compile"]
        subprocess.run([*pip, *others, "--editable", target], cwd=ROOT, check=True, stdout=2)
    except subprocess.CalledProcessError as error:
        sys.exit(
            f"dev.py: {' '.join(map(str, error.cmd))} failed. If it is about ensurepip, this Python "
            "comes without venv (Debian and Ubuntu: install python3-venv)."
        )
    for stamp in stamps:
        stamp.write_text(wanted)


if __name__ == "__main__":
    sys.exit(main())
