"""Compile beforehand what plans need: for images, for continuous integration, for a first talk.

A kernel is compiled for a planner, for what its nodes stand for (`merge`), for a kind of model, and for
whether bounds on values come with it. Each job makes a small plan of one such kind, which compiles what
is not in the cache yet.
"""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import as_completed
from functools import cache
from inspect import signature
from typing import Any, NamedTuple, get_args

import numba

from pacplan.agent import Agent
from pacplan.algorithms import Planner, planners
from pacplan.bounds import expectation_interval, mean_interval
from pacplan.compiled.announcements import Compilation, compilations
from pacplan.compiled.cache import used
from pacplan.compiled.private import warned
from pacplan.compiled.record import read_record, write_record
from pacplan.compiled.tiered import waiting
from pacplan.core import checks
from pacplan.engine.executors import process_pool
from pacplan.envs import game_tree, garnet
from pacplan.models import Simulator
from pacplan.registry import planner_of
from pacplan.views.outline import outline

KINDS = ("tabular", "Python", "jitted")
"""The kinds of models that kernels are compiled for."""

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
}
_USUAL = {"epsilon": 0.0, "delta": 0.1, "gamma": 0.7, "horizon": 4}
# They read tables.
_READING = ("op-mdp", "value-iteration")
_BOUNDS = "bounds"
_RECORD = "warm"


class Job(NamedTuple):
    """Kernels that are compiled together.

    Attributes:
        planner: a name of `pacplan.planners`, or "bounds" for what `pacplan.bounds` computes.
        kind: of model.
        settings: of the planner, besides those that make the plan small.
    """

    planner: str
    kind: str = "tabular"
    settings: tuple[tuple[str, Any], ...] = ()


class Result(NamedTuple):
    """What a job has led to.

    Attributes:
        compiled: the kernels that were compiled for it.
        files: of all kernels that its process has used so far; those of the job are among them.
        kept: whether what was compiled could be kept.
    """

    compiled: tuple[Compilation, ...] = ()
    files: tuple[str, ...] = ()
    kept: bool = True


def jobs(names: Sequence[str] | None = None) -> list[Job]:
    """What there is to compile.

    Args:
        names: planners; None: everything.

    Raises:
        ValueError: there is no planner of that name.
    """
    found = []
    for name in [_BOUNDS, *planners] if names is None else names:
        if name == _BOUNDS:
            found.append(Job(name))
        else:
            found += _jobs_of(name, type(planner_of(name, _small(name))))
    return found


def _jobs_of(name: str, planner: type[Planner]) -> Iterator[Job]:
    takes = signature(planner).parameters
    merges = get_args(takes["merge"].annotation) if "merge" in takes else ()
    # Equal states share a node either way, so it is the same kernel.
    ways = [merge for merge in merges if merge != "stationary" or "depth" not in merges] or [None]
    for kind in KINDS[:1] if name in _READING else KINDS:
        for way in ways:
            chosen = () if way is None else (("merge", way),)
            yield Job(name, kind, chosen)
            if "value_bounds" in takes:
                yield Job(name, kind, (*chosen, ("value_bounds", (0.0, 4.0))))


def warm(names: Sequence[str] | None = None, *, workers: int | None = None) -> Iterator[Result]:
    """Compile what is not there yet.

    Args:
        names: as for `jobs`.
        workers: processes; by default one per core. 1 starts none.

    Returns:
        A result for each job, once it is done or known to be done already.

    Raises:
        ValueError: there is no such planner, or fewer than one process.
    """
    if workers is None:
        workers = os.cpu_count() or 1
    return _done(jobs(names), checks.integer("workers", workers, least=1))


def _done(wanted: list[Job], workers: int) -> Iterator[Result]:
    there = read_record(_RECORD)
    todo = []
    for job in wanted:
        if repr(job) in there:
            yield Result()
        else:
            todo.append(job)
    try:
        for job, result in _results(todo, min(workers, len(todo))):
            # Of a user's own planner it is not known whether it was edited.
            if result.kept and ":" not in job.planner:
                there[repr(job)] = list(result.files)
            yield result
    finally:
        if todo:
            write_record(_RECORD, there)


def _results(todo: list[Job], processes: int) -> Iterator[tuple[Job, Result]]:
    if processes < 2:
        for job in todo:
            yield job, run(job)
        return
    with process_pool(processes) as pool:
        doing = {pool.submit(run, job): job for job in todo}
        for done in as_completed(doing):
            yield doing[done], done.result()


def run(job: Job) -> Result:
    """Do a job in this process."""
    before = len(compilations)
    if job.planner == _BOUNDS:
        mean_interval(0.5, 0.1)
        expectation_interval([0.5, 0.5], [0.0, 1.0], 0.1)
    else:
        with waiting():
            _plan(job)
    compiled = tuple(done for done in compilations[before:] if done.is_kernel)
    kept = all(done.lasting for done in compiled) and "folder" not in warned
    return Result(compiled, tuple(sorted(used)), kept)


def _plan(job: Job) -> None:
    planner = planner_of(job.planner, _small(job.planner) | dict(job.settings))
    model = _model(job)
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


def _model(job: Job) -> Any:
    """A small model of the kind, which the planner can handle."""
    game = job.planner in planners and planners[job.planner].two_player
    if job.kind == "tabular":
        if game:
            return game_tree([[0.2, 0.8], [0.4, 0.6]])
        return garnet(_STATES, 2, 1 if job.planner == "opd" else 2)
    step = _move if game else _step
    if job.kind == "jitted":
        step = _jitted(step)
    return Simulator(step, actions=2, successors=1, two_player=game)


@cache
def _jitted(step: Any) -> Any:
    return numba.njit(step)


def _step(state: Any, action: Any, rng: Any) -> Any:
    """Down a tree of two actions, and from its leaves back to the root."""
    after = 2 * state + 1 + action
    return after if after < _STATES else 0, 0.5 * action, False


def _move(state: Any, action: Any, rng: Any) -> Any:
    """A game of three moves, which the first player wins every other time."""
    after = 2 * state + 1 + action
    over = after >= _STATES // 2
    return after, 1.0 if over and rng.random() < 0.5 else 0.0, over
