"""MDP-GapE: trees worked by hand, the settings of the paper's Table 1, statistics, corners."""

import math

import numpy as np
import pytest

import pacplan
from bandits import bandit
from conftest import HALF, random_small
from pacplan import exact
from pacplan.algorithms.common.horizons import allocation
from pacplan.bounds import Thresholds
from pacplan.engine.query import Query

MDPGapE = pacplan.MDPGapE


def nested(plan, node=0, depth=0):
    """A tree as nested dictionaries: action -> (n, lower, upper, {state: (count, subtree)})."""
    tree = plan.tree
    found = {}
    for i in tree.tried(node):
        pair = tree.pairs[i]
        after = {o.state: (o.count, nested(plan, o.node, depth + 1)) for o in tree.outcomes(i)}
        found[int(pair["action"])] = (int(pair["n"]), pair["lower"], pair["upper"], after)
    return found


# Trees worked by hand. With all radii equal to log 2 a pair that always pays 0 has the interval
# [0, 1/2] and one that always pays 1 has [1/2, 1]; an outcome seen in every draw keeps half the mass.


def test_two_steps_worked_by_hand(two_steps):
    # Two successors are promised though one is seen, so half the mass is on an unseen one.
    model = pacplan.Simulator(two_steps.step, actions=2, successors=2)
    plan = MDPGapE(epsilon=0.0, delta=0.1, gamma=0.5, horizon=2, thresholds=HALF).plan(
        model, 0, seed=3, budget=60
    )
    tree = nested(plan)
    assert set(tree) == {0, 1}
    n0, lower0, upper0, after0 = tree[0]
    n1, lower1, upper1, after1 = tree[1]
    assert n0 + n1 == plan.episodes == 30
    # Action 0: u = 1/2; below it both actions have U = 1/2, so half of 1/2 and half of sigma_1 = 1.
    assert upper0 == pytest.approx(0.5 + 0.5 * 0.75, abs=1e-12)
    assert lower0 == pytest.approx(0.0, abs=1e-12)
    # Action 1: u = 1, l = 1/2; below it U = 1 and L = 1/2, of which half the mass counts.
    assert upper1 == pytest.approx(1.0 + 0.5 * 1.0, abs=1e-12)
    assert lower1 == pytest.approx(0.5 + 0.5 * 0.25, abs=1e-12)
    assert list(after0) == [1]
    assert list(after1) == [2]
    assert after0[1][0] == n0
    assert after1[2][0] == n1
    for subtree, (low, high) in ((after0[1][1], (0.0, 0.5)), (after1[2][1], (0.5, 1.0))):
        for _, lower, upper, after in subtree.values():
            assert (lower, upper) == (pytest.approx(low, abs=1e-12), pytest.approx(high, abs=1e-12))
            assert after == {}
    assert plan.action == 1
    assert plan.gap == pytest.approx(upper0 - lower1, abs=1e-12)
    assert plan.values == pytest.approx([0.0, 1.5])


def test_deterministic_transitions_leave_no_transition_bonus(two_steps):
    plan = MDPGapE(epsilon=0.0, delta=0.1, gamma=0.5, horizon=2, thresholds=HALF).plan(
        two_steps, 0, seed=3, budget=60
    )
    assert two_steps.successors == 1
    np.testing.assert_allclose(plan.upper, [0.5 + 0.5 * 0.5, 1.0 + 0.5], atol=1e-12)
    np.testing.assert_allclose(plan.lower, [0.0, 0.5 + 0.5 * 0.5], atol=1e-12)


# The four settings.


@pytest.mark.parametrize("thresholds", ["lemma", "paper"])
def test_fixed_confidence_action(thresholds):
    model = pacplan.envs.garnet(states=30, seed=4, noise="bernoulli")
    planner = MDPGapE(epsilon=1.0, delta=0.1, gamma=0.7, thresholds=thresholds)
    plan = planner.plan(model, 0, seed=0)
    q = exact.discounted(model, gamma=0.7)[0]
    assert q.max() - q[plan.action] <= 1.0
    assert plan.gap == np.delete(plan.upper, plan.action).max() - plan.lower[plan.action] <= 1.0
    assert plan.certified == (thresholds == "lemma")
    assert plan.stopped_by == ("certified" if thresholds == "lemma" else "rule")
    assert plan.samples == plan.episodes * planner.horizon == plan.calls.sum()
    assert (plan.lower <= plan.values).all() and (plan.values <= plan.upper).all()
    truth = exact.finite_horizon(model, gamma=0.7, horizon=planner.horizon)[0, 0]
    if thresholds == "lemma":
        assert (plan.lower <= truth).all() and (truth <= plan.upper).all()


