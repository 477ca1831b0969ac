"""What is told is searched, not bet on: tables, values, bounds on values, and rewards alone."""

from collections import Counter

import numpy as np
import pytest

import pacplan
from hard_problems import GAMMA, Kind, lens_on_searches, most
from pacplan import BrokenPromiseError, exact
from pacplan.algorithms.bracket.search import BracketSearch

lens = pytest.fixture(lens_on_searches)
KNOWN = {"rewards": "known", "transitions": "known"}
FIXED = {"rewards": "deterministic", "transitions": "deterministic"}


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


def around(v, slack):
    """Bounds on the values of states that are so close."""
    return (lambda state, h: v[h, state] - slack), (lambda state, h: v[h, state] + slack)


@pytest.mark.parametrize("merge", ["tree", "depth", "stationary"])
@pytest.mark.parametrize("goal", ["action", "value"])
@pytest.mark.parametrize("told", [KNOWN, FIXED], ids=["known", "fixed"])
def test_answers_are_certain(merge, goal, told):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        model = table(rng, *((2, "bernoulli") if told is KNOWN else (1, "none")), seed % 2 == 0)
        horizon, gamma, epsilon = int(rng.integers(1, 6)), rng.uniform(0.3, 1.0), rng.uniform(0.01, 0.5)
        _, q = values(model, gamma, horizon)
        planner = pacplan.Bracket(
            epsilon=epsilon, delta=0.1, gamma=gamma, horizon=horizon, goal=goal, merge=merge, **told
        )
        plan = planner.plan(model, 0, seed=seed)
        assert plan.certified and "That is certain" in plan.guarantee
        assert (plan.lower <= q + 1e-9).all() and (q <= plan.upper + 1e-9).all()
        if goal == "value":
            assert abs(plan.value - q.max()) <= epsilon + 1e-9
        else:
            assert q.max() - q[plan.action] <= epsilon + 1e-9


def test_a_table_is_read_once():
    """However many depths a state is met at, its actions are read once if evidence is pooled."""
    model = table(np.random.default_rng(1))
    pairs = model.states * model.max_actions
    plan = pacplan.Bracket(
        epsilon=1e-6, delta=0.1, gamma=0.9, horizon=12, goal="value", merge="stationary", **KNOWN
    ).plan(model, 0, seed=0)
    assert plan.certified and plan.samples <= pairs
    assert plan.upper.max() - plan.lower.max() <= 2e-6


def test_an_infinite_target_in_a_known_table():
    model = table(np.random.default_rng(3))
    q = exact.discounted(model, gamma=0.6)[0]
    plan = pacplan.Bracket(
        epsilon=0.3, delta=0.1, gamma=0.6, merge="depth", target="infinite", **KNOWN
    ).plan(model, 0, seed=0)
    assert plan.certified and "over an infinite horizon" in plan.guarantee
    assert q.max() - q[plan.action] <= 0.3


@pytest.mark.parametrize("told", [KNOWN, FIXED], ids=["known", "fixed"])
def test_bounds_on_values_save_calls(told):
    horizon, calls = 6, {0.0: [], 0.2: [], None: []}
    for seed in range(5):
        rng = np.random.default_rng(seed)
        model = table(rng, *((2, "bernoulli") if told is KNOWN else (1, "none")))
        v, q = values(model, GAMMA, horizon)
        for slack, made in calls.items():
            bounds = None if slack is None else around(v, slack)
            plan = pacplan.Bracket(
                epsilon=0.05, delta=0.1, gamma=GAMMA, horizon=horizon, value_bounds=bounds, **told
            ).plan(model, 0, seed=seed)
            assert plan.certified and q.max() - q[plan.action] <= 0.05 + 1e-9
            assert (plan.lower <= q + 1e-9).all() and (q <= plan.upper + 1e-9).all()
            made.append(plan.samples)
        # With exact values one look at each action of the root is enough.
        assert calls[0.0][-1] <= model.max_actions
    assert sum(calls[0.0]) < sum(calls[0.2]) < sum(calls[None])


