"""OPD: the order of its expansions, its bounds, its certain answers, what it refuses."""

import numpy as np
import pytest

import pacplan
from pacplan import exact


def test_expansions_follow_the_rule_of_the_paper():
    # States tell the whole history, so each call says which leaf is being expanded.
    gamma = 0.8
    asked = []

    def reward(history):
        return np.random.default_rng(list(history)).random()

    def step(state, action, rng):
        asked.append((state, action))
        return (*state, action), reward((*state, action)), False

    model = pacplan.Simulator(step, actions=3, successors=1)
    pacplan.OPD(gamma=gamma, rewards="deterministic").plan(model, (), seed=0, budget=300)
    leaves = {(): 0.0}
    for expansion in range(100):
        calls = asked[3 * expansion : 3 * expansion + 3]
        leaf = calls[0][0]
        assert calls == [(leaf, action) for action in range(3)]
        bounds = {s: u + gamma ** len(s) / (1 - gamma) for s, u in leaves.items()}
        assert bounds[leaf] == pytest.approx(max(bounds.values()), abs=1e-9)
        earned = leaves.pop(leaf)
        for action in range(3):
            leaves[*leaf, action] = earned + gamma ** len(leaf) * reward((*leaf, action))


def test_bounds_only_get_closer():
    model = pacplan.envs.garnet(states=30, actions=3, successors=1, seed=0)
    truth = exact.discounted(model, gamma=0.7)[0]
    widths = []
    for budget in (1, 2, 3, 4, 30, 31, 1000, 30_000):
        plan = pacplan.OPD(gamma=0.7).plan(model, 0, seed=0, budget=budget)
        assert (plan.lower <= truth + 1e-9).all() and (truth <= plan.upper + 1e-9).all()
        assert truth.max() - truth[plan.action] <= max(plan.gap, 0.0) + 1e-9
        widths.append(plan.upper.max() - plan.lower.max())
    assert widths == sorted(widths, reverse=True) and widths[-1] < 0.05


FIXED = {"transitions": "deterministic", "rewards": "deterministic"}


def random_table(rng, may_end):
    """A small table in which nothing is random, with costs, and with ends if wanted."""
    states, actions = int(rng.integers(3, 12)), int(rng.integers(1, 4))
    low, high = sorted(rng.uniform(-2, 2, 2))
    return pacplan.TabularMDP(
        np.ones((states, actions, 1)),
        rng.uniform(low, high, (states, actions, 1)),
        successors=rng.integers(0, states, (states, actions, 1)),
        terminal=[states - 1] if may_end else None,
        reward_range=(low, high),
    )


@pytest.mark.parametrize("merge", ["tree", "depth", "stationary"])
@pytest.mark.parametrize("horizon", [None, 1, 6])
def test_certified_answers_are_right(merge, horizon):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        model = random_table(rng, may_end=seed % 2 == 0)
        gamma, epsilon = rng.uniform(0.2, 0.8), rng.uniform(0.05, 1.0)
        planner = pacplan.OPD(gamma=gamma, epsilon=epsilon, horizon=horizon, merge=merge)
        plan = planner.plan(model, 0, seed=seed)
        truth = (
            exact.discounted(model, gamma=gamma)[0]
            if horizon is None
            else exact.finite_horizon(model, gamma=gamma, horizon=horizon)[0, 0]
        )
        assert plan.certified and plan.gap <= epsilon
        assert truth.max() - truth[plan.action] <= epsilon + 1e-9
        assert (plan.lower <= truth + 1e-9).all() and (truth <= plan.upper + 1e-9).all()


def test_one_sequence_is_enough_if_nothing_better_is_possible():
    # A fall ends everything, and one of three actions makes it inevitable three steps later.
    def step(state, action, rng):
        place, doomed = state
        doomed = doomed + 1 if doomed or action == 2 else 0
        return (place + action, doomed), 1.0, doomed == 3

    model = pacplan.Simulator(step, actions=3, successors=1, reward_range=(0, 1))
    fixed = {"rewards": "deterministic"}
    plan = pacplan.OPD(gamma=0.95, epsilon=0.01, horizon=200, **fixed).plan(model, (0, 0), seed=0)
    assert plan.certified
    assert plan.action != 2
    assert plan.samples < 5 * 200
    endless = pacplan.OPD(gamma=0.95, epsilon=0.1, **fixed).plan(model, (0, 0), seed=0)
    assert endless.certified
    assert endless.samples < 5 * 200


