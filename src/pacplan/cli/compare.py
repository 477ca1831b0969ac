"""`pacplan compare`: planners side by side."""

import json
from argparse import Namespace
from typing import Any

from pacplan.cli.arguments import add_json, add_quiet, add_set
from pacplan.cli.endings import failure, interrupted, wrong_usage
from pacplan.cli.problems import maker_of
from pacplan.cli.spelling import translated
from pacplan.cli.values import names

_ABOUT = """Compare planners within a budget, on the same problems and seeds: regret, calls, time.

Exit codes: 0 every planner has finished; 130 Ctrl-C ended it (the problems that every planner has
finished are shown); 1 the picture could not be written; 2 wrong usage."""


def add_to(commands: Any) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "compare",
        help="compare planners within a budget",
        description=_ABOUT,
        usage="pacplan compare PROBLEM [options]",
    )
    parser.set_defaults(run=run)
    parser.add_argument(
        "problem",
        metavar="PROBLEM",
        help="a problem as for 'plan'; one that takes a seed is drawn anew each run",
    )
    parser.add_argument(
        "--planners",
        type=names,
        default="bracket,mdp-gape,uct,brue,kl-olop",
        metavar="NAMES",
        help="names, or your own as module:name, separated by commas; by default %(default)s",
    )
    parser.add_argument(
        "--budget",
        type=int,
        default=1000,
        metavar="N",
        help="calls to the model for each plan; by default %(default)s",
    )
    parser.add_argument(
        "--runs",
        type=int,
        default=50,
        metavar="N",
        help="problems, the same for every planner; by default %(default)s",
    )
    parser.add_argument(
        "--gamma",
        type=float,
        metavar="G",
        help="discount factor; 0.7 by default, but it must be said for your own model and for gym:",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="N",
        help="first of the seeds of problems and plans; by default %(default)s",
    )
    parser.add_argument(
        "--workers",
        type=int,
        default=1,
        metavar="N",
        help="processes; by default %(default)s, so that nothing disturbs the times",
    )
    add_set(parser)
    parser.add_argument(
        "--plot", metavar="FILE", help="picture to write, e.g. regret.png (needs pacplan[viz])"
    )
    add_json(parser, "the comparison")
    add_quiet(parser)


def run(asked: Namespace) -> None:
    """Compare as the command says."""
    from pacplan import comparison
    from pacplan.registry import FIXED_BUDGET, check_discount, planner_of
    from pacplan.views.style import check_picture

    make = maker_of(asked)
    discount = {} if asked.gamma is None else {"gamma": asked.gamma}
    try:
        for name in asked.planners:
            check_discount(asked.problem, name, discount)
        chosen = [planner_of(name, discount | FIXED_BUDGET.get(name, {})) for name in asked.planners]
        if asked.plot is not None:
            check_picture(asked.plot)
        rows = comparison.compare(
            make,
            chosen,
            budget=asked.budget,
            runs=asked.runs,
            seed=asked.seed,
            workers=asked.workers,
            on_interrupt="return",
            progress=not (asked.json or asked.quiet),
        )
    except (TypeError, ValueError, ImportError) as error:
        raise wrong_usage(translated(str(error))) from error
    done = len(rows[0].regrets)
    if asked.json:
        print(json.dumps(comparison.to_dict(rows, asked.budget), indent=2))
    else:
        comparison.show(rows, asked.budget, done)
    if asked.plot is not None:
        try:
            comparison.plot(rows, asked.plot, asked.budget)
        except (OSError, ValueError) as error:
            raise failure(error) from error
    if done < asked.runs:
        raise interrupted(f"stopped after {done} of {asked.runs} problems")
