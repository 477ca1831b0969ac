"""OP-MDP: bounds that bracket the exact values at every iteration, and close."""

import numpy as np
import pytest

import pacplan
from pacplan import exact


def small(seed, **options):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(3), size=(4, 2))
    return pacplan.TabularMDP(p[..., [0, 1, 2, 2]] * [1, 1, 0.5, 0.5], rng.random((4, 2)), **options)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("options", [{}, {"terminal": [2]}], ids=str)
def test_bounds_bracket_the_exact_values_at_every_iteration_and_close(seed, options):
    model = small(seed, **options)
    truth = exact.discounted(model, gamma=0.7)[0]
    widths = []

    def callback(snapshot):
        assert (snapshot.lower <= truth + 1e-9).all()
        assert (truth <= snapshot.upper + 1e-9).all()
        widths.append(snapshot.upper.max() - snapshot.lower.max())

    plan = pacplan.OPMDP(gamma=0.7).plan(model, 0, seed=0, budget=20_000, callback=callback)
    assert (np.diff(widths) <= 1e-12).all()
    assert widths[-1] < 0.1 * widths[0]
    assert truth.max() - truth[plan.action] <= max(plan.gap, 0.0) + 1e-9


def test_a_finite_horizon_is_solved():
    model = pacplan.envs.garnet(states=20, actions=3, seed=0, noise="bernoulli")
    plan = pacplan.OPMDP(gamma=1.0, horizon=4).plan(model, 0, seed=0, budget=10**6)
    truth = exact.finite_horizon(model, gamma=1.0, horizon=4)[0, 0]
    assert plan.certified
    assert plan.gap <= 1e-9
    assert plan.lower[plan.action] == pytest.approx(truth.max())
    # Optimism leaves most of the 6^4 leaves alone.
    assert plan.episodes < 200


def test_the_leaf_that_matters_most_is_expanded():
    # From 0, action 0 leads to state 1 (p = .9) or 2 (p = .1). Both look alike, so 1 comes first, and
    # the bounds after each expansion can be worked by hand; gamma = .5, so a leaf is worth [0, 2].
    p = np.zeros((3, 1, 3))
    p[0, 0, 1:] = 0.9, 0.1
    p[1, 0, 1] = p[2, 0, 2] = 1.0
    model = pacplan.TabularMDP(p, [[0.0], [1.0], [0.0]])
    bounds = [
        (float(plan.lower[0]), float(plan.upper[0]))
        for plan in (
            pacplan.OPMDP(gamma=0.5).plan(model, 0, seed=0, budget=budget) for budget in (1, 2, 3)
        )
    ]
    # 1: .5 * [0, 2].  2: state 1 is worth 1 + .5 [0, 2], so .5 (.9 [1, 2] + .1 [0, 2]).
    # 3: below state 1 a leaf is left with .9 * .25 * 2 = .45, beside .1 * .5 * 2 = .1: it is next, and
    # state 1 is worth 1.5 + .25 [0, 2].
    assert bounds == [
        (0.0, 1.0),
        (pytest.approx(0.45), pytest.approx(1.0)),
        (pytest.approx(0.675), pytest.approx(1.0)),
    ]


def test_budget_counts_readings_of_the_table():
    model = pacplan.envs.garnet(actions=5, seed=0)
    with pytest.raises(ValueError, match="reads all 5 actions"):
        pacplan.OPMDP(gamma=0.7).plan(model, 0, seed=0, budget=4)
    for budget in (5, 9, 10, 1000):
        plan = pacplan.OPMDP(gamma=0.7).plan(model, 0, seed=0, budget=budget)
        assert plan.samples == budget // 5 * 5 == plan.calls.sum()
        assert plan.episodes == budget // 5
