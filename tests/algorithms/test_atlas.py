"""Atlas as a planner: its answers against exact ones, whatever it is told; its errors; its limits."""

import numba
import numpy as np
import pytest
from scipy.stats import binom

import pacplan
from conftest import in_chunks
from every_planner import answer
from pacplan import Atlas, exact

LUCK = 1e-6
GAMMA, HORIZON = 0.8, 4


def problem(seed, low=0.0, high=1.0, ends=True, actions=2):
    """A random table of three states, and perhaps an end; the first state is met often."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(3 + ends), (3 + ends, actions))
    p[..., 0] += 0.5
    p /= p.sum(-1, keepdims=True)
    rewards = low + (high - low) * rng.random((3 + ends, actions))
    given = {"terminal": [3] if ends else None, "reward_range": (low, high)}
    return pacplan.TabularMDP(p, rewards, noise="bernoulli", **given)


def solved(table, horizon=None):
    """Exact values: of all pairs, by step if there is a horizon."""
    if horizon is None:
        return exact.discounted(table, gamma=GAMMA)
    return exact.finite_horizon(table, gamma=GAMMA, horizon=horizon)


def at_root(table, horizon):
    """Exact values of the root's actions."""
    values = solved(table, horizon)
    return values[0] if horizon is None else values[0, 0]


def python(table, **told):
    """A Python simulator of a table whose states are words, and what is told of it."""

    def step(state, action, rng):
        after, reward, ended = table.step(int(state[1:]), action, rng)
        return f"s{after}", reward, ended

    settings = {"actions": table.max_actions, "reward_range": table.reward_range}
    return pacplan.Simulator(step, **settings, may_end=table.may_end, **told)


@numba.njit
def ring(state, action, rng):
    """Five places; the last one pays, and the way there is worth more to action 1."""
    forward = rng.random() < (0.5, 0.7)[action]
    state = (state + 1) % 5 if forward else 0
    return state, 1.0 if state == 4 else 0.0, False


def jitted(**told):
    return pacplan.Simulator(ring, actions=2, may_end=False, **told)


def ring_table():
    p, rewards = np.zeros((5, 2, 5)), np.zeros((5, 2, 5))
    for state in range(5):
        p[state, :, (state + 1) % 5] = 0.5, 0.7
        p[state, :, 0] += 0.5, 0.3
    rewards[..., 4] = 1.0
    return pacplan.TabularMDP(p, rewards)


def holds(plan, q):
    """Whether everything in a plan is true."""
    best = plan.actions.index(plan.action)
    return bool(
        q.max() - q[best] <= plan.gap + 1e-9
        and (plan.lower <= q + 1e-9).all()
        and (plan.upper >= q - 1e-9).all()
    )


# Bounds and ends, rewards of either sign.
RANGES = [(0.0, 1.0, False), (0.0, 1.0, True), (-1.0, 0.0, True), (-1.0, 0.5, True), (-2.0, -1.0, True)]


@pytest.mark.parametrize("horizon", [None, HORIZON])
@pytest.mark.parametrize(
    ("low", "high", "ends", "told"),
    [
        *((*given, told) for given in RANGES for told in ("table", "nothing")),
        *((*given, told) for given in RANGES[:2] for told in ("list", "number")),
    ],
)
def test_it_certifies_and_is_right(low, high, ends, told, horizon):
    table = problem(1, low, high, ends)
    names = [f"s{state}" for state in range(3)]
    model, root = {
        "table": (table, 0),
        "nothing": (python(table), "s0"),
        "list": (python(table, states=names), "s0"),
        "number": (python(table, states=3), "s0"),
    }[told]
    planner = Atlas(epsilon=0.4, delta=1e-7, gamma=GAMMA, horizon=horizon)
    plan = planner.plan(model, root, seed=3)
    assert plan.certified and plan.gap <= 0.4
    assert holds(plan, at_root(table, horizon))
    assert plan.samples > plan.calls.sum() > 0


@pytest.mark.parametrize("told", [{}, {"states": range(5)}, {"states": 5}])
@pytest.mark.parametrize("horizon", [None, HORIZON])
def test_jitted_simulators(told, horizon):
    plan = Atlas(epsilon=0.1, delta=1e-7, gamma=GAMMA, horizon=horizon).plan(jitted(**told), 3, seed=1)
    values = solved(ring_table(), horizon)
    assert plan.certified and plan.action == 1
    assert holds(plan, values[3] if horizon is None else values[0, 3])