def test_merging_saves_calls():
    side = 6

    def step(state, action, rng):
        x, y = state
        dx, dy = ((1, 0), (-1, 0), (0, 1), (0, -1))[action]
        x, y = min(max(x + dx, 0), side - 1), min(max(y + dy, 0), side - 1)
        return (x, y), float((x, y) == (side - 1, side - 1)), False

    model = pacplan.Simulator(step, actions=4, successors=1, reward_range=(0, 1))
    calls = {}
    for merge in ("tree", "depth", "stationary"):
        planner = pacplan.OPD(gamma=0.9, epsilon=0.2, horizon=14, merge=merge, rewards="deterministic")
        plan = planner.plan(model, (0, 0), seed=0, budget=50_000)
        calls[merge] = plan.samples
        assert plan.certified == (merge != "tree")
    assert calls["depth"] < 14 * side**2 * 4
    # Every pair is called once, and one call in ten is a check.
    assert calls["stationary"] <= side**2 * 4 / 0.9 + 1


@pytest.mark.parametrize("merge", ["tree", "depth", "stationary"])
@pytest.mark.parametrize(
    ("what", "words"), [("state", "second successor"), ("end", "second successor"), ("reward", "paid")]
)
def test_a_pair_that_does_something_else_is_noticed(merge, what, words):
    def step(state, action, rng):
        odd = rng.random() < 0.3
        return (
            (state + 7 * action + (what == "state" and odd)) % 100,
            0.5 + 0.1 * (what == "reward" and odd),
            what == "end" and odd,
        )

    model = pacplan.Simulator(step, actions=3, successors=None, reward_range=(0, 1))
    planner = pacplan.OPD(gamma=0.99, epsilon=0.01, merge=merge, **FIXED)
    with pytest.raises(pacplan.BrokenPromiseError, match=words):
        planner.plan(model, 0, seed=0, budget=20_000)


def test_refusals():
    """What the model or its user does not say is not taken for granted."""
    fixed = pacplan.envs.garnet(successors=1, seed=0)
    noisy = pacplan.envs.garnet(successors=1, seed=0, noise="bernoulli")
    steps = pacplan.TabularMDP(np.ones((2, 1, 2, 1)), np.zeros((2, 1, 2)), np.zeros((2, 1, 2, 1), int))
    # One successor, all ends being one, and two rewards, of which a declaration makes no single one.
    coin = pacplan.TabularMDP([[[0.5, 0.5]]] * 3, [[[1.0, 0.0]]] * 3, [[[1, 2]]] * 3, [1, 2])
    for settings, model, limits, words in (
        ({}, fixed, {}, "stops by itself"),
        ({"epsilon": 0}, fixed, {}, "stops by itself"),
        ({}, pacplan.envs.garnet(seed=0), {"budget": 10}, "one successor"),
        (FIXED, pacplan.envs.garnet(seed=0), {"budget": 10}, "transitions='deterministic', but"),
        ({}, noisy, {"budget": 10}, "rewards are random"),
        ({"transitions": "deterministic"}, coin, {"budget": 10}, r"OPD needs .* rewards are random"),
        (FIXED, coin, {"budget": 10}, "but this model's rewards are random"),
        ({"horizon": 2, "merge": "stationary"}, steps, {"budget": 10}, "depth"),
    ):
        with pytest.raises(ValueError, match=words):
            pacplan.OPD(gamma=0.7, **settings).plan(model, 0, **limits)


def test_of_a_simulator_both_must_be_declared():
    for successors, declared, missing in (
        (None, {}, ["transitions=", "rewards="]),
        (5, {"rewards": "deterministic"}, ["transitions="]),
        (1, {}, ["rewards="]),
    ):
        model = pacplan.Simulator(lambda s, a, rng: (s, a / 2, False), actions=2, successors=successors)
        with pytest.raises(ValueError, match="OPD needs a problem without randomness") as refusal:
            pacplan.OPD(gamma=0.5, epsilon=0.1, **declared).plan(model, 0, seed=0)
        said = [word for word in ("transitions=", "rewards=") if word in str(refusal.value)]
        assert said == missing
    assert pacplan.OPD(gamma=0.5, epsilon=0.1, **FIXED).plan(model, 0, seed=0).certified
