"""Compile kernels before they are needed: for images, for continuous integration, for a first talk."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import as_completed
from inspect import signature
from typing import Any

from pacplan.algorithms import planners
from pacplan.compiled.cache import compilations
from pacplan.compiled.tiered import waiting
from pacplan.core import checks
from pacplan.envs import game_tree, garnet
from pacplan.parallel.pools import process_pool
from pacplan.registry import planner_of

# Calls of a plan: enough for the arrays of a search to grow, which has kernels of its own.
_CALLS = 3000
# Settings with which a plan is small, without a horizon and with one; and others, if these are refused.
_ENDLESS = {"epsilon": 0.5, "delta": 0.1, "gamma": 0.3}
_USUAL = {"epsilon": 0.0, "delta": 0.1, "gamma": 0.7, "horizon": 4}
_INSTEAD: dict[str, dict[str, Any]] = {
    "sparse-sampling": {"gamma": 0.5, "horizon": 2, "width": 2},
    "opd": _USUAL | {"rewards": "deterministic"},
    "atlas": _ENDLESS,
}


def warm(
    names: Sequence[str] | None = None, *, workers: int | None = None
) -> Iterator[list[tuple[str, bool]]]:
    """Compile the kernels of planners that are not in the cache yet.

    Args:
        names: the planners; None: all of them.
        workers: number of processes; by default one per core. 1 starts none.

    Returns:
        For each planner, once it is done, the kernels that were compiled for it, and whether each is
        kept.

    Raises:
        ValueError: a planner is unknown, or `workers` is less than 1.
    """
    for name in names or ():
        planner_of(name, _settings(name))
    processes = checks.integer("workers", os.cpu_count() if workers is None else workers, least=1)
    return _compiled(list(planners if names is None else names), processes)


def _compiled(names: list[str], workers: int) -> Iterator[list[tuple[str, bool]]]:
    if workers == 1:
        yield from map(compile_kernels, names)
        return
    with process_pool(min(workers, len(names))) as pool:
        for done in as_completed([pool.submit(compile_kernels, name) for name in names]):
            yield done.result()


def compile_kernels(name: str) -> list[tuple[str, bool]]:
    """Make small plans with a planner, in this process; returns the kernels that were compiled."""
    before, settings = len(compilations), _settings(name)
    model: Any = game_tree([[0.2, 0.8], [0.4, 0.6]])
    with waiting():
        for merge in [{"merge": "tree"}, {"merge": "depth"}] if name in ("mdp-gape", "opd") else [{}]:
            planner = planner_of(name, settings | merge)
            if not planner.two_player:
                model = garnet(15, 2, 1 if name == "opd" else 2)
            planner.plan(model, 0, seed=0, budget=None if name == "sparse-sampling" else _CALLS)
    return compilations[before:]


def _settings(name: str) -> dict[str, Any]:
    """Settings with which a plan is small."""
    takes = signature(planners[name]).parameters if name in planners else {}
    usual = _USUAL if "horizon" in takes else _ENDLESS
    return _INSTEAD.get(name, {key: value for key, value in usual.items() if key in takes})
