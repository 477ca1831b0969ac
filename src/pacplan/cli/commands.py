"""The commands of many plans: `compare`, `reproduce`, `sweep` and `verify`; and `warm`."""

import json
import os
import shlex
import time
from argparse import Namespace
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from pacplan.cli.catalogue import PLANNERS
from pacplan.cli.endings import Exit, end, reported
from pacplan.cli.options import QUIET, SET, WORKERS, add_command, names, problem_of

_COMPARE = f"""compare planners within a budget

Compare planners within a budget, on the same problems and seeds: regret, calls, time.

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

_COMMON = f"""{WORKERS}
{QUIET}
--dask ADDRESS  run on a Dask cluster: the address of its scheduler, or 'local' to start one here
--out FOLDER  folder for the results; by default """

_REPRODUCE = f"""run the paper's experiments

Run the MDP-GapE paper's experiments, and write a report with the paper's numbers beside
ours.

If it is stopped or killed, the same command continues.

WHAT  table4, figure1, figure2 or all
--mdps N  random MDPs; by default %(default)s
--seed N  of the first MDP, and of the plans
--thresholds NAMES  of MDP-GapE, separated by commas: 'paper' (the default) or 'lemma' for Table 4 and
  Figure 1; 'sharp', 'budget' (both by default) or 'published' for Figure 2
--planners NAMES  names, separated by commas; by default those of the paper
--quick  a small part, within two minutes
{_COMMON}results/WHAT"""

_SWEEP = f"""run the planners and problems of a TOML file

Run the planners and problems of a TOML file. Write a row for every run, and a summary.

Such a file is code, like a script: it names modules to import and functions to call. Run only those you
trust.

If it is stopped or killed, the same command continues. Rows say why runs failed.

FILE  a TOML file: planners, problems, budgets, seeds
{_COMMON}FILE without .toml"""

_VERIFY = f"""check the promises of planners

Check the promises of planners against exact answers, in many small plans designed to catch errors.
A broken promise is an error. After Ctrl-C the table so far is printed, and the file of --out continues.

--plans N  how many in all, shared among families and planners; by default %(default)s
--families NAMES  names, separated by commas; by default all
--planner NAME  names, separated by commas, or your own as module:name, a class or function that makes
  it; by default all planners that promise something
--out FILE  file to keep results in: the same command continues where it stopped
--seed N  of the cases and plans
{WORKERS}
{QUIET}
--json  print the report as JSON, and no progress"""

_WARM = f"""compile kernels before they are needed

Compile the kernels of planners before they are needed.

Kernels are kept in your cache folder, or in NUMBA_CACHE_DIR, and later processes start warm. Run this
command when you build an image, or before the tests of a project.

{WORKERS}
{QUIET}"""


def add_to(commands: Any) -> None:
    """Add the commands to a parser."""
    defaults = {"planners": "bracket,mdp-gape,uct,brue,kl-olop", "budget": 1000, "runs": 50}
    add_command(commands, "compare PROBLEM", compare, _COMPARE, seed=0, workers=1, **defaults)
    add_command(commands, "reproduce WHAT", reproduce, _REPRODUCE, mdps=200, seed=0)
    add_command(commands, "sweep FILE", sweep, _SWEEP)
    add_command(commands, "verify", verify, _VERIFY, plans=100_000, seed=0)
    about = f"planners to compile: {', '.join(PLANNERS)}, or your own as module:name; default: all"
    parser = add_command(commands, "warm", warm, _WARM)
    parser.add_argument("--planner", nargs="+", metavar="NAME", help=about)


def compare(asked: Namespace) -> None:
    """Compare planners side by side."""
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


def reproduce(asked: Namespace) -> None:
    """Run the paper's experiments, and write the report."""
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
        write_report(wanted, rows, folder, shlex.join(["pacplan", *asked.typed]))
    print(f"{len(rows):,} runs; open {folder / 'index.md'}")
    _end_if_any_failed(rows)


def sweep(asked: Namespace) -> None:
    """Run the sweep of a file."""
    from pacplan.experiments import read_sweep, records

    folder = asked.out or asked.file.with_suffix("")
    with reported(folder, said=str):  # The file has settings as Python does.
        rows = _rows(read_sweep(asked.file), folder, asked)
        found = records.write(folder, rows)
    records.show(found)
    print(f"\n{len(rows):,} runs in {folder / 'runs.csv'}")
    _end_if_any_failed(rows)


def _rows(wanted: Any, folder: Path, asked: Namespace) -> list[Any]:
    """Run a sweep as the options say."""
    from pacplan.experiments import dask_cluster, run

    here = nullcontext((None, asked.workers))
    with dask_cluster(asked.dask, asked.workers) if asked.dask else here as (executor, at_once):
        return run(wanted, folder, workers=at_once, executor=executor, progress=not asked.quiet)


def _end_if_any_failed(rows: Sequence[Any]) -> None:
    failed = [row for row in rows if row.error]
    if failed:
        first = failed[0]
        place = f"{first.settings} on {first.problem}, seed {first.problem_seed}"
        words = f"{len(failed)} of {len(rows)} runs failed; the first: {place}: {first.error}"
        end(Exit.ERROR, words)


def verify(asked: Namespace) -> None:
    """Check what planners promise, against exact answers."""
    from pacplan import testing
    from pacplan.registry import named
    from pacplan.views.terminal import show

    with reported(asked.out):
        chosen: Any = asked.planner
        if chosen is not None:
            chosen = named(chosen) if ":" in chosen else names(chosen)
        report = testing.verify(
            chosen,
            families=asked.families,
            plans=asked.plans,
            seed=asked.seed,
            workers=asked.workers or os.cpu_count() or 1,
            out=asked.out,
            progress=not (asked.json or asked.quiet),
        )
    if asked.json:
        print(json.dumps(report.to_dict(), indent=1))
    else:
        show(report.table(), "", *report.summary())
    if not report.complete:
        more = "" if asked.out is None else f"; the same command continues from {asked.out}"
        end(Exit.INTERRUPTED, f"stopped{more}")
    if not report.ok:
        end(Exit.ERROR)


def warm(asked: Namespace) -> None:
    """Compile kernels before they are needed."""
    from pacplan.algorithms import planners
    from pacplan.compiled.cache import folder
    from pacplan.views.progress import bar
    from pacplan.warming import warm as compiled_by_planner

    began, found = time.perf_counter(), []
    with reported():
        results = compiled_by_planner(asked.planner, workers=asked.workers)
    with bar(len(asked.planner or planners), 0, "planners", show=not asked.quiet) as advance:
        for compiled in results:
            found += compiled
            advance(1)
    if not all(lasting for _, lasting in found):
        end(Exit.ERROR, f"cannot keep kernels in {folder()}, so each process compiles its own")
    kernels, seconds = f"{len(found)} kernel{'s' * (len(found) != 1)}", time.perf_counter() - began
    print(f"Compiled {kernels} in {seconds:.0f} s. All kernels are in {folder()}.")
