"""`pacplan warm`: compile beforehand."""

import time
from argparse import Namespace
from typing import Any

from pacplan.cli.arguments import add_quiet, add_workers
from pacplan.cli.endings import failure, wrong_usage
from pacplan.cli.spelling import translated
from pacplan.core.catalogue import PLANNERS

_ABOUT = """Compile beforehand what plans need, in models of every kind.

Kernels are kept in the user's cache folder, or in NUMBA_CACHE_DIR, and every later process starts warm.
Run it when an image is built, or before the tests of a project.

Exit codes: 0 everything is there; 1 something could not be kept; 2 wrong usage; 130 Ctrl-C (what was
finished is kept)."""


def add_to(commands: Any) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "warm",
        help="compile beforehand what plans need",
        description=_ABOUT,
        usage="pacplan warm [options]",
    )
    parser.set_defaults(run=run)
    parser.add_argument(
        "--planner",
        nargs="+",
        metavar="NAME",
        help=f"planners to compile: {', '.join(PLANNERS)}, or your "
        "own as module:name; by default all of them",
    )
    add_workers(parser)
    add_quiet(parser)


def run(asked: Namespace) -> None:
    """Compile what the command says."""
    from pacplan.compiled.cache import folder
    from pacplan.views.bar import bar
    from pacplan.warming import jobs, warm

    began = time.perf_counter()
    try:
        total = len(jobs(asked.planner))
        results = warm(asked.planner, workers=asked.workers)
    except (TypeError, ValueError) as error:
        raise wrong_usage(translated(str(error))) from error
    found = []
    with bar(total, 0, "kinds of plans", show=not asked.quiet) as advance:
        for compiled in results:
            found += compiled
            advance(1)
    seconds = time.perf_counter() - began
    if not all(done.lasting for done in found):
        raise failure("kernels could not be kept, so each process compiles them for itself")
    if found:
        count = f"{len(found)} kernel{'s' * (len(found) != 1)}"
        print(f"Compiled {count} in {seconds:.0f} s, kept in {folder()}.")
    else:
        print(f"Nothing to compile: everything was there already, in {folder()} ({seconds:.1f} s).")
