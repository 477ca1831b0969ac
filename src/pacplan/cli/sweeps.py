"""`pacplan sweep` and `pacplan reproduce`: many runs, written to a folder as they end."""

from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pacplan.cli.arguments import add_dask, add_out, add_quiet, add_workers
from pacplan.cli.endings import EndedError, Exit, failure, interrupted, unwritten, wrong_usage
from pacplan.cli.spelling import translated
from pacplan.cli.values import names

_REPRODUCE = """Run the MDP-GapE paper's experiments, and write a report with the paper's numbers beside
ours.

If it is stopped or killed, the same command continues. Exit codes as those of 'sweep'."""

_SWEEP = """Run planners on problems as a TOML file says; write a row for every run, and a summary.

Such a file is code, like a script: it names modules to import and functions to call. Run only those you
trust.

If it is stopped or killed, the same command continues. Exit codes: 0 all runs have a plan; 1 some
failed, and their rows say why, or a file could not be written; 2 wrong usage; 130 Ctrl-C."""


def add_to(commands: Any) -> None:
    """Add the commands to a parser."""
    reproduce = commands.add_parser(
        "reproduce",
        help="run the paper's experiments",
        description=_REPRODUCE,
        usage="pacplan reproduce WHAT [options]",
    )
    reproduce.set_defaults(run=run_reproduction)
    reproduce.add_argument("what", metavar="WHAT", help="table4, figure1, figure2 or all")
    reproduce.add_argument(
        "--mdps", type=int, default=200, metavar="N", help="random MDPs; by default %(default)s"
    )
    reproduce.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of the first MDP, and of the plans"
    )
    reproduce.add_argument(
        "--thresholds",
        type=names,
        metavar="NAMES",
        help="of MDP-GapE, separated by commas: 'paper' (the default) or 'lemma' for Table 4 and "
        "Figure 1; 'sharp', 'budget' (both by default) or 'published' for Figure 2",
    )
    reproduce.add_argument(
        "--planners",
        type=names,
        metavar="NAMES",
        help="names, separated by commas; by default those of the paper",
    )
    reproduce.add_argument("--quick", action="store_true", help="a small part, within two minutes")
    add_out(reproduce, "results/WHAT")
    sweep = commands.add_parser(
        "sweep",
        help="run planners as a TOML file says",
        description=_SWEEP,
        usage="pacplan sweep FILE [options]",
    )
    sweep.set_defaults(run=run_sweep)
    sweep.add_argument(
        "file", type=Path, metavar="FILE", help="a TOML file: planners, problems, budgets, seeds"
    )
    add_out(sweep, "FILE without .toml")
    for parser in (reproduce, sweep):
        add_workers(parser)
        add_dask(parser)
        add_quiet(parser)


def run_reproduction(asked: Namespace) -> None:
    """Reproduce what the command says."""
    from pacplan.experiments import Reproduction
    from pacplan.experiments.report import check_report, write_report

    folder = asked.out or Path("results") / asked.what
    with _sweeping(folder, translated):
        given = {"thresholds": asked.thresholds, "planners": asked.planners}
        lists = {key: tuple(value) for key, value in given.items() if value is not None}
        wanted = Reproduction(asked.what, mdps=asked.mdps, seed=asked.seed, quick=asked.quick, **lists)
        check_report(wanted, folder)
        records = _records(wanted.sweep(), folder, asked)
        write_report(wanted, records, folder)
    print(f"{len(records):,} runs; open {folder / 'report.html'}")
    _fail_if_any_failed(records)


def run_sweep(asked: Namespace) -> None:
    """Run the sweep of a file."""
    from pacplan.experiments import read_sweep, summary

    folder = asked.out or asked.file.with_suffix("")
    with _sweeping(folder, str):  # The file has settings as Python does.
        records = _records(read_sweep(asked.file), folder, asked)
        found = summary.write(folder, records)
    summary.show(found)
    print(f"\n{len(records):,} runs in {folder / 'runs.csv'}")
    _fail_if_any_failed(records)


def _records(wanted: Any, folder: Path, asked: Namespace) -> list[Any]:
    """Run a sweep as the options say."""
    from pacplan.experiments import dask_cluster, run

    if asked.dask is None:
        return run(wanted, folder, workers=asked.workers, progress=not asked.quiet)
    with dask_cluster(asked.dask, asked.workers) as (executor, at_once):
        return run(wanted, folder, workers=at_once, executor=executor, progress=not asked.quiet)


@contextmanager
def _sweeping(folder: Path, spoken: Callable[[str], str]) -> Iterator[None]:
    """End a sweep that is stopped, or that fails, with a word on how to continue.

    Args:
        folder: where its results are.
        spoken: puts what the library says into the user's words.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise interrupted(f"stopped; the same command continues from {folder}") from None
    except (TypeError, ValueError, ImportError) as error:
        raise wrong_usage(spoken(str(error))) from error
    except (OSError, RuntimeError) as error:
        if hasattr(error, "__notes__"):  # Raised by the user's problem.
            raise
        if isinstance(error, OSError):
            raise unwritten(error, folder) from error
        raise failure(error) from error


def _fail_if_any_failed(records: Sequence[Any]) -> None:
    failed = [record for record in records if record.error]
    if failed:
        first = failed[0]
        raise EndedError(
            f"{len(failed)} of {len(records)} runs failed; the first: {first.settings} on "
            f"{first.problem}, seed {first.problem_seed}: {first.error}",
            Exit.ERROR,
        )
