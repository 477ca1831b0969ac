"""`pacplan plan`: a decision, with a certificate."""

import json
import shlex
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from pacplan.cli.catalogue import PLANNERS, PROBLEMS
from pacplan.cli.endings import Exit, end, reported
from pacplan.cli.options import QUIET, SET, SETTINGS, add_command, add_options, in_options, problem_of
from pacplan.core.words import short

if TYPE_CHECKING:
    from pacplan.algorithms import Planner
    from pacplan.result import Plan

_PLAN = f"""choose an action in a state

Choose an action in a state, with a certificate.

PROBLEM  {", ".join(PROBLEMS)}; a Gymnasium environment, such as gym:FrozenLake-v1; or your own model
  as module:name, found from the current folder (if it is callable, it is called)
--planner NAME  auto (the default: chosen for the problem, as pacplan.plan does),
  {", ".join(PLANNERS)}, or your own class as module:name
{SET}
{QUIET}
--json  print the plan as JSON, and no progress
--html FILE  write a page that shows the plan with its evidence, e.g. plan.html"""

_ACCURACY = """
--epsilon E  how far from optimal the action may be; 0.5 by default. 5%% means
  5 %% of the range of values
--delta D  probability with which the guarantee may fail; 0.1 by default
--gamma G  discount factor; 0.7 by default. You must give it for your own model and for gym:
--horizon N  steps; by default the planner's own choice
--goal GOAL  'action' (the default), or 'value' for the value of the state
--state STATE  state to plan from, a Python literal; by default the model's own
--seed N  the same seed gives the same plan"""

_KNOWLEDGE = """
--value-range LOW HIGH  bounds on every discounted return from any state on
--rewards KIND  'deterministic' if a state and action always pay the same
--transitions KIND  'deterministic' if a state and action always lead to the same state
--merge WHICH  of mdp-gape and opd: equal states that share evidence: 'tree' (none), 'depth'
  (those of the same step) or, of opd, 'stationary' (all)
--thresholds NAME  of mdp-gape: 'lemma' (proven, the default), 'paper', 'budget', 'published' or 'sharp'
--option NAME=VALUE  any other setting that the planner's class takes, functions as module:name (repeat)
"""

_LIMITS = """
--budget N  maximum number of calls to the model
--time-limit SECONDS  maximum time
--memory-limit BYTES  maximum memory for the records of the search, such as 500M or 2G (powers of 1024)
--checkpoint FILE  file for checkpoints, from which --resume continues after a crash
--every SECONDS  checkpoint interval; 60 by default
--resume  continue from the checkpoint, to the same plan. Leave out --seed, --state and --budget, which
  it has; the rest of the command must be the same"""


def add_to(commands: Any) -> None:
    """Add the command to a parser."""
    parser = add_command(commands, "plan PROBLEM", run, _PLAN, planner="auto")
    add_options(parser.add_argument_group("accuracy and state"), _ACCURACY)
    add_options(parser.add_argument_group("your knowledge of the problem"), _KNOWLEDGE)
    add_options(parser.add_argument_group("limits and checkpoints"), _LIMITS)


def run(asked: Namespace) -> None:
    """Plan as the command says."""
    from pacplan.registry import has_rule
    from pacplan.views import terminal

    with reported():
        planner, result = _planned(asked)
    if asked.json:
        print(json.dumps(result.to_dict(), indent=2))
    else:
        parts = terminal.plan_parts(result, terminal.console())
        terminal.show(f"{result.verdict}: action {short(result.action, 80)}", bold=True)
        terminal.show(*(in_options(part) if isinstance(part, str) else part for part in parts))
    if asked.html is not None:
        assert result.origin is not None
        seed = [] if asked.seed is not None else ["--seed", str(result.origin.seed)]
        with reported():
            result.to_html(asked.html, command=shlex.join(["pacplan", *asked.typed, *seed]))
    if result.interrupted:
        left = asked.checkpoint is not None and asked.checkpoint.exists()
        more = f"; --resume goes on from {asked.checkpoint}" if left else ""
        end(Exit.INTERRUPTED, f"stopped{more}")
    # Planners without their own rule end by the budget or the deadline, as they should.
    reached = ("certified", "rule") + (() if has_rule(planner) else ("budget", "deadline"))
    if result.stopped_by not in reached:
        end(Exit.NOT_REACHED)


def _planned(asked: Namespace) -> "tuple[Planner, Plan]":
    """The planner and its plan."""
    from pacplan.models.protocol import check_model
    from pacplan.registry import auto_for, check_discount, planner_of
    from pacplan.views.page import check_page

    given = {name: getattr(asked, name) for name in SETTINGS if getattr(asked, name) is not None}
    given |= dict(asked.option)
    if "value_range" in given:
        given["value_range"] = tuple(given["value_range"])
    planner = None if asked.planner == "auto" else planner_of(asked.planner, given)
    if asked.checkpoint is None and (asked.resume or asked.every is not None):
        raise ValueError("--resume and --every need a checkpoint: --checkpoint FILE")
    if asked.html is not None:
        check_page(asked.html)
    model = problem_of(asked)
    check_model(model)
    if not model.two_player:
        check_discount(asked.problem, "bracket" if planner is None else asked.planner, given)
    if planner is None:
        planner = auto_for(asked.problem, given, model)
    limits = {name: getattr(asked, name) for name in ("time_limit", "memory_limit")}
    limits |= {"progress": not (asked.json or asked.quiet)}
    limits |= {} if asked.every is None else {"every": asked.every}
    if asked.resume:
        if any(getattr(asked, name) is not None for name in ("seed", "budget", "state")):
            raise ValueError("--resume has seed, budget and state from the checkpoint: leave them out")
        if not asked.checkpoint.is_file():
            raise ValueError(f"there is no checkpoint {asked.checkpoint}")
        return planner, planner.resume(asked.checkpoint, model, **limits)
    limits |= {name: getattr(asked, name) for name in ("seed", "budget", "checkpoint")}
    return planner, planner.plan(model, asked.state, **limits)
