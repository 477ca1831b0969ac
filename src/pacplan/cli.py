"""The command `pacplan`."""

import ast
import json
import traceback
from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path
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


_WORKERS = typer.Option(help="Processes; by default one a core. 1 starts none.")
_DASK = typer.Option(
    help="Run on a Dask cluster: the address of its scheduler, or 'local' to start one here."
)


@app.callback()
def main() -> None:
    """Monte-Carlo planning in Markov decision processes, with guarantees."""


@app.command()
def plan(
    problem: Annotated[
        str,
        typer.Argument(
            help="A problem of pacplan.envs, such as 'garnet', a Gymnasium environment, such as "
            "'gym:FrozenLake-v1', or your own model as module:name, found from the current folder. "
            "A name that is callable is called."
        ),
    ],
    planner: Annotated[
        str,
        typer.Option(
            help="bracket, mdp-gape, sparse-sampling, uct, brue, olop, kl-olop, opd, op-mdp, stop, "
            "trailblazer, smooth-cruiser or ugape-mcts."
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
        typer.Option(help="'lemma' (proven, the default), 'paper', 'budget', 'published' or 'sharp'."),
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
    from pacplan.bounds.thresholds import for_a_budget
    from pacplan.registry import planner_of, problem_of

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
        chosen = planner_of(planner, **(given | dict(_setting(text) for text in option or [])))
        model = problem_of(problem, settings)
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
    has_rule = getattr(chosen, "epsilon", None) and not for_a_budget(thresholds)
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
    ] = "bracket,mdp-gape,uct,brue,kl-olop",
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
    from pacplan.registry import FIXED_BUDGET, planner_of, problem_of

    try:
        settings = dict(_setting(text) for text in set_ or [])
        chosen = [
            planner_of(name, gamma=gamma, **FIXED_BUDGET.get(name, {})) for name in _names(planners)
        ]
        rows = comparison.compare(
            lambda number: problem_of(problem, settings, number),
            chosen,
            budget=budget,
            runs=runs,
            seed=seed,
        )
        if plot is not None:
            comparison.plot(rows, plot, budget)
    except (TypeError, ValueError, ImportError) as error:
        raise _failure(error, Exit.USAGE) from error
    comparison.show(rows, budget, runs)


@app.command()
def reproduce(
    what: Annotated[str, typer.Argument(help="table4, figure1, figure2 or all.")],
    mdps: Annotated[int, typer.Option(help="Random MDPs.")] = 200,
    seed: Annotated[int, typer.Option(help="Of the first MDP, and of the plans.")] = 0,
    workers: Annotated[int | None, _WORKERS] = None,
    out: Annotated[Path | None, typer.Option(help="Folder; by default results/WHAT.")] = None,
    thresholds: Annotated[
        str | None,
        typer.Option(
            help="Of MDP-GapE, separated by commas: 'paper' (the default) or 'lemma' for Table 4 and "
            "Figure 1; 'sharp', 'budget' (both by default) or 'published' for Figure 2."
        ),
    ] = None,
    planners: Annotated[
        str | None, typer.Option(help="Names, separated by commas; by default those of the paper.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small part, within two minutes.")] = False,
    dask: Annotated[str | None, _DASK] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Run the MDP-GapE paper's experiments, and write a report with the paper's numbers beside ours.

    Stopped or killed, the same command continues where it was.
    """
    from pacplan.experiments import Reproduction
    from pacplan.experiments.report import write_report

    folder = out or Path("results") / what
    try:
        given = {"thresholds": thresholds, "planners": planners}
        lists = {key: tuple(_names(value)) for key, value in given.items() if value is not None}
        wanted = Reproduction(what, mdps=mdps, seed=seed, quick=quick, **lists)
        records = _run_sweep(wanted.sweep(), folder, workers, dask, quiet)
        write_report(wanted, records, folder)
    except (TypeError, ValueError, ImportError) as error:
        raise _failure(error, Exit.USAGE) from error
    typer.echo(f"{len(records):,} runs; open {folder / 'report.html'}")
    _fail_if_any_failed(records)


@app.command()
def sweep(
    file: Annotated[Path, typer.Argument(help="A TOML file: planners, problems, budgets, seeds.")],
    workers: Annotated[int | None, _WORKERS] = None,
    out: Annotated[Path | None, typer.Option(help="Folder; by default FILE without .toml.")] = None,
    dask: Annotated[str | None, _DASK] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Run planners on problems as a TOML file says; a CSV row for every run, and a summary.

    Stopped or killed, the same command continues where it was. Exit code 1: some runs failed; their
    rows say why.
    """
    from pacplan.experiments import groups, read_sweep, summary

    folder = out or file.with_suffix("")
    try:
        records = _run_sweep(read_sweep(file), folder, workers, dask, quiet)
    except (TypeError, ValueError, ImportError) as error:
        raise _failure(error, Exit.USAGE) from error
    found = groups(records)
    summary.write(found, folder / "summary.csv")
    summary.show(found)
    typer.echo(f"\n{len(records):,} runs in {folder / 'runs.csv'}")
    _fail_if_any_failed(records)


@app.command()
def verify(
    plans: Annotated[
        int, typer.Option(help="How many in all, shared out among families and planners.")
    ] = 100_000,
    families: Annotated[
        str | None, typer.Option(help="Names, separated by commas; by default all.")
    ] = None,
    planner: Annotated[
        str | None,
        typer.Option(
            help="Names, separated by commas, or your own as module:name, a class or function that "
            "makes it; by default all planners that promise something."
        ),
    ] = None,
    workers: Annotated[int | None, _WORKERS] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="File to keep results in: the same command continues where it stopped."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the cases and plans.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Hold what planners promise against exact answers, in many small plans made to catch them.

    Exit codes: 0 no promise was seen to be broken; 1 one was, or a plan raised an error; 130 Ctrl-C
    ended it (the table so far is printed, and the file of --out continues from there); 2 wrong usage.
    """
    import os

    from pacplan import testing
    from pacplan.registry import named

    try:
        chosen: Any = None
        if planner is not None:
            chosen = named(planner) if ":" in planner else _names(planner)
        report = testing.verify(
            chosen,
            families=None if families is None else _names(families),
            plans=plans,
            seed=seed,
            workers=workers or os.cpu_count() or 1,
            out=out,
            progress=not quiet,
        )
    except (TypeError, ValueError, OSError) as error:
        raise _failure(error, Exit.USAGE) from error
    except RuntimeError as error:
        raise _failure(error, Exit.ERROR) from error
    typer.echo(json.dumps(report.to_dict(), indent=1) if as_json else str(report))
    if not report.complete:
        if out is not None:
            typer.echo(f"pacplan: stopped; the same command continues from {out}", err=True)
        raise typer.Exit(Exit.INTERRUPTED)
    if not report.ok:
        raise typer.Exit(Exit.ERROR)


def _run_sweep(
    wanted: Any, folder: Path, workers: int | None, dask: str | None, quiet: bool
) -> list[Any]:
    """Run a sweep as the options say; Ctrl-C ends it with a word on how to continue."""
    from pacplan.experiments import dask_cluster, run

    try:
        if dask is None:
            return run(wanted, folder, workers=workers, progress=not quiet)
        with dask_cluster(dask, workers) as (executor, at_once):
            return run(wanted, folder, workers=at_once, executor=executor, progress=not quiet)
    except KeyboardInterrupt:
        typer.echo(f"pacplan: stopped; the same command continues from {folder}", err=True)
        raise typer.Exit(Exit.INTERRUPTED) from None
    except RuntimeError as error:
        raise _failure(error, Exit.ERROR) from error


def _fail_if_any_failed(records: Sequence[Any]) -> None:
    failed = [record for record in records if record.error]
    if failed:
        typer.echo(
            f"pacplan: {len(failed)} of {len(records)} runs failed; the first: {failed[0].parameters} "
            f"on {failed[0].problem}, seed {failed[0].problem_seed}: {failed[0].error}",
            err=True,
        )
        raise typer.Exit(Exit.ERROR)


def _names(text: str) -> list[str]:
    """The words of an option that takes several."""
    return [name.strip() for name in text.split(",") if name.strip()]


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


def _show(result: Any) -> None:
    """The plan as a table, its guarantee and its cost."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from pacplan.search.progress import interval_bar
    from pacplan.words import at_least, at_most, estimated

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
            cells = [at_least(lower), interval_bar(lower, upper, low, high), at_most(upper)]
        table.add_row(
            ">" if action == result.action else "",
            escape(str(action)),
            *cells,
            estimated(result.values[i]),
            f"{result.calls[i]:,}",
            style="bold" if action == result.action else None,
        )
    console.print(table)
    console.print()
    gap = f", gap {at_most(result.gap)}" if bounded else ""
    console.print(escape(f"Action {result.action}{gap}"), style="bold")
    console.print(escape(result.guarantee))
    if result.assumptions:
        console.print(escape(f"Given that {', '.join(result.assumptions)}."))
    console.print(result.effort)
