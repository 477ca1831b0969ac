"""`pacplan plan`: a decision, with a certificate."""

import json
import shlex
import traceback
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pacplan.cli.arguments import add_json, add_quiet, add_set
from pacplan.cli.endings import EndedError, Exit, failure, interrupted, wrong_usage
from pacplan.cli.problems import model_of
from pacplan.cli.spelling import SETTINGS, flag, translated
from pacplan.cli.values import accuracy, literal, setting, settings, size
from pacplan.core.catalogue import PLANNERS, PROBLEMS

if TYPE_CHECKING:
    from pacplan.algorithms import Planner
    from pacplan.engine.checkpoint import Checkpoint
    from pacplan.models import Model
    from pacplan.result import Plan

_ABOUT = """Decide what to do in a state, with a certificate.

Exit codes: 0 the planner stopped by its own rule, or has none; 3 a budget, a deadline or a lack of
memory stopped it before its rule, or a lack of memory before its limits (the plan is still printed);
130 Ctrl-C was pressed (the same); 1 the model failed, or a file could not be written; 2 wrong usage."""


def add_to(commands: Any) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "plan",
        help="decide what to do in a state",
        description=_ABOUT,
        usage="pacplan plan PROBLEM [options]",
    )
    parser.set_defaults(run=run)
    parser.add_argument(
        "problem",
        metavar="PROBLEM",
        help=f"{', '.join(PROBLEMS)}; a Gymnasium environment, such as gym:FrozenLake-v1; or your own "
        "model as module:name, found from the current folder (if it is callable, it is called)",
    )
    parser.add_argument(
        "--planner",
        default="auto",
        metavar="NAME",
        help="auto (the default: chosen for the problem, as pacplan.plan does), "
        f"{', '.join(PLANNERS)}, or your own class as module:name",
    )
    add_set(parser)
    add_json(parser, "the plan")
    add_quiet(parser)
    parser.add_argument(
        "--html",
        metavar="FILE",
        help="page to write that shows the plan with its evidence, e.g. plan.html",
    )
    _add_asked(parser.add_argument_group("what is asked for"))
    _add_known(parser.add_argument_group("what is known beforehand, or left to the planner"))
    _add_limits(parser.add_argument_group("what ends the search, and what remains"))


def _add_asked(group: Any) -> None:
    group.add_argument(
        "--epsilon",
        type=accuracy,
        metavar="E",
        help="how far from optimal the action may be; 0.5 by default. 5%% is of the range of values",
    )
    group.add_argument(
        "--delta",
        type=float,
        metavar="D",
        help="probability with which the guarantee may fail; 0.1 by default",
    )
    group.add_argument(
        "--gamma",
        type=float,
        metavar="G",
        help="discount factor; 0.7 by default, but it must be said for your own model and for gym:",
    )
    group.add_argument(
        "--horizon", type=int, metavar="N", help="steps; by default the planner's own choice"
    )
    group.add_argument(
        "--goal", metavar="GOAL", help="'action' (the default), or 'value' for the value of the state"
    )
    group.add_argument(
        "--state",
        type=literal,
        metavar="STATE",
        help="state to plan from, a Python literal; by default the model's own",
    )
    group.add_argument("--seed", type=int, metavar="N", help="the same seed gives the same plan")


def _add_known(group: Any) -> None:
    group.add_argument(
        "--value-range",
        type=float,
        nargs=2,
        metavar=("LOW", "HIGH"),
        help="what an episode earns from any state on, discounted, at least and at most",
    )
    group.add_argument(
        "--rewards",
        metavar="KIND",
        help="'deterministic' if a state and action always pays the same, 'known' to read them from "
        "the model's table",
    )
    group.add_argument(
        "--transitions",
        metavar="KIND",
        help="'deterministic' if a state and action always lead to the same state, 'known' to read "
        "probabilities from the table",
    )
    group.add_argument(
        "--merge",
        metavar="WHICH",
        help="states that share what is learnt: 'stationary' (all equal ones), 'depth' (equal ones of "
        "the same step) or 'tree' (none)",
    )
    group.add_argument(
        "--thresholds",
        metavar="NAME",
        help="of mdp-gape: 'lemma' (proven, the default), 'paper', 'budget', 'published' or 'sharp'",
    )
    group.add_argument(
        "--option",
        action="append",
        type=setting,
        default=[],
        metavar="NAME=VALUE",
        help="any other setting that the planner's class takes, functions as module:name (repeat)",
    )


def _add_limits(group: Any) -> None:
    group.add_argument("--budget", type=int, metavar="N", help="most calls to the model")
    group.add_argument("--time-limit", type=float, metavar="SECONDS", help="most seconds")
    group.add_argument(
        "--memory-limit",
        type=size,
        metavar="BYTES",
        help="most memory for the records of the search, such as 500M or 2G (powers of 1024)",
    )
    group.add_argument(
        "--checkpoint",
        type=Path,
        metavar="FILE",
        help="file that receives, now and then, what --resume needs after a crash",
    )
    group.add_argument(
        "--every", type=float, metavar="SECONDS", help="between two checkpoints; 60 by default"
    )
    group.add_argument(
        "--resume",
        action="store_true",
        help="go on from the checkpoint, to the same plan as if nothing had happened. Seed, state and "
        "budget are those of the checkpoint; the rest of the command must be the same",
    )


@dataclass(frozen=True)
class _Task:
    """What the command asks for, checked as far as nothing is called.

    Attributes:
        planner: the planner.
        model: the problem.
        state: where to plan from; None: the model's own.
        resumes: whether it goes on from the checkpoint.
        seed: of all random numbers.
        budget: most calls.
        limits: what else `plan` and `resume` take.
    """

    planner: "Planner"
    model: "Model"
    state: Any
    resumes: bool
    seed: Any
    budget: int | None
    limits: dict[str, Any]