def test_without_a_discount_the_steps_are_counted():
    table = problem(2)
    plan = Atlas(epsilon=0.3, delta=1e-7, gamma=1.0, horizon=3).plan(table, 0, seed=0)
    assert plan.certified
    assert holds(plan, exact.finite_horizon(table, gamma=1.0, horizon=3)[0, 0])


@pytest.mark.parametrize("horizon", [None, HORIZON])
@pytest.mark.parametrize("actions", [1, 2])
def test_the_value_of_a_state(actions, horizon):
    table = problem(3, -1.0, 0.5, actions=actions)
    planner = Atlas(epsilon=0.2, delta=1e-7, gamma=GAMMA, horizon=horizon, goal="value")
    plan = planner.plan(table, 0, seed=0)
    q = at_root(table, horizon)
    assert plan.certified and abs(plan.value - q.max()) <= 0.2
    assert holds(plan, q)
    assert "of its middle" in plan.guarantee


def test_a_single_action_needs_no_calls():
    plan = Atlas(epsilon=0.1, delta=0.1, gamma=GAMMA).plan(problem(0, actions=1), 0, seed=0)
    assert plan.certified and plan.gap == 0.0 and plan.samples == 0


# What the user knows.


def bounds(table, horizon, slack):
    """Value bounds of a table, which must not be asked about states after the last step."""
    values = solved(table, horizon).max(-1)

    def value(state, h):
        assert h == 0 if horizon is None else h < horizon
        return values[state] if horizon is None else values[h, state]

    return (lambda s, h: value(s, h) - slack), (lambda s, h: value(s, h) + slack)


@pytest.mark.parametrize("horizon", [None, HORIZON])
@pytest.mark.parametrize("slack", [0.0, 0.5])
def test_value_bounds_help_and_hold(slack, horizon):
    table = problem(4)
    settings = {"epsilon": 0.15, "delta": 1e-7, "gamma": GAMMA, "horizon": horizon}
    plain = Atlas(**settings).plan(table, 0, seed=0)
    told = Atlas(**settings, value_bounds=bounds(table, horizon, slack)).plan(table, 0, seed=0)
    assert told.certified and holds(told, at_root(table, horizon))
    assert told.samples < plain.samples or slack > 0.0
    assert "value_bounds bound the values" in told.assumptions


@pytest.mark.parametrize("horizon", [None, HORIZON])
@pytest.mark.parametrize("name", ["value_bounds", "value_range"])
def test_numbers_that_bound_values(name, horizon):
    """Nothing pays more than 0.4, though 1 is allowed."""
    table = problem(5, 0.0, 0.4, ends=False)
    model = python(table)
    model.reward_range = (0.0, 1.0)
    span = sum(GAMMA**h for h in range(horizon or 200))
    planner = Atlas(
        epsilon=0.2, delta=1e-7, gamma=GAMMA, horizon=horizon, **{name: (0.0, 0.4 * span + 1e-9)}
    )
    before = planner.plan(model, "s0", seed=0, budget=1)
    assert before.upper.max() == pytest.approx(0.4 * span)
    plan = planner.plan(model, "s0", seed=0)
    assert plan.certified and holds(plan, at_root(table, horizon))


@pytest.mark.parametrize("name", ["value_bounds", "value_range"])
@pytest.mark.parametrize(
    ("interval", "horizon", "says"), [((90, 100), None, "returns lie"), ((2, 4), 4, "last 2 steps")]
)
def test_numbers_that_contradict_the_rewards(name, interval, horizon, says):
    planner = Atlas(epsilon=0.1, delta=0.1, gamma=GAMMA, horizon=horizon, **{name: interval})
    with pytest.raises(ValueError, match=f"{name}.*contradicts.*{says}"):
        planner.plan(problem(0), 0, seed=0)


def test_listed_states_out_of_reach_are_never_called():
    def step(place, action, rng):
        assert place < 3, "three steps end here"
        return place + (rng.random() < (0.3, 0.8)[action]), float(place == 2), False

    model = pacplan.Simulator(step, actions=2, states=range(10), may_end=False)
    plan = Atlas(epsilon=0.2, delta=0.1, gamma=1.0, horizon=3).plan(model, 0, seed=0)
    assert plan.certified and plan.action == 1


# What the model promised.


