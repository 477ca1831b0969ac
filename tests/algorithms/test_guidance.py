"""A policy and a value function of the user's: they save calls, and no guarantee depends on them."""

import numpy as np
import pytest

import pacplan
from conftest import random_small
from gaussian import walk
from pacplan import exact

GAMMA, HORIZON = 0.8, 4
MAKES = {
    "tree": lambda **settings: pacplan.Bracket(**settings),
    "canopy": lambda **settings: pacplan.Canopy(**settings),
}
every_planner = pytest.mark.parametrize("make", MAKES.values(), ids=MAKES)


def made(make, **settings):
    return make(**({"epsilon": 0.3, "delta": 0.1, "gamma": GAMMA, "horizon": HORIZON} | settings))


@every_planner
def test_no_guarantee_depends_on_it(make):
    """The worst advice there is, and values upside down: 60 plans at delta = .1, all right."""
    wrong = 0
    for seed in range(60):
        model = random_small(np.random.default_rng(seed), states=5, actions=3)
        q = exact.finite_horizon(model, gamma=GAMMA, horizon=HORIZON)
        top = q.max((1, 2))
        plan = made(
            make,
            policy=lambda state, h, q=q: q[h, state].argmin(),
            value=lambda state, h, q=q, top=top: top[h] - q[h, state].max(),
        ).plan(model, 0, seed=seed)
        assert plan.certified
        assert plan.assumptions == made(make).plan(model, 0, seed=seed).assumptions
        held = np.all(plan.lower <= q[0, 0]) and plan.upper[q[0, 0].argmax()] >= q[0, 0].max()
        wrong += not held or q[0, 0].max() - q[0, 0, plan.action] > 0.3
    # More than 22 of 60 failures at a rate of .1 are rarer than 1e-6; these bounds hardly ever fail.
    assert wrong <= 1


def test_a_good_policy_saves_calls_and_a_bad_one_costs_few():
    calls = dict.fromkeys(["none", "good", "bad"], 0)
    for seed in range(20):
        model = pacplan.envs.garnet(seed=seed)
        q = exact.finite_horizon(model, gamma=0.7, horizon=8)
        guides = {
            "none": None,
            "good": lambda state, h, q=q: q[h, state].argmax(),
            "bad": lambda state, h, q=q: q[h, state].argmin(),
        }
        for name, policy in guides.items():
            planner = pacplan.Bracket(epsilon=0.5, delta=0.1, gamma=0.7, horizon=8, policy=policy)
            calls[name] += planner.plan(model, 0, seed=seed).samples
    assert calls["good"] < 0.75 * calls["none"]
    assert calls["bad"] < 1.3 * calls["none"]


@every_planner
def test_no_advice_changes_nothing(make):
    model = random_small(np.random.default_rng(3), states=6, actions=3)
    alone = made(make).plan(model, 0, seed=1)
    beside = made(make, policy=lambda state: None).plan(model, 0, seed=1)
    assert alone.samples == beside.samples
    np.testing.assert_array_equal(alone.lower, beside.lower)
    np.testing.assert_array_equal(alone.upper, beside.upper)


@every_planner
def test_it_is_asked_about_the_users_states_and_answers_with_the_users_actions(make):
    asked = set()

    def policy(state, h):
        asked.add((state, h))
        return "stay"

    def value(state):
        assert isinstance(state, str)
        return 0.5

    def step(state, action, rng):
        moves = action == "go" or rng.random() < 0.2
        return ("b" if state == "a" else "a") if moves else state, float(state == "b"), False

    model = pacplan.Simulator(step, actions=["go", "stay"], may_end=False)
    plan = made(make, policy=policy, value=value).plan(model, "a", seed=0)
    assert plan.certified and plan.action == "go"
    assert {state for state, _ in asked} == {"a", "b"}
    assert {h for _, h in asked} <= set(range(1, HORIZON))


def sharp(state, h):
    raise LookupError("mine")


@every_planner
@pytest.mark.parametrize(
    ("guidance", "error", "words"),
    [
        ({"policy": sharp}, LookupError, "mine"),
        ({"value": sharp}, LookupError, "mine"),
        ({"policy": lambda state: 7}, ValueError, "7, which is not among the actions: 0, 1; for no"),
        ({"value": lambda state: float("nan")}, ValueError, "the value must be finite"),
        ({"value": lambda state: "much"}, TypeError, "much|str"),
        ({"policy": 3}, TypeError, "policy must be a function of the state"),
        ({"value": 3}, TypeError, "value must be a function of the state"),
    ],
)
def test_what_goes_wrong_in_it_is_said(make, guidance, error, words):
    model = random_small(np.random.default_rng(0))
    with pytest.raises(error, match=words) as caught:
        made(make, epsilon=0.0, **guidance).plan(model, 0, seed=0, budget=3000)
    if guidance.get("policy") is sharp:
        assert "raised by policy in state" in "".join(caught.value.__notes__)


def test_a_second_parameter_is_the_number_of_steps_unless_it_has_a_default():
    seen = set()
    model = random_small(np.random.default_rng(0))
    for name, policy in (
        ("two", lambda state, steps_taken: seen.add(("two", steps_taken))),
        ("named", lambda state, h=0: seen.add(("named", h))),
        ("other", lambda state, rng=None: seen.add(("other", rng))),
    ):
        made(MAKES["tree"], policy=policy).plan(model, 0, seed=0)
        expected = {(name, None)} if name == "other" else {(name, h) for h in (1, 2, 3)}
        assert {pair for pair in seen if pair[0] == name} == expected


def test_plan_takes_it_whatever_it_chooses():
    guidance = {"policy": lambda state: 1, "value": lambda state: 1.0}
    settings = {"epsilon": 0.5, "delta": 0.1, "gamma": 0.7, "seed": 0}

    def step(state, action, rng):
        return min(max(state + 2 * action - 1, 0), 9), float(state == 9), False

    certain = pacplan.Simulator(step, actions=2, successors=1)
    plan = pacplan.plan(certain, 7, rewards="deterministic", **settings, **guidance)
    assert plan.certified and plan.planner.startswith("OPD")
    plan = pacplan.plan(walk(jitted=False), **settings, **guidance)
    assert plan.certified and plan.planner.startswith("Canopy")
    plan = pacplan.plan(pacplan.envs.garnet(seed=0), 0, **settings, **guidance)
    assert plan.certified and plan.planner.startswith("Bracket")
