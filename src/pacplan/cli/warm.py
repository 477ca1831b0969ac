"""`pacplan warm`: compile kernels before they are needed."""

import time
from argparse import Namespace
from typing import Any

from pacplan.cli.catalogue import PLANNERS
from pacplan.cli.endings import EndedError, Exit, reported
from pacplan.cli.options import QUIET, WORKERS, add_command

_ABOUT = """compile kernels before they are needed

Compile the kernels of planners before they are needed.

Kernels are kept in your cache folder, or in NUMBA_CACHE_DIR, and later processes start warm. Run this
command when you build an image, or before the tests of a project.

Exit codes: 0 all kernels are there; 1 a kernel cannot be kept; 2 wrong usage; 130 Ctrl-C (finished
kernels are kept)."""


def add_to(commands: Any) -> None:
    """Add the command to a parser."""
    parser = add_command(commands, "warm", run, _ABOUT, f"{WORKERS}\n{QUIET}")
    about = f"planners to compile: {', '.join(PLANNERS)}, or your own as module:name; default: all"
    parser.add_argument("--planner", nargs="+", metavar="NAME", help=about)


def run(asked: Namespace) -> None:
    """Compile what the command says."""
    from pacplan.algorithms import planners
    from pacplan.compiled.cache import folder
    from pacplan.views.progress import bar
    from pacplan.warming import warm

    began, found = time.perf_counter(), []
    with reported():
        results = warm(asked.planner, workers=asked.workers)
    with bar(len(asked.planner or planners), 0, "planners", show=not asked.quiet) as advance:
        for compiled in results:
            found += compiled
            advance(1)
    if not all(kernel.lasting for kernel in found):
        raise EndedError(
            f"cannot keep kernels in {folder()}, so each process compiles its own", Exit.ERROR
        )
    kernels, seconds = f"{len(found)} kernel{'s' * (len(found) != 1)}", time.perf_counter() - began
    print(f"Compiled {kernels} in {seconds:.0f} s. All kernels are in {folder()}.")
