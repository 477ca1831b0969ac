"""A jitted simulator that breaks a promise is told which one, and what it raises comes through."""

import numba
import numpy as np
import pytest

import pacplan
from conftest import short
from faulty import (
    CROWDED,
    DIVIDES,
    FAITHFUL,
    NO_ACTIONS,
    NO_COUNT,
    NO_LUCK,
    NOT_A_NUMBER,
    RAISES,
    STUCK,
    THREE_ACTIONS,
    THREE_WAYS,
    TOO_HIGH,
    jitted,
    jitted_actions,
    jitted_step,
    plan_jitted,
)
from pacplan import MDPGapE, Simulator
from refusals import NAN, PLANNER, broken, refused


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (TOO_HIGH, ["2.0", "reward_range=(0.0, 1.0)", "action"]),
        (NOT_A_NUMBER, ["nan", "reward_range=(0.0, 1.0)", "action"]),
        (THREE_WAYS, ["2", "successors", "action"]),
    ],
)
def test_jitted_promises(state, words):
    broken(lambda: plan_jitted(state), f"state {state}", *words)


def test_what_a_look_at_a_jitted_model_says():
    asked = {"epsilon": 0.5, "delta": 0.1, "gamma": 0.7, "horizon": 3, "seed": 0}
    broken(lambda: pacplan.plan(jitted(), TOO_HIGH, **asked), "2.0", "reward_range=(0.0, 1.0)")


def test_jitted_state_without_actions():
    broken(lambda: plan_jitted(STUCK), str(NO_ACTIONS), "no action")
    broken(lambda: plan_jitted(NO_ACTIONS), str(NO_ACTIONS), "no action")


def test_jitted_state_with_too_many_actions():
    broken(lambda: plan_jitted(CROWDED), f"state {THREE_ACTIONS}", "3", "2")
    broken(lambda: plan_jitted(THREE_ACTIONS), str(THREE_ACTIONS), "3", "max_actions=2")


@pytest.mark.parametrize("state", [True, 1.0, "0", NAN, 2**63, -(2**63) - 1], ids=short)
def test_jitted_states_are_64_bit_integers(state):
    refused(lambda: plan_jitted(state), "state", repr(state))


@numba.njit
def unsigned(state, action, rng):
    # States of 64 bits without a sign, as of a board of bits: 2^60 and 2^60 + 1 are two.
    base = np.uint64(1 << 60)
    if state == 0:
        return base + np.uint64(1 - action), 0.3 * action, False
    return base, 1.0 if np.uint64(state) == base + np.uint64(1) else 0.0, False


def test_jitted_states_without_a_sign_are_told_apart():
    model = Simulator(unsigned, actions=2, successors=1)
    planner = MDPGapE(epsilon=0.2, delta=0.1, gamma=1.0, horizon=2, transitions="deterministic")
    plan = planner.plan(model, 0, seed=0, budget=2000)
    assert plan.action == 0 and plan.upper[0] >= 1.0


def test_jitted_step_needs_jitted_actions():
    refused(lambda: jitted(actions=lambda s: 2), "actions", "jitted")


STEPS = [
    lambda state, action: (state, 0.5, False),
    lambda state, action, rng: (state, 0.5),
    lambda state, action, rng: None,
    lambda state, action, rng: (state, "0.5", False),
    lambda state, action, rng: ((state, state), 0.5, False),
    lambda state, action, rng: (state + 0.5, 0.5, False),  # cut to an integer: another state
]


@pytest.mark.parametrize("step", STEPS)
def test_jitted_step_of_other_types(step):
    model = Simulator(numba.njit(step), actions=jitted_actions, successors=2, max_actions=2)
    refused(lambda: PLANNER.plan(model, 0, seed=0, budget=10), "step", "state", "reward")


@pytest.mark.parametrize("actions", [lambda state: 2.5, lambda state: "2"])
def test_jitted_actions_of_other_types(actions):
    model = Simulator(jitted_step, actions=numba.njit(actions), successors=2, max_actions=2)
    with pytest.raises((ValueError, TypeError), match="actions"):
        PLANNER.plan(model, 0, seed=0, budget=10)


@pytest.mark.parametrize(
    ("state", "kind", "message"),
    [
        (RAISES, LookupError, "the simulator's own message"),
        (DIVIDES, ZeroDivisionError, "division by zero"),
        (NO_LUCK, LookupError, "no luck"),
        (NO_COUNT, LookupError, "cannot count"),
    ],
)
def test_what_a_jitted_simulator_raises_comes_through(state, kind, message):
    with pytest.raises(kind, match=message) as caught:
        plan_jitted(state)
    assert type(caught.value) is kind
    assert plan_jitted(FAITHFUL).samples > 0
