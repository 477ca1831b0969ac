"""The command `pacplan`."""

import ast
import json
import re
import shlex
import signal
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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
    """Exit codes, for scripts."""

    OK = 0
    ERROR = 1
    USAGE = 2
    NOT_REACHED = 3
    INTERRUPTED = 130


_WORKERS = typer.Option(help="Processes; by default one per core. 1 starts none.")
_DASK = typer.Option(
    help="Run on a Dask cluster: the address of its scheduler, or 'local' to start one here."
)


@app.callback()
def main() -> None:
    """Monte-Carlo planning in Markov decision processes, with guarantees."""


@app.command()
def plan(
    context: typer.Context,
    problem: Annotated[
        str,
        typer.Argument(
            help="A problem of pacplan.envs, such as 'garnet', a Gymnasium environment, such as "
            "'gym:FrozenLake-v1', or your own model as module:name, found from the current folder. "
            "If it is callable, it is called."
        ),
    ],
    planner: Annotated[
        str,
        typer.Option(
            help="auto (chosen for the problem, as pacplan.plan does), bracket, canopy, mdp-gape, "
            "sparse-sampling, uct, brue, olop, kl-olop, opd, op-mdp, stop, trailblazer, "
            "smooth-cruiser, ugape-mcts, or your own class as module:name."
        ),
    ] = "auto",
    epsilon: Annotated[
        str | None,
        typer.Option(
            help="How far from optimal the action may be; 0.5 by default. 5% is of the range of values."
        ),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(help="Probability with which the guarantee may fail; 0.1 by default."),
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
    memory_limit: Annotated[
        str | None,
        typer.Option(
            metavar="BYTES",
            help="Most memory for the records of the search, such as 500M or 2G (powers of 1024).",
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="File that receives, now and then, what --resume needs after a crash."),
    ] = None,
    every: Annotated[
        float | None, typer.Option(help="Seconds between two checkpoints; 60 by default.")
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on from the checkpoint, to the same plan as if nothing had happened. Seed, state "
            "and budget are those of the checkpoint; the rest of the command must be the same.",
        ),
    ] = False,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Setting of the problem, NAME=VALUE, e.g. states=50 (repeat)."),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            help="Setting of the planner, NAME=VALUE, e.g. rewards=known (repeat): any its class "
            "takes, functions as module:name."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the plan as JSON, and no progress.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
    html: Annotated[
        str | None,
        typer.Option(help="Page to write that shows the plan with its evidence, e.g. plan.html."),
    ] = None,
) -> None:
    """Decide what to do in a state, with a certificate.

    Exit codes: 0 the planner stopped by its own rule, or has none; 3 a budget, a deadline or a lack of
    memory stopped it before its rule, or a lack of memory before its limits (the plan is still
    printed); 130 Ctrl-C was pressed (the same); 1 the model failed, or a file could not be written; 2
    wrong usage.
    """
    from pacplan.engine.seeds import seed_sequence
    from pacplan.models.protocol import BrokenPromiseError
    from pacplan.planning import decided, decided_before
    from pacplan.registry import choice_settings, has_rule, planner_of, problem_maker
    from pacplan.views.page import check_page

    flags = {
        "epsilon": None if epsilon is None else _accuracy(epsilon),
        "delta": delta,
        "gamma": gamma,
        "horizon": horizon,
        "thresholds": thresholds,
        "goal": goal,
    }
    try:
        settings = _settings("--set", set_)
        given: dict[str, Any] = {key: value for key, value in flags.items() if value is not None}
        options = _settings("--option", option)
        for name in given.keys() & options.keys():
            raise ValueError(f"{name} is given twice, by --{name} and by --option {name}=")
        given |= options
        named = None if planner == "auto" else planner_of(planner, given)
        limits: dict[str, Any] = {
            "time_limit": time_limit,
            "memory_limit": None if memory_limit is None else _bytes(memory_limit),
            "progress": not (as_json or quiet),
        }
        start = None if state is None else _literal(state)
        if every is not None:
            limits["every"] = every
        if checkpoint is None and (resume or every is not None):
            raise ValueError("--resume and --every need a checkpoint: --checkpoint FILE")
        saved = checkpoint if resume else None
        root = seed_sequence(seed)
        kept = None if saved is None else _check_resumed(saved, start, seed, budget)
        if html is not None:
            check_page(html)
        model = problem_maker(problem, settings, seeded=False)(None)
        if kept is not None:
            root, start, budget = kept.seed, kept.state(model), kept.budget
        if named is None:
            given = choice_settings(given, model)
    except (TypeError, ValueError, ImportError) as error:
        raise _failure(error, Exit.USAGE) from error
    try:
        choice = None
        if kept is not None and named is None:
            choice = decided_before(kept, model, given)
        chosen = named if choice is None else choice.planner
        asked: dict[str, Any] = {"seed": root, "budget": budget, "checkpoint": checkpoint} | limits
        if chosen is None:
            choice, result = decided(model, start, given, **asked)
            chosen = choice.planner
        elif saved is None:
            result = chosen.plan(model, start, **asked)
        else:
            result = chosen.resume(saved, model, **limits)
            result = result if choice is None else choice.told(result)
    except (BrokenPromiseError, MemoryError) as error:
        raise _failure(error, Exit.ERROR) from error
    except Exception as error:
        if hasattr(error, "__notes__"):  # Raised by the user's model, which says where.
            traceback.print_exception(error)
            raise typer.Exit(Exit.ERROR) from error
        if isinstance(error, TypeError | ValueError):
            raise _failure(error, Exit.USAGE) from error
        if isinstance(error, OSError) and checkpoint is not None:
            words = f"cannot write the checkpoint {checkpoint}: {error.strerror or error}"
            raise _failure(words, Exit.ERROR) from error
        raise
    if as_json:
        print(json.dumps(result.to_dict(), indent=2))
    else:
        _show(result)
    if html is not None:
        try:
            result.to_html(html, command=_command(context, root.entropy))
        except (OSError, ValueError) as error:
            raise _failure(error, Exit.ERROR) from error
    if result.interrupted:
        left = checkpoint is not None and checkpoint.exists()
        raise _interrupted(f"stopped; --resume goes on from {checkpoint}" if left else "stopped")
    # Planners without their own rule end by the budget or the deadline, as they should.
    reached = ("certified", "rule") if has_rule(chosen) else ("certified", "rule", "budget", "deadline")
    if result.stopped_by not in reached:
        raise typer.Exit(Exit.NOT_REACHED)


