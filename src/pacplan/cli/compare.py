"""`pacplan compare`: planners side by side."""

import json
from argparse import Namespace
from typing import Any

from pacplan.cli.endings import reported
from pacplan.cli.options import QUIET, SET, add_command, problem_of

_ABOUT = """compare planners within a budget

Compare planners within a budget, on the same problems and seeds: regret, calls, time.

Exit codes: 0 every planner has finished; 2 wrong usage; 130 you pressed Ctrl-C."""

_OPTIONS = f"""
PROBLEM  a problem as for 'plan'; one that takes a seed is drawn anew each run
--planners NAMES  names, or your own as module:name, separated by commas; by default %(default)s
--budget N  calls to the model for each plan; by default %(default)s
--runs N  problems, the same for every planner; by default %(default)s
--gamma G  discount factor; 0.7 by default. You must give it for your own model and for gym:
--seed N  first of the seeds of problems and plans; by default %(default)s
--workers N  processes; by default %(default)s, so that nothing disturbs the times
{SET}
{QUIET}
--json  print the comparison as JSON, and no progress"""


def add_to(commands: Any) -> None:
    """Add the command to a parser."""
    defaults = {"planners": "bracket,mdp-gape,uct,brue,kl-olop", "budget": 1000, "runs": 50}
    add_command(commands, "compare PROBLEM", run, _ABOUT, _OPTIONS, seed=0, workers=1, **defaults)


def run(asked: Namespace) -> None:
    """Compare as the command says."""
    from pacplan import comparison
    from pacplan.registry import FIXED_BUDGET, check_discount, planner_of

    with reported():
        make = problem_of(asked, seeded=True)
        discount = {} if asked.gamma is None else {"gamma": asked.gamma}
        for name in asked.planners:
            check_discount(asked.problem, name, discount)
        chosen = [planner_of(name, discount | FIXED_BUDGET.get(name, {})) for name in asked.planners]
        limits = {name: getattr(asked, name) for name in ("budget", "runs", "seed", "workers")}
        rows = comparison.compare(make, chosen, progress=not (asked.json or asked.quiet), **limits)
    if asked.json:
        print(json.dumps(comparison.to_dict(rows), indent=2))
    else:
        comparison.show(rows)
