"""The command `pacplan`."""

import ast
import importlib
import json
import sys
import traceback
from enum import IntEnum
from inspect import signature
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
    planner: Annotated[
        str,
        typer.Option(
            help="mdp-gape, sparse-sampling, uct, brue, olop, kl-olop, opd, op-mdp, stop, trailblazer, "
            "smooth-cruiser or ugape-mcts."
        ),
    ] = "mdp-gape",
    epsilon: Annotated[
        float | None, typer.Option(help="How far from optimal the action may be; 0.5 by default.")
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(help="Probability that the guarantee may fail; 0.1 by default."),
    ] = None,
    gamma: Annotated[float | None, typer.Option(help="Discount factor; 0.7 by default.")] = None,
    horizon: Annotated[
        int | None, typer.Option(help="Steps; by default the planner's own choice.")
    ] = None,
    thresholds: Annotated[
        str | None,
        typer.Option(help="'lemma' (proven, the default), 'paper' or 'budget' (the experiments')."),
    ] = None,
    goal: Annotated[
        str | None,
        typer.Option(help="'action' (the default), or 'value' for the value of the state."),
    ] = None,
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
    option: Annotated[
        list[str] | None,
        typer.Option(help="Setting of the planner, NAME=VALUE, e.g. rewards=known (repeat)."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the plan as JSON, and no progress.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
    html: Annotated[
        str | None,
        typer.Option(help="Page to write, for walking the search tree, e.g. tree.html (pacplan[viz])."),
    ] = None,
) -> None:
    """Decide what to do in a state, with a certificate.

    Exit codes: 0 the planner stopped by its own rule, or has none; 3 a budget or a deadline stopped it
    before its rule (the plan is printed all the same); 130 Ctrl-C did (likewise); 1 the model failed;
    2 wrong usage.
    """
    import pacplan

    try:
        settings = dict(_setting(text) for text in set_ or [])
        given = {
            "epsilon": epsilon,
            "delta": delta,
            "gamma": gamma,
            "horizon": horizon,
            "thresholds": thresholds,
            "goal": goal,
        }
        chosen = _planner(planner, **(given | dict(_setting(text) for text in option or [])))
        model = _load(problem, settings)
        if html is not None:
            _check_html(html, chosen)
    except (TypeError, ValueError, ImportError) as error:
        raise _failure(error, Exit.USAGE) from error
    try:
        result = chosen.plan(
            model,
            None if state is None else _literal(state),
            seed=seed,
            budget=budget,
            time_limit=time_limit,
            progress=not (as_json or quiet),
        )
    except (pacplan.BrokenPromiseError, MemoryError) as error:
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
    if html is not None:
        try:
            pacplan.views.explore(result, html)
        except (OSError, ValueError) as error:
            raise _failure(error, Exit.ERROR) from error
    if result.stopped_by == "interrupt":
        raise typer.Exit(Exit.INTERRUPTED)
    # Planners without a rule of their own end by the budget or the deadline, as they should.
    has_rule = getattr(chosen, "epsilon", None) and thresholds != "budget"
    if has_rule and result.stopped_by not in ("certified", "rule"):
        raise typer.Exit(Exit.NOT_REACHED)


@app.command()
def compare(
    problem: Annotated[
        str,
        typer.Argument(help="A problem as for 'plan'; one that takes a seed is drawn anew each run."),
    ],
    planners: Annotated[
        str, typer.Option(help="Names, separated by commas.")
    ] = "mdp-gape,uct,brue,kl-olop",
    budget: Annotated[int, typer.Option(help="Calls to the model for each plan.")] = 1000,
    runs: Annotated[int, typer.Option(help="Problems, the same for every planner.")] = 50,
    gamma: Annotated[float, typer.Option(help="Discount factor.")] = 0.7,
    seed: Annotated[int, typer.Option(help="First of the seeds of problems and plans.")] = 0,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Setting of the problem, NAME=VALUE (repeat).")
    ] = None,
    plot: Annotated[
        str | None, typer.Option(help="Picture to write, e.g. regret.png (needs pacplan[viz]).")
    ] = None,
) -> None:
    """Compare planners within a budget, on the same problems and seeds: regret, calls, time."""
    from pacplan import comparison

    try:
        settings = dict(_setting(text) for text in set_ or [])
        names = [name.strip() for name in planners.split(",") if name.strip()]
        # MDP-GapE as in the paper's fixed-budget experiments.
        chosen = [
            _planner(
                name,
                gamma=gamma,
                **({"epsilon": 0.0, "thresholds": "budget"} if name == "mdp-gape" else {}),
            )
            for name in names
        ]
        rows = comparison.compare(
            lambda number: _load(problem, settings, number),
            chosen,
            budget=budget,
            runs=runs,
            gamma=gamma,
            seed=seed,
        )
        if plot is not None:
            comparison.plot(rows, plot, budget)
    except (TypeError, ValueError, ImportError) as error:
        raise _failure(error, Exit.USAGE) from error
    comparison.show(rows, budget, runs)


def _planner(name: str, **settings: Any) -> Any:
    """The planner of a name, with the settings that were given and defaults for what it requires."""
    import pacplan

    if name not in pacplan.planners:
        known = ", ".join(pacplan.planners)
        raise ValueError(f"there is no planner {name!r}; try {known}")
    cls = pacplan.planners[name]
    accepted = signature(cls).parameters
    given = {key: value for key, value in settings.items() if value is not None}
    for key in given:
        if key not in accepted:
            raise ValueError(f"{name} takes no {key}")
    defaults = {"epsilon": 0.5, "delta": 0.1, "gamma": 0.7}
    required = {key: value for key, value in defaults.items() if key in accepted}
    return cls(**(required | given))


def _check_html(path: str, planner: Any) -> None:
    """Raise, before anything is planned, where no page could be written in the end."""
    from pacplan import planners
    from pacplan.views.explorer import check_page

    if not planner.keeps_tree:
        others = ", ".join(name for name, cls in planners.items() if cls.keeps_tree)
        raise ValueError(f"{planner.name} keeps no search tree to show; these do: {others}")
    check_page(path)


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


def _load(problem: str, settings: dict[str, Any], seed: int | None = None) -> Any:
    """The model that the user named; `seed` for those that take one and were given none."""
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
        if seed is not None and "seed" in signature(found).parameters:
            settings = {"seed": seed} | settings
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
    bounded = result.lower is not None
    interval = ("lower", "interval", "upper") if bounded else ()
    for header in ("", "action", *interval, "estimate", "calls"):
        table.add_column(header, justify="left" if header == "interval" else "right")
    for i, action in enumerate(result.actions):
        cells = []
        if bounded:
            low, high = float(result.lower.min()), float(result.upper.max())
            lower, upper = float(result.lower[i]), float(result.upper[i])
            cells = [f"{lower:.4g}", interval_bar(lower, upper, low, high), f"{upper:.4g}"]
        table.add_row(
            ">" if action == result.action else "",
            escape(str(action)),
            *cells,
            f"{result.values[i]:.4g}",
            f"{result.calls[i]:,}",
            style="bold" if action == result.action else None,
        )
    console.print(table)
    console.print()
    gap = f", gap {result.gap:.4g}" if bounded else ""
    console.print(escape(f"Action {result.action}{gap}"), style="bold")
    console.print(escape(result.guarantee))
    if result.assumptions:
        console.print(escape(f"Given that {', '.join(result.assumptions)}."))
    console.print(result.effort)
