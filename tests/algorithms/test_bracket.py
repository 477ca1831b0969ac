"""Bracket: its bounds hold as often as they promise, and the checks of that can fail."""

import numpy as np
import pytest

import pacplan
from hard_problems import (
    BANDITS,
    GAMMA,
    TREES,
    Kind,
    check_bounds,
    evidence,
    lens_on_searches,
    most,
    violations,
)

lens = pytest.fixture(lens_on_searches)


@pytest.mark.parametrize("kind", BANDITS + TREES, ids=str)
def test_bounds_hold(lens, kind):
    check_bounds(kind, 150, 0.5)


@pytest.mark.statistical
@pytest.mark.parametrize("delta", [0.1, 0.5])
@pytest.mark.parametrize("kind", BANDITS + TREES, ids=str)
def test_bounds_hold_in_thousands_of_runs(lens, kind, delta):
    check_bounds(kind, 3000, delta, budget=3000, seed=1)


@pytest.mark.parametrize("kind", BANDITS, ids=str)
def test_checks_fail_when_bounds_are_sold_below_cost(lens, kind):
    lens.above, lens.below = 8.0, 6.0
    above, below = violations(kind, 150, delta=0.1)
    assert above > most(150, 0.1)
    assert below > most(150, 0.1)


@pytest.mark.parametrize("kind", TREES, ids=str)
def test_check_below_fails_in_trees_too(lens, kind):
    lens.below = 6.0
    assert violations(kind, 100, delta=0.1)[1] > most(100, 0.1)


def check_evidence(lens, kind, runs=300, seed=0):
    """The product of all evidence against the truth, cut off at 50, has a mean of at most 1.

    With d forgotten it has not.
    """
    rng = np.random.default_rng(seed)
    planner = pacplan.Bracket(epsilon=0.2, delta=0.5, gamma=GAMMA, horizon=kind.horizon)
    values = []
    for run in range(runs):
        model = kind.draw(rng)
        planner.plan(model, 0, seed=run, budget=800)
        values.append([evidence(lens.last[0], model, kind.horizon, counted) for counted in (1.0, 0.0)])
    values = np.minimum(np.exp(values), 50.0)
    mean, error = values.mean(axis=0), values.std(axis=0) / np.sqrt(runs)
    assert mean[0] <= 1.0 + 5.5 * error[0]
    assert mean[1] > 1.0 + 5.5 * error[1]


@pytest.mark.parametrize("kind", [Kind(2, 2, 2), Kind(2, 2, 3), Kind(3, 2, 2, noise="none")], ids=str)
def test_evidence_against_the_truth_does_not_grow(lens, kind):
    check_evidence(lens, kind)