def test_fixed_confidence_value():
    model = pacplan.envs.garnet(states=30, seed=4)
    planner = MDPGapE(epsilon=0.6, delta=0.1, gamma=0.5, goal="value")
    plan = planner.plan(model, 0, seed=0)
    truth = exact.finite_horizon(model, gamma=0.5, horizon=planner.horizon)[0, 0].max()
    assert plan.certified and plan.upper.max() - plan.lower.max() <= 1.2
    assert abs(plan.value - truth) <= 0.6
    assert plan.value == pytest.approx(0.5 * (plan.upper.max() + plan.lower.max()))


def test_fixed_budget_splits_the_budget_as_the_paper_does():
    for n in (1, 2, 10, 31, 100, 1000, 12345):
        tau, steps = allocation(n, 0.7)
        assert tau * steps <= n
        assert steps == max(1, math.ceil(math.log(tau) / (2 * math.log(1 / 0.7))))
        more = math.ceil(math.log(tau + 1) / (2 * math.log(1 / 0.7)))
        assert (tau + 1) * max(1, more) > n
    model = pacplan.envs.garnet(seed=1)
    planner = MDPGapE(epsilon=0.0, delta=0.1, gamma=0.7, thresholds="budget")
    assert planner.horizon is None
    plan = planner.plan(model, 0, seed=0, budget=1000)
    assert plan.horizon == allocation(1000, 0.7)[1] == 7
    assert plan.samples == 1000
    assert plan.stopped_by == "budget"
    assert not plan.certified


def test_anytime_bounds_hold_whenever_it_stops():
    model = pacplan.envs.garnet(states=30, seed=4)
    truth = exact.finite_horizon(model, gamma=0.7, horizon=5)[0, 0]
    planner = MDPGapE(epsilon=0.0, delta=0.1, gamma=0.7, horizon=5)
    gaps = []
    for budget in (1, 3, 17, 200, 3000, 30_000):
        plan = planner.plan(model, 0, seed=0, budget=budget)
        assert plan.samples == budget
        assert (plan.lower <= truth).all()
        assert (truth <= plan.upper).all()
        assert truth.max() - truth[plan.action] <= plan.gap
        assert plan.stopped_by == "budget"
        gaps.append(plan.gap)
    assert gaps[-1] < gaps[0]


def test_default_horizon_is_the_papers():
    for epsilon, steps in ((1.0, 6), (0.5, 8), (0.2, 10)):
        assert MDPGapE(epsilon=epsilon, delta=0.1, gamma=0.7).horizon == steps
        assert 2 * 0.7**steps / 0.3 <= epsilon < 2 * 0.7 ** (steps - 1) / 0.3


# Statistics.


def searched_bounds(planner, model, episodes, seed):
    """Bounds of every pair after every episode, and the exact Q_h of every pair."""
    root = np.random.SeedSequence(seed)
    session = model.open(root)
    search = planner.start(Query(model, 0, root), session)
    history = []
    for _ in range(episodes):
        search.advance(1, 10**9)
        history.append((search.tree.pairs["lower"].copy(), search.tree.pairs["upper"].copy()))
    q = exact.finite_horizon(model, gamma=planner.gamma, horizon=planner.horizon)
    truth = np.empty(len(search.tree.pairs))
    todo = [(0, 0)]
    while todo:
        node, h = todo.pop()
        for i in search.tree.tried(node):
            truth[i] = q[h, search.tree.state(node), search.tree.pairs[i]["action"]]
            todo += [(o.node, h + 1) for o in search.tree.outcomes(i) if not o.ended]
    return history, truth


def violated(planner, model, episodes, seed):
    """Whether any bound of any pair was wrong after any episode."""
    history, truth = searched_bounds(planner, model, episodes, seed)
    return any(
        (lower > truth[: len(lower)] + 1e-12).any() or (upper < truth[: len(upper)] - 1e-12).any()
        for lower, upper in history
    )