def test_what_is_no_question_is_refused():
    nothing, crossed = (lambda s, h: float("nan"), lambda s, h: 1.0), (lambda s: 1.0, lambda s: 0.5)
    by_step = pacplan.Simulator(lambda s, a, rng, h: (s, 0.5, False), actions=2, stationary=False)
    for settings, model, root, words in (
        ({"value_bounds": (1.0, 0.5)}, problem(0), 0, "value_bounds.*above the upper"),
        ({"value_bounds": crossed}, problem(0), 0, "value_bounds.*above the upper"),
        ({"value_bounds": nothing}, problem(0), 0, "finite"),
        ({"gamma": 1.0}, problem(0), 0, "horizon"),
        ({"horizon": 3}, by_step, 0, "stationary"),
        ({}, python(problem(0), states=["s0", "s1"]), "s2", "not among states="),
    ):
        with pytest.raises(ValueError, match=words):
            Atlas(**{"epsilon": 0.1, "delta": 0.1, "gamma": GAMMA, **settings}).plan(model, root)


def test_broken_promises():
    ends = pacplan.Simulator(lambda s, a, rng: ("s0", 0.5, True), actions=2, may_end=False)
    listed, counted = python(problem(0), states=["s0", "s1"]), python(problem(0), states=2)
    for model, words in ((listed, "states="), (counted, "states="), (ends, "may_end")):
        with pytest.raises(pacplan.BrokenPromiseError, match=words):
            Atlas(epsilon=0.1, delta=0.1, gamma=GAMMA).plan(model, "s0", seed=0)


def test_a_number_of_states_counts_once_so_many_were_seen():
    """Of four states one is never reached: that there are no more helps nobody."""
    settings = {"epsilon": 0.25, "delta": 0.1, "gamma": GAMMA}
    nothing, three, four = (
        answer(Atlas(**settings).plan(python(problem(1, ends=False), **told), "s0", seed=0))
        for told in ({}, {"states": 3}, {"states": 4})
    )
    assert four["samples"] == nothing["samples"] != three["samples"]
    assert any("no more than 3 states" in clause for clause in three["assumptions"])


# Whenever it stops.


@pytest.mark.parametrize("settings", [{}, {"horizon": HORIZON}, {"goal": "value"}])
def test_whatever_the_budget_the_gap_holds_and_falls(settings):
    table = problem(6, -1.0, 1.0)
    q = at_root(table, settings.get("horizon"))
    planner = Atlas(epsilon=0.0, delta=1e-7, gamma=GAMMA, **settings)
    budgets = [1, 2, 10, 100, 1000, 10_000, 100_000]
    plans = [planner.plan(table, 0, seed=2, budget=budget) for budget in budgets]
    gaps = [plan.gap for plan in plans]
    assert [plan.samples for plan in plans[:5]] == budgets[:5]
    assert all(holds(plan, q) for plan in plans)
    assert gaps == sorted(gaps, reverse=True) and gaps[-1] < 0.1 * gaps[0]
    assert gaps[0] <= plans[0].upper.max() - plans[0].lower.min() + 1e-12
    assert "nothing is proven yet" in plans[0].guarantee


def test_no_memory_for_a_round():
    planner = Atlas(epsilon=30.0, delta=0.1, gamma=1.0, horizon=200)
    plan = planner.plan(problem(0), 0, seed=0, memory_limit=600_000)
    assert plan.stopped_by == "memory" and plan.gap == pytest.approx(200.0)


@pytest.mark.parametrize("chunk", [7, None])
@pytest.mark.parametrize("horizon", [None, HORIZON])
def test_the_same_seed_gives_the_same_plan(horizon, chunk):
    settings = {"epsilon": 0.2, "delta": 0.1, "gamma": GAMMA, "horizon": horizon}
    for make, root in (
        (lambda: problem(7), 0),
        (lambda: python(problem(7)), "s0"),
        (jitted, 0),
        (lambda: jitted(states=5), 0),
    ):
        one, other = (
            answer(in_chunks(Atlas(**settings), episodes).plan(make(), root, seed=5, budget=1000))
            for episodes in (None, chunk)
        )
        assert one == other


# How often it is wrong.


@pytest.mark.statistical
@pytest.mark.parametrize(
    "family", ["recurring", "recurring-value", "late", "late-bounded", "late-steps"]
)
def test_it_is_wrong_as_seldom_as_it_says(family):
    report = pacplan.testing.verify("atlas", families=[family], plans=1500)
    assert report.ok, str(report)


def test_it_is_wrong_as_seldom_as_it_says_of_close_actions():
    report = pacplan.testing.verify("atlas", families=["recurring"], plans=40)
    assert report.ok, str(report)
    (verdict,) = (found for found in report.verdicts if found.check == "wrong")
    assert verdict.claims == verdict.plans
    assert verdict.failures <= binom.isf(LUCK, verdict.plans, verdict.promised)