def test_a_range_of_returns_saves_calls():
    """A game that is won once: three steps to the left, or four to the right."""

    def step(state, action, rng):
        place = state + (1 if action else -1)
        return place, float(place in (-3, 4)), place in (-3, 4)

    model = pacplan.Simulator(step, actions=2, successors=1, reward_range=(0, 1))
    settings = {"epsilon": 0.01, "delta": 0.1, "gamma": 0.99, "horizon": 12, "merge": "depth", **FIXED}
    plans = [
        pacplan.Bracket(value_range=known, **settings).plan(model, 0, seed=0)
        for known in (None, (0, 1))
    ]
    assert [plan.action for plan in plans] == [0, 0]
    assert plans[1].samples < plans[0].samples
    assert plans[1].upper.max() <= 1.0 and "returns lie in [0, 1]" in plans[1].assumptions


@pytest.mark.parametrize("planner", [pacplan.Bracket, pacplan.OPD])
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
def test_false_bounds_are_noticed(planner, known):
    model = table(np.random.default_rng(0), 1, "none")
    settings = {"epsilon": 0.01, "gamma": 0.9, "horizon": 4, **FIXED}
    if planner is pacplan.Bracket:
        settings["delta"] = 0.1
    with pytest.raises(BrokenPromiseError, match="correct value_bounds= or value_range="):
        planner(**settings, **known).plan(model, 0, seed=0)


def test_an_impossible_range_is_refused():
    model = table(np.random.default_rng(0), 1, "none")
    with pytest.raises(ValueError, match="contradicts the model's reward_range"):
        pacplan.OPD(gamma=0.9, epsilon=0.1, horizon=4, value_range=(10.0, 20.0)).plan(model, 0)


def test_what_bounds_raise_comes_through():
    def upper(state, h):
        raise ZeroDivisionError("no")

    model = table(np.random.default_rng(0), 1, "none")
    with pytest.raises(ZeroDivisionError, match="no"):
        pacplan.OPD(gamma=0.9, epsilon=0.1, horizon=4, value_bounds=(lambda s, h: 0.0, upper)).plan(
            model, 0, seed=0
        )


def test_a_value_needs_an_accuracy():
    with pytest.raises(ValueError, match="accuracy of the value"):
        pacplan.OPD(gamma=0.9, goal="value")


def test_a_declaration_that_a_table_contradicts():
    model = table(np.random.default_rng(0))
    with pytest.raises(ValueError, match="declared deterministic"):
        pacplan.Bracket(epsilon=0.1, delta=0.1, gamma=0.9, horizon=2, rewards="deterministic").plan(
            model, 0, seed=0
        )
    with pytest.raises(ValueError, match="more than one successor"):
        pacplan.Bracket(
            epsilon=0.1,
            delta=0.1,
            gamma=0.9,
            horizon=2,
            rewards="known",
            transitions="deterministic",
        ).plan(model, 0, seed=0)


def test_one_step_with_rewards_told_needs_a_call_for_each_action():
    def step(state, action, rng):
        return rng.random(), (0.2, 0.9, 0.5)[action], False

    model = pacplan.Simulator(step, actions=3, reward_range=(0, 1))
    planner = pacplan.Bracket(epsilon=0.01, delta=0.1, gamma=0.9, horizon=1, rewards="deterministic")
    plan = planner.plan(model, 0.0, seed=0)
    assert plan.certified and plan.action == 1 and plan.samples == 3
    np.testing.assert_allclose(plan.lower, (0.2, 0.9, 0.5))


# Rewards alone.


