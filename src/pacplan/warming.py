"""Compile beforehand what plans need: for images, for continuous integration, for a first talk.

A kernel is compiled for a planner, and for two of them also for whether equal states are merged. Each
job makes a small plan of one such kind, which compiles what is not in the cache yet.
"""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import as_completed
from inspect import signature
from typing import Any, NamedTuple, get_args

from pacplan.agent import Agent
from pacplan.algorithms import planners
from pacplan.compiled.cache import Compilation, compilations
from pacplan.compiled.tiered import waiting
from pacplan.core import checks
from pacplan.engine.executors import process_pool
from pacplan.envs import game_tree, garnet
from pacplan.registry import planner_of
from pacplan.views.outline import outline

# Enough for the records of a search to grow, which has kernels of its own.
_CALLS = 3000
_STATES = 15
_SHORT = {"epsilon": 0.5, "delta": 0.1, "gamma": 0.3}
# Settings with which a plan in these models is small, where those of the others do not serve.
_SETTINGS: dict[str, dict[str, Any]] = {
    "sparse-sampling": {"gamma": 0.5, "horizon": 2, "width": 2},
    "opd": {"epsilon": 0.0, "gamma": 0.7, "horizon": 4, "rewards": "deterministic"},
    "stop": _SHORT,
    "trailblazer": _SHORT,
    "smooth-cruiser": _SHORT,
    "ugape-mcts": {"epsilon": 0.0},
    "atlas": {"epsilon": 0.5, "delta": 0.1, "gamma": 0.7},
}
_USUAL = {"epsilon": 0.0, "delta": 0.1, "gamma": 0.7, "horizon": 4}


class Job(NamedTuple):
    """Kernels that are compiled together.

    Attributes:
        planner: a name of `pacplan.planners`.
        merge: the planner's setting, if it has one.
    """

    planner: str
    merge: str | None = None


def jobs(names: Sequence[str] | None = None) -> list[Job]:
    """What there is to compile.

    Args:
        names: planners; None: everything.

    Raises:
        ValueError: there is no planner of that name.
    """
    found = []
    for name in planners if names is None else names:
        takes = signature(type(planner_of(name, _small(name)))).parameters
        merges = get_args(takes["merge"].annotation) if "merge" in takes else ()
        # Equal states share a node either way, so it is the same kernel.
        found += [Job(name, merge) for merge in merges if merge != "stationary"] or [Job(name)]
    return found


def warm(
    names: Sequence[str] | None = None, *, workers: int | None = None
) -> Iterator[list[Compilation]]:
    """Compile what is not there yet.

    Args:
        names: as for `jobs`.
        workers: processes; by default one per core. 1 starts none.

    Returns:
        For each job, once it is done, what was compiled for it.

    Raises:
        ValueError: there is no such planner, or fewer than one process.
    """
    if workers is None:
        workers = os.cpu_count() or 1
    return _done(jobs(names), checks.integer("workers", workers, least=1))


def _done(todo: list[Job], workers: int) -> Iterator[list[Compilation]]:
    if workers < 2:
        yield from map(run, todo)
        return
    with process_pool(min(workers, len(todo))) as pool:
        for done in as_completed([pool.submit(run, job) for job in todo]):
            yield done.result()


def run(job: Job) -> list[Compilation]:
    """Do a job in this process; returns what was compiled for it."""
    before = len(compilations)
    with waiting():
        _plan(job)
    return compilations[before:]


def _plan(job: Job) -> None:
    merge = {} if job.merge is None else {"merge": job.merge}
    planner = planner_of(job.planner, _small(job.planner) | merge)
    game = job.planner in planners and planners[job.planner].two_player
    table = game_tree([[0.2, 0.8], [0.4, 0.6]]) if game else None
    model = table or garnet(_STATES, 2, 1 if job.planner == "opd" else 2)
    needs_none = job.planner == "sparse-sampling"
    plan = planner.plan(model, 0, seed=0, budget=None if needs_none else _CALLS)
    if plan.tree is not None:
        outline(plan.tree, 10)
    try:
        planner.check_reuse(model)
    except ValueError:
        return
    agent = Agent(planner, model, budget=200, reuse=True, seed=0)
    agent.act(0)
    agent.act(1 + agent.history[-1].plan.action)


def _small(name: str) -> dict[str, Any]:
    """Settings that make a plan of a planner small."""
    if name in _SETTINGS:
        return _SETTINGS[name]
    takes = signature(planners[name]).parameters if name in planners else {}
    return {key: value for key, value in _USUAL.items() if key in takes}