def test_all_bounds_hold_at_every_episode():
    # The lemma promises at most delta of the runs with a violation anywhere; even at delta = .5
    # there are hardly any, as its union bound is generous. Thresholds of a size that would do for
    # one interval are violated in most runs, so the check sees what it should.
    rng = np.random.default_rng(0)
    models = [random_small(rng, states=3) for _ in range(120)]
    proven = MDPGapE(epsilon=0.0, delta=0.5, gamma=0.9, horizon=3)
    one = Thresholds(np.ones_like, np.ones_like, proven=False, name="one")
    small = MDPGapE(epsilon=0.0, delta=0.5, gamma=0.9, horizon=3, thresholds=one)
    wrong = sum(violated(proven, model, 150, i) for i, model in enumerate(models))
    # 60 violations are allowed on average; more than 90 would happen with probability 2e-8.
    assert wrong <= 90
    assert wrong <= 12
    assert sum(violated(small, model, 150, i) for i, model in enumerate(models)) > 100


# The certificate, where it is easiest to get wrong.


def test_near_ties_do_not_enter_the_certificate():
    # On the scale of the range all three actions are tied; the loss is not.
    model = pacplan.TabularMDP(
        np.ones((1, 3, 1)),
        [[10.06, 10.15, 9.96]],
        successors=np.zeros((1, 3, 1), int),
        reward_range=(-1e9, 1e9),
    )
    planner = MDPGapE(epsilon=0.0, delta=0.1, gamma=1.0, horizon=1, rewards="deterministic")
    for seed in range(100):
        plan = planner.plan(model, 0, seed=seed, budget=1000)
        others = np.delete(plan.upper, plan.action)
        assert plan.gap == others.max() - plan.lower[plan.action]
        assert 10.15 - [10.06, 10.15, 9.96][plan.action] <= max(plan.gap, 0.0) + 1e-5


def test_deterministic_rewards_do_not_drift():
    model = bandit(0.1, 0.1)
    plan = MDPGapE(epsilon=0.0, delta=0.1, gamma=1.0, horizon=1, rewards="deterministic").plan(
        model, 0, seed=0, budget=200_000
    )
    assert (plan.lower <= 0.1).all()
    assert (plan.upper >= 0.1).all()
    assert plan.gap >= 0.0


# Corners: few actions, extreme discounts, episodes that end, actions that vary.


def test_one_action_leaves_nothing_to_decide_but_has_a_value():
    plan = MDPGapE(epsilon=0.1, delta=0.1, gamma=0.9).plan(bandit(0.3), 0, seed=0)
    assert (plan.action, plan.samples, plan.gap, plan.certified) == (0, 0, 0.0, True)
    planner = MDPGapE(epsilon=0.2, delta=0.1, gamma=0.5, horizon=4, goal="value")
    plan = planner.plan(bandit(0.3, noise="bernoulli"), 0, seed=0)
    assert plan.certified
    assert abs(plan.value - 0.3 * 1.875) <= 0.2
    assert plan.samples > 0


def by_step():
    """A model that is another at every step."""
    rng = np.random.default_rng(5)
    p = rng.dirichlet(np.ones(2), size=(3, 4, 2))
    to = rng.permuted(np.broadcast_to(np.arange(4), (3, 4, 2, 4)), axis=-1)[..., :2]
    return pacplan.TabularMDP(p, rng.random((3, 4, 2)), successors=to, noise="bernoulli")


CORNERS = {
    "gamma = 0": (pacplan.envs.garnet(states=10, actions=3, seed=2), 0.05, 0.0, 1),
    "gamma = 1": (random_small(np.random.default_rng(0)), 0.8, 1.0, 3),
    "many successors": (random_small(np.random.default_rng(1), states=6, successors=5), 0.8, 0.6, 3),
    "absorbing": (
        pacplan.TabularMDP(
            np.ones((2, 2, 1)),
            [[0.3, 1.0], [0.0, 0.0]],
            successors=np.array([[[0], [1]], [[1], [1]]]),
            noise="bernoulli",
        ),
        0.3,
        0.9,
        8,
    ),
    "actions by state": (
        pacplan.TabularMDP(
            np.random.default_rng(0).dirichlet(np.ones(3), size=(3, 3)),
            np.random.default_rng(1).random((3, 3)),
            available=[[True, False, True], [False, True, False], [True, True, True]],
        ),
        0.5,
        0.5,
        3,
    ),
    "by step": (by_step(), 0.5, 0.9, 3),
}