@pytest.mark.parametrize("known", [None, (0.0, 3.0)])
def test_means_stand_for_known_rewards_in_returns(lens, known):
    model = pacplan.TabularMDP(
        np.full((4, 2, 4), 0.25), np.tile([[0.3], [0.6]], (4, 1, 1)).reshape(4, 2), noise="bernoulli"
    )
    # Roulette is not played before the fourth step.
    planner = pacplan.Bracket(
        epsilon=0.2, delta=0.1, gamma=1.0, horizon=3, rewards="known", value_range=known
    )
    planner.plan(model, 0, seed=0, budget=2000)
    search = lens.last[0]
    assert isinstance(search, BracketSearch)
    arm = search.root[1]
    assert arm["exploits"] > 5
    returns, spread = arm["returns"] / arm["exploits"], search.kernel_state().moments[1, 0]["spread"]
    if known is None:
        # The first step may be followed by one that seemed as good.
        assert returns == pytest.approx(1.8, abs=0.1) and spread < 0.01
    else:
        # Returns that lie in a range are those that were paid.
        assert spread > 0.1


@pytest.mark.parametrize("merge", ["tree", "depth"])
def test_a_last_step_whose_reward_is_known_is_not_taken(merge):
    calls = Counter()

    def step(state, action, rng):
        steps, place = state
        calls[state, action] += 1
        return (steps + 1, int(rng.integers(2))), (0.1 + 0.2 * action + 0.3 * place), False

    model = pacplan.Simulator(step, actions=2, successors=2, reward_range=(0, 1))
    planner = pacplan.Bracket(
        epsilon=0.05, delta=0.1, gamma=1.0, horizon=2, rewards="deterministic", merge=merge
    )
    plan = planner.plan(model, (0, 0), seed=0, budget=100_000)
    assert plan.certified and plan.action == 1
    last = [n for ((steps, _), _), n in calls.items() if steps == 1]
    # In a tree each action of the root has its own pairs.
    assert len(last) == 4 and max(last) <= (2 if merge == "tree" else 1)
    assert calls[(0, 0), 1] > 10


@pytest.mark.parametrize("rewards", ["known", "deterministic"])
@pytest.mark.parametrize("horizon", [2, 4])
def test_bounds_hold_with_rewards_told(rewards, horizon):
    kind = Kind(horizon, 2, 2, "none", correlated=rewards == "known")
    rng = np.random.default_rng(11)
    runs, delta, failures = 300, 0.5, 0
    planner = pacplan.Bracket(
        epsilon=0.02, delta=delta, gamma=GAMMA, horizon=kind.horizon, rewards=rewards
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


@pytest.mark.parametrize("gamma", [0.0, 0.01])
def test_one_step_of_an_infinite_horizon(gamma):
    """Nothing but rewards counts, so nothing is left to bet on, wherever they lead."""
    model = pacplan.TabularMDP(np.full((2, 2, 2), 0.5), np.array([[0.9, 0.85], [0.2, 0.3]]))
    planner = pacplan.Bracket(
        epsilon=0.1, delta=0.1, gamma=gamma, target="infinite", rewards="deterministic"
    )
    plan = planner.plan(model, 0, seed=1, budget=1000)
    q = exact.discounted(model, gamma=gamma)[0]
    assert plan.certified and plan.samples <= 2 and q.max() - q[plan.action] <= 0.1


@pytest.mark.parametrize("merge", ["tree", "depth", "stationary"])
def test_outcomes_that_a_table_names_twice_are_one(merge):
    """Two different ends, or the same state in two entries."""
    transitions = np.array([[[0.5, 0.5]] * 2, [[0.3, 0.7]] * 2, [[1.0, 0.0]] * 2, [[1.0, 0.0]] * 2])
    to = np.array([[[1, 1], [2, 3]], [[2, 3], [1, 1]], [[2, 2]] * 2, [[3, 3]] * 2])
    rewards = np.array([[0.5, 0.7], [0.1, 0.9], [0.0, 0.0], [0.0, 0.0]])
    model = pacplan.TabularMDP(transitions, rewards, successors=to, terminal=[2, 3])
    assert model.successors == 1
    for declared in (KNOWN, {"rewards": "known"}, KNOWN | {"transitions": "deterministic"}):
        planner = pacplan.Bracket(
            epsilon=0.01, delta=0.1, gamma=0.9, horizon=3, goal="value", merge=merge, **declared
        )
        plan = planner.plan(model, 0, seed=0)
        assert plan.certified and abs(plan.value - values(model, 0.9, 3)[1].max()) <= 0.01
