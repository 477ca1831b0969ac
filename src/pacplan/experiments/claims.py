"""The paper's claims besides its runs: its bounds evaluated, and the planners that it did not run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pacplan import envs, theory
from pacplan.algorithms import SmoothCruiser, SparseSampling, StOP, TrailBlazer
from pacplan.algorithms.common.horizons import default_horizon
from pacplan.experiments.paper import DELTA, GAMMA, TABLE_EPSILONS, Reproduction

EPSILON = 1.0
"""Accuracy at which planners are tried: the coarsest, and easiest, of the paper's table."""

_TRIED = (SparseSampling, SmoothCruiser, TrailBlazer, StOP)


@dataclass(frozen=True)
class TheoryLine:
    """What a corollary of the paper says about the calls: medians over MDPs."""

    epsilon: float
    horizon: int
    proven: float
    order: float


def corollary_1_lines(reproduction: Reproduction) -> list[TheoryLine]:
    """Corollary 1 evaluated on every MDP, for each accuracy."""
    return _theory_lines(theory.corollary_1, reproduction.problem_seeds, reproduction.epsilons)


def corollary_2_lines(reproduction: Reproduction) -> tuple[list[TheoryLine], list[TheoryLine]]:
    """Corollary 2 summed over all trajectories, and Corollary 1, on the same few MDPs.

    Only for the accuracies of Table 4, since the sum takes seconds.
    """
    epsilons = [epsilon for epsilon in reproduction.epsilons if epsilon in TABLE_EPSILONS]
    seeds = reproduction.few_seeds
    return _theory_lines(theory.all_gaps, seeds, epsilons), _theory_lines(
        theory.corollary_1, seeds, epsilons
    )


def _theory_lines(
    bound: Callable[..., theory.Bound], seeds: Sequence[int], epsilons: Sequence[float]
) -> list[TheoryLine]:
    models = [envs.garnet(seed=seed) for seed in seeds]
    found = []
    for epsilon in epsilons:
        horizon = default_horizon(epsilon, GAMMA)
        settings = {"gamma": GAMMA, "horizon": horizon, "epsilon": epsilon, "delta": DELTA}
        bounds = [bound(model, **settings) for model in models]
        proven = horizon * float(np.median([each.proven for each in bounds]))
        order = horizon * float(np.median([each.order for each in bounds]))
        found.append(TheoryLine(epsilon, horizon, proven, order))
    return found


@dataclass(frozen=True)
class ComplexityLine:
    """A line of the paper's Table 2, with the medians over MDPs for each accuracy."""

    line: theory.Complexity
    calls: dict[float, tuple[float, float]]


def table_2_lines(reproduction: Reproduction) -> list[ComplexityLine]:
    """The paper's Table 2 evaluated on every MDP, for the accuracies of Table 4."""
    models = [envs.garnet(seed=seed) for seed in reproduction.problem_seeds]
    medians: list[dict[float, tuple[float, float]]] = []
    lines: Sequence[theory.Complexity] = ()
    for epsilon in (e for e in reproduction.epsilons if e in TABLE_EPSILONS):
        horizon = default_horizon(epsilon, GAMMA)
        tables = [
            theory.table_2(model, gamma=GAMMA, horizon=horizon, epsilon=epsilon) for model in models
        ]
        lines = tables[0]
        medians = medians or [{} for _ in lines]
        for place, found in enumerate(zip(*tables, strict=True)):
            least = float(np.median([line.least for line in found]))
            most = float(np.median([line.most for line in found]))
            medians[place][epsilon] = (least, most)
    return [ComplexityLine(line, calls) for line, calls in zip(lines, medians, strict=True)]


@dataclass(frozen=True)
class Attempt:
    """How a planner that the paper calls theoretical did at epsilon = 1 on one of the MDPs.

    Attributes:
        planner: its name.
        seed: of the MDP.
        predicted: calls that the planner says it would take, if it can.
        calls: those it made.
        memory: bytes of its records, if these are all that it keeps.
        stopped_by: why it stopped; "refused" if it did not begin.
        words: what it says about its answer, or why it refuses.
    """

    planner: str
    seed: int
    predicted: float | None
    calls: int
    memory: int | None
    stopped_by: str
    words: str


def attempts(reproduction: Reproduction) -> list[Attempt]:
    """Each of these planners on a few of the MDPs, within a budget."""
    found = []
    for kind in _TRIED:
        planner = kind(epsilon=EPSILON, delta=DELTA, gamma=GAMMA)
        for seed in reproduction.few_seeds:
            model = envs.garnet(seed=seed)
            predicted = None
            if isinstance(planner, SparseSampling | SmoothCruiser):
                predicted = float(planner.calls(model))
            try:
                plan = planner.plan(model, seed=seed, budget=reproduction.enough)
            except ValueError as refusal:
                found.append(Attempt(kind.name, seed, predicted, 0, None, "refused", str(refusal)))
                continue
            # StOP's policies are Python objects, which its records do not count.
            memory = None if isinstance(planner, StOP) else plan.memory
            why = plan.stopped_by
            found.append(Attempt(kind.name, seed, predicted, plan.samples, memory, why, plan.guarantee))
    return found