def run(asked: Namespace) -> None:
    """Plan as the command says."""
    from pacplan.cli.show import show
    from pacplan.registry import has_rule

    task = _task(asked)
    result = _planned(task, asked.checkpoint)
    if asked.json:
        print(json.dumps(result.to_dict(), indent=2))
    else:
        show(result)
    if asked.html is not None:
        _write_page(result, asked)
    if result.interrupted:
        left = asked.checkpoint is not None and asked.checkpoint.exists()
        raise interrupted(f"stopped; --resume goes on from {asked.checkpoint}" if left else "stopped")
    # Planners without their own rule end by the budget or the deadline, as they should.
    reached = (
        ("certified", "rule") if has_rule(task.planner) else ("certified", "rule", "budget", "deadline")
    )
    if result.stopped_by not in reached:
        raise EndedError("", Exit.NOT_REACHED)


def _task(asked: Namespace) -> _Task:
    """What is asked for. Nothing of it is called, except what makes the problem."""
    from pacplan.engine.seeds import seed_sequence
    from pacplan.models.protocol import check_model
    from pacplan.registry import auto_for, check_discount, planner_of
    from pacplan.views.page import check_page

    try:
        given = _settings(asked)
        planner = None if asked.planner == "auto" else planner_of(asked.planner, given)
        seed, state, budget = seed_sequence(asked.seed), asked.state, asked.budget
        if asked.checkpoint is None and (asked.resume or asked.every is not None):
            raise ValueError("--resume and --every need a checkpoint: --checkpoint FILE")
        saved = _checkpoint(asked) if asked.resume else None
        if asked.html is not None:
            check_page(asked.html)
        model = model_of(asked)
        if saved is not None:
            seed, state, budget = saved.seed, saved.state(model), saved.budget
        check_model(model)
        if not model.two_player:
            check_discount(asked.problem, "bracket" if planner is None else asked.planner, given)
        if planner is None:
            planner = auto_for(asked.problem, given, model)
    except (TypeError, ValueError, ImportError) as error:
        raise wrong_usage(translated(str(error))) from error
    limits = {
        "time_limit": asked.time_limit,
        "memory_limit": asked.memory_limit,
        "progress": not (asked.json or asked.quiet),
    }
    if asked.every is not None:
        limits["every"] = asked.every
    return _Task(planner, model, state, saved is not None, seed, budget, limits)


def _settings(asked: Namespace) -> dict[str, Any]:
    """The settings of the planner."""
    values = {name: getattr(asked, name) for name in SETTINGS}
    given = {name: value for name, value in values.items() if value is not None}
    options = settings("--option", asked.option)
    for name in given.keys() & options.keys():
        raise ValueError(f"{name} is given twice, by {flag(name)} and by --option {name}=")
    if "value_range" in given:
        given["value_range"] = tuple(given["value_range"])
    return given | options


def _checkpoint(asked: Namespace) -> "Checkpoint":
    """The checkpoint; raises unless it is of a plan from this state, with this seed and budget."""
    from pacplan.engine.checkpoint import Checkpoint, plain_state

    try:
        saved = Checkpoint.read(asked.checkpoint)
    except OSError as error:
        raise ValueError(f"cannot read the checkpoint {asked.checkpoint}: {error.strerror}") from None
    written = saved.header["state"]
    for name, wanted, kept in (
        ("seed", asked.seed, saved.entropy),
        ("budget", asked.budget, saved.budget),
        ("state", written if asked.state is None else plain_state(asked.state), written),
    ):
        if wanted is not None and wanted != kept:
            raise ValueError(f"--{name} {wanted}: the plan of the checkpoint has {name} {kept}")
    return saved


def _planned(task: _Task, checkpoint: Path | None) -> "Plan":
    """The plan."""
    from pacplan.models.protocol import BrokenPromiseError

    try:
        if task.resumes:
            assert checkpoint is not None
            return task.planner.resume(checkpoint, task.model, **task.limits)
        asked = task.limits | {"seed": task.seed, "budget": task.budget, "checkpoint": checkpoint}
        return task.planner.plan(task.model, task.state, **asked)
    except (BrokenPromiseError, MemoryError) as error:
        raise failure(translated(str(error))) from error
    except Exception as error:
        if hasattr(error, "__notes__"):  # Raised by the user's model, which says where.
            traceback.print_exception(error)
            raise EndedError("", Exit.ERROR) from error
        if isinstance(error, TypeError | ValueError):
            raise wrong_usage(translated(str(error))) from error
        if isinstance(error, OSError) and checkpoint is not None:
            words = f"cannot write the checkpoint {checkpoint}: {error.strerror or error}"
            raise failure(words) from error
        raise


# Options that change nothing about the plan, by how many words follow; the seed is always given.
_BESIDES = {
    "--html": 1,
    "--json": 0,
    "--quiet": 0,
    "-q": 0,
    "--checkpoint": 1,
    "--every": 1,
    "--resume": 0,
    "--seed": 1,
}


def _write_page(result: "Plan", asked: Namespace) -> None:
    assert result.origin is not None
    try:
        result.to_html(asked.html, command=_again(asked.typed, result.origin.seed))
    except (OSError, ValueError) as error:
        raise failure(error) from error


def _again(typed: Sequence[str], seed: Any) -> str:
    """The command that makes the plan again, as it was typed."""
    words = ["pacplan"]
    left = iter(typed)
    for word in left:
        name, _, value = word.partition("=")
        if name not in _BESIDES:
            words.append(word)
        elif not value:
            for _ in range(_BESIDES[name]):
                next(left)
    return shlex.join([*words, "--seed", str(seed)])
