"""MDP-GapE: trees worked by hand, the settings of the paper's Table 1, statistics."""

import math

import numpy as np
import pytest

import pacplan
from bandits import bandit
from conftest import HALF, random_small
from pacplan import exact
from pacplan.algorithms.common.horizons import allocation
from pacplan.compiled.streams import streams
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


@pytest.mark.parametrize("noise", ["none", "bernoulli"])
@pytest.mark.parametrize("thresholds", ["lemma", "paper"])
def test_fixed_confidence_action(thresholds, noise):
    model = pacplan.envs.garnet(states=30, seed=4, noise=noise)
    planner = MDPGapE(epsilon=1.0, delta=0.1, gamma=0.7, thresholds=thresholds)
    plan = planner.plan(model, 0, seed=0)
    q = exact.discounted(model, gamma=0.7)[0]
    assert q.max() - q[plan.action] <= 1.0
    assert plan.gap <= 1.0
    others = np.delete(plan.upper, plan.action)
    assert plan.gap == others.max() - plan.lower[plan.action]
    assert plan.certified == (thresholds == "lemma")
    assert plan.stopped_by == ("certified" if thresholds == "lemma" else "rule")
    assert plan.samples == plan.episodes * planner.horizon == plan.calls.sum()
    assert (plan.lower <= plan.values).all()
    assert (plan.values <= plan.upper).all()
    truth = exact.finite_horizon(model, gamma=0.7, horizon=planner.horizon)[0, 0]
    if thresholds == "lemma":
        assert (plan.lower <= truth).all()
        assert (truth <= plan.upper).all()


def test_fixed_confidence_value():
    model = pacplan.envs.garnet(states=30, seed=4)
    planner = MDPGapE(epsilon=0.6, delta=0.1, gamma=0.5, goal="value")
    plan = planner.plan(model, 0, seed=0)
    truth = exact.finite_horizon(model, gamma=0.5, horizon=planner.horizon)[0, 0].max()
    assert plan.certified
    assert plan.upper.max() - plan.lower.max() <= 1.2
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


# Horizons.


@pytest.mark.parametrize(("epsilon", "steps"), [(1.0, 6), (0.5, 8), (0.2, 10)])
def test_default_horizon_is_the_papers(epsilon, steps):
    planner = MDPGapE(epsilon=epsilon, delta=0.1, gamma=0.7)
    assert planner.horizon == steps
    assert 2 * 0.7**steps / 0.3 <= epsilon < 2 * 0.7 ** (steps - 1) / 0.3


# Statistics.


def searched_bounds(planner, model, episodes, seed):
    """Bounds of every pair after every episode, and the exact Q_h of every pair."""
    root = np.random.SeedSequence(seed)
    rng, ties = streams(root, 2)
    session = model.open(root)
    query = Query(model, 0, model.actions(0), None, rng, ties)
    search = planner.start(query, session)
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
    small = MDPGapE(epsilon=0.0, delta=0.5, gamma=0.9, horizon=3, thresholds=(lambda n: 1.0,) * 2)
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


def test_thresholds_of_the_users_own_are_asked_anew():
    level = [1.0]
    own = (lambda n: level[0], lambda n: level[0])
    planner = MDPGapE(epsilon=0.0, delta=0.1, gamma=0.5, horizon=2, thresholds=own)
    model = pacplan.envs.garnet(states=20, seed=0)
    first = planner.plan(model, 0, seed=0, budget=100)
    level[0] = 50.0
    assert planner.plan(model, 0, seed=0, budget=100).upper.min() > first.upper.min()