@pytest.mark.parametrize("corner", CORNERS)
def test_certified_answers_are_right(corner):
    model, epsilon, gamma, horizon = CORNERS[corner]
    planner = MDPGapE(epsilon=epsilon, delta=0.1, gamma=gamma, horizon=horizon)
    plan = planner.plan(model, 0, seed=0)
    truth = exact.finite_horizon(model, gamma=gamma, horizon=horizon)[0, 0]
    assert plan.certified and truth.max() - truth[plan.action] <= epsilon
    truth = truth[list(plan.actions)]
    assert (plan.lower <= truth).all() and (truth <= plan.upper).all()


def pay_and_end():
    """Paying .5 once and ending beats paying .1 for ten steps."""

    def step(state, action, rng):
        return (state, -0.5, True) if action == 0 else (state, -0.1, False)

    return step


@pytest.mark.parametrize("rewards", ["unknown", "deterministic"])
def test_the_end_of_an_episode_earns_nothing_more(rewards):
    model = pacplan.Simulator(pay_and_end(), actions=2, successors=1, reward_range=(-1.0, 0.0))
    planner = MDPGapE(epsilon=0.3, delta=0.1, gamma=1.0, horizon=10, rewards=rewards)
    # Ending at once is worth -.5; waiting first costs .1 a step, and never ending costs 1.
    plan = planner.plan(model, "here", seed=0, budget=300_000)
    assert plan.lower[0] <= -0.5 <= plan.upper[0]
    assert plan.lower[1] <= -0.6 <= plan.upper[1]
    assert plan.values[0] == pytest.approx(-0.5)
    if rewards == "deterministic":
        exactly = MDPGapE(epsilon=0.05, delta=0.1, gamma=1.0, horizon=10, rewards=rewards)
        plan = exactly.plan(model, "here", seed=0)
        assert plan.certified
        assert plan.action == 0
        np.testing.assert_allclose([plan.upper[0], plan.lower[0]], -0.5, atol=1e-9)


def test_rewards_that_exclude_zero_with_and_without_an_end():
    def step(state, action, rng):
        return state, 0.6 if action else 0.4, False

    for may_end, least in ((True, 0.2), (False, 0.2 * 1.75)):
        model = pacplan.Simulator(
            step, actions=2, successors=1, reward_range=(0.2, 1.0), may_end=may_end
        )
        seen = []
        planner = MDPGapE(epsilon=0.4, delta=0.1, gamma=0.5, horizon=3)
        plan = planner.plan(model, 0, seed=0, callback=lambda s, seen=seen: seen.append(s))
        assert plan.certified
        assert plan.action == 1
        # Before anything is seen the value is at least the lowest reward, once or at every step.
        assert seen[0].lower.min() == pytest.approx(least)
        assert seen[0].upper.max() == pytest.approx(1.75)


def test_states_with_different_actions():
    def actions(state):
        return {"start": ["left", "right"], "one": ["only"], "three": ["a", "b", "c"]}[state]

    def step(state, action, rng):
        if state == "start":
            return ("one" if action == "left" else "three"), 0.0, False
        assert action in actions(state)
        return "start", {"only": 0.3, "a": 0.2, "b": 0.9, "c": 0.1}[action], False

    planner = MDPGapE(epsilon=0.3, delta=0.1, gamma=0.8, horizon=2)
    with pytest.raises(ValueError, match="max_actions="):
        planner.plan(pacplan.Simulator(step, actions=actions, successors=1), "start")
    model = pacplan.Simulator(step, actions=actions, successors=1, max_actions=3)
    plan = planner.plan(model, "start", seed=0)
    assert plan.certified and plan.actions == ("left", "right") and plan.action == "right"
    assert (plan.lower <= [0.24, 0.72]).all() and (plan.upper >= [0.24, 0.72]).all()