@app.command()
def compare(
    problem: Annotated[
        str,
        typer.Argument(help="A problem as for 'plan'; one that takes a seed is drawn anew each run."),
    ],
    planners: Annotated[
        str, typer.Option(help="Names, or your own as module:name, separated by commas.")
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
    """Compare planners within a budget, on the same problems and seeds: regret, calls, time.

    Ctrl-C ends it; the problems that every planner has finished are shown, and the exit code is 130.
    """
    from pacplan import comparison
    from pacplan.registry import FIXED_BUDGET, planner_of, problem_maker
    from pacplan.views.style import check_picture

    try:
        settings = _settings("--set", set_)
        chosen = [
            planner_of(name, {"gamma": gamma} | FIXED_BUDGET.get(name, {})) for name in _names(planners)
        ]
        if plot is not None:
            check_picture(plot)
        rows = comparison.compare(
            problem_maker(problem, settings, seeded=True),
            chosen,
            budget=budget,
            runs=runs,
            seed=seed,
            on_interrupt="return",
        )
    except (TypeError, ValueError, ImportError) as error:
        raise _failure(error, Exit.USAGE) from error
    done = len(rows[0].regrets)
    comparison.show(rows, budget, done)
    if plot is not None:
        try:
            comparison.plot(rows, plot, budget)
        except (OSError, ValueError) as error:
            raise _failure(error, Exit.ERROR) from error
    if done < runs:
        raise _interrupted(f"stopped after {done} of {runs} problems")


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

    If it is stopped or killed, the same command continues. Exit codes as those of 'sweep'.
    """
    from pacplan.experiments import Reproduction
    from pacplan.experiments.report import check_report, write_report

    folder = out or Path("results") / what
    with _sweeping(folder):
        given = {"thresholds": thresholds, "planners": planners}
        lists = {key: tuple(_names(value)) for key, value in given.items() if value is not None}
        wanted = Reproduction(what, mdps=mdps, seed=seed, quick=quick, **lists)
        check_report(wanted, folder)
        records = _run_sweep(wanted.sweep(), folder, workers, dask, quiet)
        write_report(wanted, records, folder)
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
    """Run planners on problems as a TOML file says; writes a CSV row for every run, and a summary.

    Such a file is code, like a script: it names modules to import and functions to call. Run only
    those you trust.

    If it is stopped or killed, the same command continues. Exit codes: 0 all runs have a plan; 1
    some failed, and their rows say why, or a file could not be written; 2 wrong usage; 130 Ctrl-C.
    """
    from pacplan.experiments import groups, read_sweep, summary

    folder = out or file.with_suffix("")
    with _sweeping(folder):
        records = _run_sweep(read_sweep(file), folder, workers, dask, quiet)
        found = groups(records)
        summary.write(found, folder / "summary.csv")
    summary.show(found)
    typer.echo(f"\n{len(records):,} runs in {folder / 'runs.csv'}")
    _fail_if_any_failed(records)


@app.command()
def verify(
    plans: Annotated[
        int, typer.Option(help="How many in all, shared among families and planners.")
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
    """Check what planners promise against exact answers, in many small plans made to catch errors.

    Exit codes: 0 no promise was found broken; 1 one was, a plan raised an error, or the file of
    --out could not be written; 130 Ctrl-C ended it (the table so far is printed, and the file of --out
    continues from there); 2 wrong usage.
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
    except (TypeError, ValueError) as error:
        raise _failure(error, Exit.USAGE) from error
    except OSError as error:
        raise _failure(_unwritten(error, out), Exit.ERROR) from error
    except RuntimeError as error:
        raise _failure(error, Exit.ERROR) from error
    typer.echo(json.dumps(report.to_dict(), indent=1) if as_json else str(report))
    if not report.complete:
        words = "stopped" if out is None else f"stopped; the same command continues from {out}"
        raise _interrupted(words)
    if not report.ok:
        raise typer.Exit(Exit.ERROR)


def _run_sweep(
    wanted: Any, folder: Path, workers: int | None, dask: str | None, quiet: bool
) -> list[Any]:
    """Run a sweep as the options say."""
    from pacplan.experiments import dask_cluster, run

    if dask is None:
        return run(wanted, folder, workers=workers, progress=not quiet)
    with dask_cluster(dask, workers) as (executor, at_once):
        return run(wanted, folder, workers=at_once, executor=executor, progress=not quiet)


@contextmanager
def _sweeping(folder: Path) -> Iterator[None]:
    """End a sweep that is stopped, or that fails, with a word on how to continue."""
    try:
        yield
    except KeyboardInterrupt:
        raise _interrupted(f"stopped; the same command continues from {folder}") from None
    except (TypeError, ValueError, ImportError) as error:
        raise _failure(error, Exit.USAGE) from error
    except (OSError, RuntimeError) as error:
        if hasattr(error, "__notes__"):  # Raised by the user's problem.
            raise
        if isinstance(error, OSError):
            raise _failure(_unwritten(error, folder), Exit.ERROR) from error
        raise _failure(error, Exit.ERROR) from error


def _unwritten(error: OSError, place: Path | None) -> str:
    return (
        f"cannot write {error.filename or place}: {error.strerror or error}. What was finished is "
        "kept: once this is fixed, the same command continues"
    )


def _fail_if_any_failed(records: Sequence[Any]) -> None:
    failed = [record for record in records if record.error]
    if failed:
        typer.echo(
            f"pacplan: {len(failed)} of {len(records)} runs failed; the first: {failed[0].settings} "
            f"on {failed[0].problem}, seed {failed[0].problem_seed}: {failed[0].error}",
            err=True,
        )
        raise typer.Exit(Exit.ERROR)


def _names(text: str) -> list[str]:
    """The words of an option that takes several."""
    return [name.strip() for name in text.split(",") if name.strip()]


# Options of `plan` that change nothing about the plan; the seed is always given.
_BESIDES = ("html", "as_json", "quiet", "checkpoint", "every", "resume", "seed")


def _command(context: typer.Context, seed: Any) -> str:
    """The command that makes the plan again, as it was typed."""
    words = ["pacplan", "plan"]
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is None or source.name != "COMMANDLINE" or parameter.name in _BESIDES:
            continue
        given = context.params[parameter.name or ""]
        for value in given if isinstance(given, list) else [given]:
            words += [str(value)] if parameter.param_type_name == "argument" else []
            words += [parameter.opts[0], str(value)] if parameter.param_type_name == "option" else []
    return shlex.join([*words, "--seed", str(seed)])


def _failure(error: Exception | str, code: Exit) -> typer.Exit:
    typer.echo(f"pacplan: {error}", err=True)
    return typer.Exit(code)


def _interrupted(words: str) -> typer.Exit:
    """What ends the command after Ctrl-C; pressed again, it finds nothing left to stop."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    typer.echo(f"pacplan: {words}", err=True)
    return typer.Exit(Exit.INTERRUPTED)


def _accuracy(text: str) -> float | str:
    """A number, or the text itself, which may be per cent."""
    try:
        return float(text)
    except ValueError:
        return text


def _literal(text: str) -> Any:
    """A Python literal, or the text itself if it is none."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        if text.lstrip()[:1] in tuple("([{'\""):
            raise ValueError(f"cannot read {text!r} as a Python literal") from None
        return text


def _settings(flag: str, texts: Sequence[str] | None) -> dict[str, Any]:
    """What was given as NAME=VALUE, each name once."""
    found: dict[str, Any] = {}
    for text in texts or ():
        name, separator, value = (part.strip() for part in text.partition("="))
        if not separator or not name:
            raise ValueError(f"{flag} takes NAME=VALUE, got {text!r}")
        if name in found:
            raise ValueError(f"{flag} {name}= is given twice")
        found[name] = _literal(value)
    return found


def _bytes(text: str) -> int:
    """A number of bytes, with a suffix for powers of 1024."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if match is None:
        raise ValueError(f"--memory-limit takes a number of bytes such as 500M or 2G, got {text!r}")
    number, suffix = match.groups()
    return int(float(number) * 1024 ** " KMGT".index(suffix.upper() or " "))


def _check_resumed(path: Path, state: Any, seed: int | None, budget: int | None) -> Any:
    """The checkpoint; raises unless it is of a plan from this state, with this seed and budget."""
    from pacplan.engine.checkpoint import Checkpoint, plain_state

    try:
        saved = Checkpoint.read(path)
    except OSError as error:
        raise ValueError(f"cannot read the checkpoint {path}: {error.strerror}") from None
    written = saved.header["state"]
    for name, wanted, kept in (
        ("seed", seed, saved.entropy),
        ("budget", budget, saved.budget),
        ("state", written if state is None else plain_state(state), written),
    ):
        if wanted is not None and wanted != kept:
            raise ValueError(f"--{name} {wanted}: the plan of the checkpoint has {name} {kept}")
    return saved


def _show(result: Any) -> None:
    """The plan as a table, its guarantee and its cost."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from pacplan.core.keys import same
    from pacplan.core.words import at_least, at_most, estimated
    from pacplan.views.progress import interval_bar

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
            ">" if same(action, result.action) else "",
            escape(str(action)),
            *cells,
            estimated(result.values[i]),
            f"{result.calls[i]:,}",
            style="bold" if same(action, result.action) else None,
        )
    console.print(table)
    console.print()
    gap = f", gap {at_most(result.gap)}" if bounded else ""
    failed = "" if result.diagnosis is None else ", not certified"
    console.print(escape(f"Action {result.action}{gap}{failed}"), style="bold")
    console.print(escape(result.guarantee))
    if result.assumptions:
        console.print(escape(f"Given that {', '.join(result.assumptions)}."))
    console.print(result.effort)
    if result.diagnosis is not None:
        console.print(escape(result.diagnosis.explanation(command=True)))
