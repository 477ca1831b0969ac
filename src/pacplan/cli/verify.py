"""`pacplan verify`: what planners promise, against exact answers."""

import json
import os
from argparse import Namespace
from typing import Any

from pacplan.cli.endings import EndedError, Exit, interrupted, reported
from pacplan.cli.options import QUIET, WORKERS, add_command, names

_ABOUT = """check the promises of planners

Check the promises of planners against exact answers, in many small plans designed to catch errors.

Exit codes: 0 no promise was found broken; 1 one was, a plan raised an error, or the file of --out could
not be written; 130 Ctrl-C ended it (the table so far is printed, and the file of --out continues from
there); 2 wrong usage."""

_OPTIONS = f"""
--plans N  how many in all, shared among families and planners; by default %(default)s
--families NAMES  names, separated by commas; by default all
--planner NAME  names, separated by commas, or your own as module:name, a class or function that makes
  it; by default all planners that promise something
--out FILE  file to keep results in: the same command continues where it stopped
--seed N  of the cases and plans
{WORKERS}
{QUIET}
--json  print the report as JSON, and no progress"""


def add_to(commands: Any) -> None:
    """Add the command to a parser."""
    add_command(commands, "verify", run, _ABOUT, _OPTIONS, plans=100_000, seed=0)


def run(asked: Namespace) -> None:
    """Verify as the command says."""
    from pacplan import testing
    from pacplan.registry import named
    from pacplan.views.terminal import show

    with reported(asked.out):
        chosen: Any = asked.planner
        if chosen is not None:
            chosen = named(chosen) if ":" in chosen else names(chosen)
        report = testing.verify(
            chosen,
            families=asked.families,
            plans=asked.plans,
            seed=asked.seed,
            workers=asked.workers or os.cpu_count() or 1,
            out=asked.out,
            progress=not (asked.json or asked.quiet),
        )
    if asked.json:
        print(json.dumps(report.to_dict(), indent=1))
    else:
        show(report.table(), "", *report.summary())
    if not report.complete:
        more = "" if asked.out is None else f"; the same command continues from {asked.out}"
        raise interrupted(f"stopped{more}")
    if not report.ok:
        raise EndedError("", Exit.ERROR)
