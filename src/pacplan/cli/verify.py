"""`pacplan verify`: what planners promise, against exact answers."""

import json
import os
from argparse import Namespace
from pathlib import Path
from typing import Any

from pacplan.cli.arguments import add_json, add_quiet, add_workers
from pacplan.cli.endings import EndedError, Exit, failure, interrupted, unwritten, wrong_usage
from pacplan.cli.spelling import translated
from pacplan.cli.values import names
from pacplan.core.text import columns, wrapped

_ABOUT = """Check what planners promise against exact answers, in many small plans made to catch errors.

Exit codes: 0 no promise was found broken; 1 one was, a plan raised an error, or the file of --out could
not be written; 130 Ctrl-C ended it (the table so far is printed, and the file of --out continues from
there); 2 wrong usage."""


def add_to(commands: Any) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "verify",
        help="check what planners promise",
        description=_ABOUT,
        usage="pacplan verify [options]",
    )
    parser.set_defaults(run=run)
    parser.add_argument(
        "--plans",
        type=int,
        default=100_000,
        metavar="N",
        help="how many in all, shared among families and planners; by default %(default)s",
    )
    parser.add_argument(
        "--families", type=names, metavar="NAMES", help="names, separated by commas; by default all"
    )
    parser.add_argument(
        "--planner",
        metavar="NAMES",
        help="names, separated by commas, or your own as module:name, a class or function that makes "
        "it; by default all planners that promise something",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="file to keep results in: the same command continues where it stopped",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the cases and plans")
    add_workers(parser)
    add_json(parser, "the report")
    add_quiet(parser)


def run(asked: Namespace) -> None:
    """Verify as the command says."""
    from pacplan import testing
    from pacplan.registry import named

    try:
        chosen: Any = None
        if asked.planner is not None:
            chosen = named(asked.planner) if ":" in asked.planner else names(asked.planner)
        report = testing.verify(
            chosen,
            families=asked.families,
            plans=asked.plans,
            seed=asked.seed,
            workers=asked.workers or os.cpu_count() or 1,
            out=asked.out,
            progress=not (asked.json or asked.quiet),
        )
    except (TypeError, ValueError) as error:
        raise wrong_usage(translated(str(error))) from error
    except OSError as error:
        raise unwritten(error, asked.out) from error
    except RuntimeError as error:
        raise failure(error) from error
    if asked.json:
        print(json.dumps(report.to_dict(), indent=1))
    else:
        print("\n".join(report.table()), end="\n\n")
        for line in report.summary():
            print(wrapped(line, columns(), "  "))
    if not report.complete:
        words = (
            "stopped" if asked.out is None else f"stopped; the same command continues from {asked.out}"
        )
        raise interrupted(words)
    if not report.ok:
        raise EndedError("", Exit.ERROR)
