"""`pacplan sweep` and `pacplan reproduce`: many runs, written to a folder as they end."""

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pacplan.cli.endings import EndedError, Exit, reported
from pacplan.cli.options import QUIET, WORKERS, add_command

_REPRODUCE = """run the paper's experiments

Run the MDP-GapE paper's experiments, and write a report with the paper's numbers beside
ours.

If it is stopped or killed, the same command continues. Exit codes as those of 'sweep'."""

_SWEEP = """run the planners and problems of a TOML file

Run the planners and problems of a TOML file. Write a row for every run, and a summary.

Such a file is code, like a script: it names modules to import and functions to call. Run only those you
trust.

If it is stopped or killed, the same command continues. Exit codes: 0 all runs have a plan; 1 some
failed, and their rows say why, or a file could not be written; 2 wrong usage; 130 Ctrl-C."""

_COMMON = f"""{WORKERS}
{QUIET}
--dask ADDRESS  run on a Dask cluster: the address of its scheduler, or 'local' to start one here
--out FOLDER  folder for the results; by default """

_PAPER = """
WHAT  table4, figure1, figure2 or all
--mdps N  random MDPs; by default %(default)s
--seed N  of the first MDP, and of the plans
--thresholds NAMES  of MDP-GapE, separated by commas: 'paper' (the default) or 'lemma' for Table 4 and
  Figure 1; 'sharp', 'budget' (both by default) or 'published' for Figure 2
--planners NAMES  names, separated by commas; by default those of the paper
--quick  a small part, within two minutes
"""


def add_to(commands: Any) -> None:
    """Add the commands to a parser."""
    options, file = (
        f"{_PAPER}{_COMMON}results/WHAT",
        "FILE  a TOML file: planners, problems, budgets, seeds",
    )
    add_command(commands, "reproduce WHAT", run_reproduction, _REPRODUCE, options, mdps=200, seed=0)
    add_command(commands, "sweep FILE", run_sweep, _SWEEP, f"{file}\n{_COMMON}FILE without .toml")


def run_reproduction(asked: Namespace) -> None:
    """Reproduce what the command says."""
    from pacplan.experiments import Reproduction
    from pacplan.experiments.report import write_report
    from pacplan.views.pictures import library

    folder = asked.out or Path("results") / asked.what
    with reported(folder):
        given = {"thresholds": asked.thresholds, "planners": asked.planners}
        lists = {key: tuple(value) for key, value in given.items() if value is not None}
        wanted = Reproduction(asked.what, mdps=asked.mdps, seed=asked.seed, quick=asked.quick, **lists)
        if {"figure1", "figure2"} & set(wanted.parts):
            library("matplotlib")
        rows = _rows(wanted.sweep(), folder, asked)
        write_report(wanted, rows, folder)
    print(f"{len(rows):,} runs; open {folder / 'index.md'}")
    _fail_if_any_failed(rows)


def run_sweep(asked: Namespace) -> None:
    """Run the sweep of a file."""
    from pacplan.experiments import read_sweep, records

    folder = asked.out or asked.file.with_suffix("")
    with reported(folder, said=str):  # The file has settings as Python does.
        rows = _rows(read_sweep(asked.file), folder, asked)
        found = records.write(folder, rows)
    records.show(found)
    print(f"\n{len(rows):,} runs in {folder / 'runs.csv'}")
    _fail_if_any_failed(rows)


def _rows(wanted: Any, folder: Path, asked: Namespace) -> list[Any]:
    """Run a sweep as the options say."""
    from pacplan.experiments import dask_cluster, run

    if asked.dask is None:
        return run(wanted, folder, workers=asked.workers, progress=not asked.quiet)
    with dask_cluster(asked.dask, asked.workers) as (executor, at_once):
        return run(wanted, folder, workers=at_once, executor=executor, progress=not asked.quiet)


def _fail_if_any_failed(rows: Sequence[Any]) -> None:
    failed = [row for row in rows if row.error]
    if failed:
        first = failed[0]
        place = f"{first.settings} on {first.problem}, seed {first.problem_seed}"
        words = f"{len(failed)} of {len(rows)} runs failed; the first: {place}: {first.error}"
        raise EndedError(words, Exit.ERROR)
