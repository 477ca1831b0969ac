"""What the user declares: rewards alone, which Bracket counts with, and bounds on values in OPD."""

from collections import Counter

import numpy as np
import pytest

import pacplan
from hard_problems import GAMMA, Kind, lens_on_searches, most
from pacplan import BrokenPromiseError, exact

lens = pytest.fixture(lens_on_searches)
DECLARED = {"rewards": "deterministic", "transitions": "deterministic"}


def table(rng, successors=2, noise="bernoulli", ends=False):
    """A small table, with ends if wanted."""
    states, actions = int(rng.integers(3, 9)), int(rng.integers(1, 4))
    shape = (states, actions, successors)
    return pacplan.TabularMDP(
        rng.dirichlet(np.ones(successors), shape[:2]),
        rng.uniform(0.0, 1.0, shape[:2]),
        successors=np.argsort(rng.random((*shape[:2], states)), axis=-1)[..., :successors],
        terminal=[states - 1] if ends else None,
        noise=noise,
    )


def values(model, gamma, horizon):
    """Optimal values by depth and state, and of the root's actions."""
    q = exact.finite_horizon(model, gamma=gamma, horizon=horizon)
    return np.nanmax(q, axis=2), q[0, 0]


@pytest.mark.parametrize(
    "known",
    [
        {"value_bounds": (lambda s, h: 0.0, lambda s, h: 0.05 * (4 - h))},
        {"value_bounds": (lambda s, h: 0.95 * (4 - h), lambda s, h: 4.0)},
        {"value_bounds": (5.0, 9.0)},
        {"value_range": (0.0, 0.2)},
    ],
    ids=["too low", "too high", "impossible", "range"],
)
def test_false_bounds_are_noticed(known):
    model = table(np.random.default_rng(0), 1, "none")
    with pytest.raises(BrokenPromiseError, match="correct value_bounds= or value_range="):
        pacplan.OPD(epsilon=0.01, gamma=0.9, horizon=4, **DECLARED, **known).plan(model, 0, seed=0)


def test_bounds_on_values_save_calls():
    horizon, calls = 6, {0.0: 0, 0.2: 0, None: 0}
    for seed in range(5):
        model = table(np.random.default_rng(seed), 1, "none")
        v, q = values(model, GAMMA, horizon)
        for slack in calls:
            bounds = None
            if slack is not None:
                bounds = (lambda s, h, t=slack: v[h, s] - t), (lambda s, h, t=slack: v[h, s] + t)  # noqa: B023
            planner = pacplan.OPD(
                epsilon=0.05, gamma=GAMMA, horizon=horizon, value_bounds=bounds, **DECLARED
            )
            plan = planner.plan(model, 0, seed=seed)
            assert plan.certified and q.max() - q[plan.action] <= 0.05 + 1e-9
            assert (plan.lower <= q + 1e-9).all() and (q <= plan.upper + 1e-9).all()
            calls[slack] += plan.samples
    assert calls[0.0] < calls[0.2] < calls[None]


# Rewards alone.


@pytest.mark.parametrize(
    ("declared", "successors", "words"),
    [
        (DECLARED, 1, "nothing is random"),
        ({"rewards": "deterministic"}, 1, "nothing is random"),
        ({"rewards": "deterministic"}, 2, "='deterministic', but"),
        ({"transitions": "deterministic"}, 2, "more than one successor"),
    ],
)
def test_what_bracket_cannot_take(declared, successors, words):
    model = table(np.random.default_rng(0), successors, "none" if successors == 1 else "bernoulli")
    with pytest.raises(ValueError, match=words):
        pacplan.Bracket(epsilon=0.1, delta=0.1, gamma=0.9, **declared).plan(model, 0, seed=0)


def test_a_last_step_whose_reward_is_known_is_not_taken():
    calls = Counter()

    def step(state, action, rng):
        steps, place = state
        calls[state, action] += 1
        return (steps + 1, int(rng.integers(2))), (0.1 + 0.2 * action + 0.3 * place), False

    model = pacplan.Simulator(step, actions=2, successors=2, reward_range=(0, 1))
    planner = pacplan.Bracket(epsilon=0.05, delta=0.1, gamma=1.0, horizon=2, rewards="deterministic")
    plan = planner.plan(model, (0, 0), seed=0, budget=100_000)
    assert plan.certified and plan.action == 1
    last = [n for ((steps, _), _), n in calls.items() if steps == 1]
    # In a tree each action of the root has its own pairs.
    assert len(last) == 4 and max(last) <= 2
    assert calls[(0, 0), 1] > 10


@pytest.mark.parametrize("horizon", [2, 4])
def test_bounds_hold_with_rewards_told(horizon):
    kind = Kind(horizon, 2, 2, "none", correlated=False)
    rng = np.random.default_rng(11)
    runs, delta, failures = 300, 0.5, 0
    planner = pacplan.Bracket(
        epsilon=0.02, delta=delta, gamma=GAMMA, horizon=kind.horizon, rewards="deterministic"
    )
    for run in range(runs):
        model = kind.draw(rng)
        _, q = values(model, GAMMA, kind.horizon)
        plan = planner.plan(model, 0, seed=run, budget=int(rng.integers(20, 400)))
        failures += bool(
            (plan.lower > q + 1e-9).any()
            or plan.upper.max() < q.max() - 1e-9
            or q.max() - q[plan.action] > max(0.0, plan.gap) + 1e-9
        )
    assert failures <= most(runs, delta)


@pytest.mark.parametrize("merge", ["tree", "depth", "stationary"])
def test_outcomes_that_a_table_names_twice_are_one(merge):
    """Two different ends, or the same state in two entries."""
    transitions = np.array([[[0.5, 0.5]] * 2, [[0.3, 0.7]] * 2, [[1.0, 0.0]] * 2, [[1.0, 0.0]] * 2])
    to = np.array([[[1, 1], [2, 3]], [[2, 3], [1, 1]], [[2, 2]] * 2, [[3, 3]] * 2])
    rewards = np.array([[0.5, 0.7], [0.1, 0.9], [0.0, 0.0], [0.0, 0.0]])
    model = pacplan.TabularMDP(transitions, rewards, successors=to, terminal=[2, 3])
    assert model.successors == 1
    planner = pacplan.OPD(epsilon=0.01, gamma=0.9, horizon=3, goal="value", merge=merge, **DECLARED)
    plan = planner.plan(model, 0, seed=0)
    assert plan.certified and abs(plan.value - values(model, 0.9, 3)[1].max()) <= 0.01
