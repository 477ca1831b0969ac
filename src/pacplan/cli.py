"""The command `pacplan`."""

import ast
import importlib
import json
import sys
import traceback
from enum import IntEnum
from typing import Annotated, Any

import typer

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Monte-Carlo planning in Markov decision processes, with guarantees.",
)


class Exit(IntEnum):
    """Exit codes of `pacplan plan`, for scripts."""

    OK = 0
    ERROR = 1
    USAGE = 2
    NOT_REACHED = 3
    INTERRUPTED = 130


@app.callback()
def main() -> None:
    """Monte-Carlo planning in Markov decision processes, with guarantees."""


@app.command()
def plan(
    problem: Annotated[
        str,
        typer.Argument(
            help="A problem of pacplan.envs, such as 'garnet', or your own model as module:name, "
            "found from the current folder. A name that is callable is called."
        ),
    ],
    epsilon: Annotated[float, typer.Option(help="How far from optimal the action may be.")] = 0.5,
    delta: Annotated[float, typer.Option(help="Probability that the guarantee may fail.")] = 0.1,
    gamma: Annotated[float, typer.Option(help="Discount factor.")] = 0.7,
    horizon: Annotated[
        int | None, typer.Option(help="Steps; by default from epsilon and gamma.")
    ] = None,
    thresholds: Annotated[
        str, typer.Option(help="'lemma' (proven), 'paper' or 'budget' (the paper's experiments).")
    ] = "lemma",
    goal: Annotated[
        str, typer.Option(help="'action', or 'value' for the value of the state.")
    ] = "action",
    state: Annotated[
        str | None,
        typer.Option(help="State to plan from, a Python literal; by default the model's own."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The same seed gives the same plan.")] = None,
    budget: Annotated[int | None, typer.Option(help="Most calls to the model.")] = None,
    time_limit: Annotated[float | None, typer.Option(help="Most seconds.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Setting of the problem, NAME=VALUE, e.g. states=50 (repeat)."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the plan as JSON, and no progress.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Decide what to do in a state, with a certificate.

    Exit codes: 0 the planner stopped by its own rule; 3 a budget or a deadline stopped it first (the
    plan is printed all the same); 130 Ctrl-C did (likewise); 1 the model failed; 2 wrong usage.
    """
    import pacplan

    try:
        settings = dict(_setting(text) for text in set_ or [])
        planner = pacplan.MDPGapE(
            epsilon=epsilon,
            delta=delta,
            gamma=gamma,
            horizon=horizon,
            thresholds=thresholds,
            goal=goal,  # type: ignore[arg-type]
        )
        model = _load(problem, settings)
    except (TypeError, ValueError) as error:
        raise _failure(error, Exit.USAGE) from error
    try:
        result = planner.plan(
            model,
            None if state is None else _literal(state),
            seed=seed,
            budget=budget,
            time_limit=time_limit,
            progress=not (as_json or quiet),
        )
    except pacplan.BrokenPromiseError as error:
        raise _failure(error, Exit.ERROR) from error
    except Exception as error:
        if hasattr(error, "__notes__"):  # Raised by the user's model, which says where.
            traceback.print_exception(error)
            raise typer.Exit(Exit.ERROR) from error
        if isinstance(error, TypeError | ValueError):
            raise _failure(error, Exit.USAGE) from error
        raise
    if as_json:
        print(json.dumps(result.to_dict(), indent=2))
    else:
        _show(result)
    if result.stopped_by == "interrupt":
        raise typer.Exit(Exit.INTERRUPTED)
    if result.stopped_by not in ("certified", "rule"):
        raise typer.Exit(Exit.NOT_REACHED)


def _failure(error: Exception, code: Exit) -> typer.Exit:
    typer.echo(f"pacplan: {error}", err=True)
    return typer.Exit(code)


def _literal(text: str) -> Any:
    """A Python literal, or the text itself where it is none."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        if text.lstrip()[:1] in tuple("([{'\""):
            raise ValueError(f"cannot read {text!r} as a Python literal") from None
        return text


def _setting(text: str) -> tuple[str, Any]:
    name, separator, value = (part.strip() for part in text.partition("="))
    if not separator or not name:
        raise ValueError(f"--set takes NAME=VALUE, got {text!r}")
    return name, _literal(value)


def _load(problem: str, settings: dict[str, Any]) -> Any:
    """The model that the user named."""
    import pacplan

    module_name, separator, name = problem.partition(":")
    if not separator:
        if problem not in pacplan.envs.__all__:
            known = ", ".join(pacplan.envs.__all__)
            raise ValueError(f"there is no problem {problem!r}; try {known}, or your own module:name")
        found = getattr(pacplan.envs, problem)
    else:
        if "" not in sys.path:
            sys.path.insert(0, "")
        try:
            found = getattr(importlib.import_module(module_name), name)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise ValueError(f"cannot load {problem!r}: {reason}") from error
    if callable(found):
        return found(**settings)
    if settings:
        raise ValueError(f"{problem!r} is not callable, so --set has nothing to set")
    return found


def _show(result: Any) -> None:
    """The plan as a table, its guarantee and its cost."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from pacplan.search.progress import interval_bar

    console = Console(highlight=False)
    table = Table(box=None, pad_edge=False)
    for header in ("", "action", "lower", "interval", "upper", "estimate", "calls"):
        table.add_column(header, justify="left" if header == "interval" else "right")
    low, high = float(result.lower.min()), float(result.upper.max())
    for i, action in enumerate(result.actions):
        table.add_row(
            ">" if action == result.action else "",
            escape(str(action)),
            f"{result.lower[i]:.4g}",
            interval_bar(float(result.lower[i]), float(result.upper[i]), low, high),
            f"{result.upper[i]:.4g}",
            f"{result.values[i]:.4g}",
            f"{result.calls[i]:,}",
            style="bold" if action == result.action else None,
        )
    console.print(table)
    console.print()
    console.print(escape(f"Action {result.action}, gap {result.gap:.4g}"), style="bold")
    console.print(escape(result.guarantee))
    if result.assumptions:
        console.print(escape(f"Given that {', '.join(result.assumptions)}."))
    console.print(result.effort)
