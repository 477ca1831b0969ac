"""What a look sees of a model, and what it costs."""

import re

import numba
import numpy as np
import pytest

import pacplan
from pacplan.engine.interrupts import Interrupt
from pacplan.look import MOST_CALLS, look
from pacplan.models.protocol import BrokenPromiseError


def seed(number=0):
    return np.random.SeedSequence(number)


@numba.njit
def jitted_walk(state, action, rng):
    move = 1 if (rng.random() < 0.8) == (action == 1) else -1
    return state + move, 0.5, False


def walk(state, action, rng):
    move = 1 if (rng.random() < 0.8) == (action == 1) else -1
    return state + move, 0.5, False


def drift(state, action, rng):
    return state + action + rng.normal(), 0.5, False


def count(state, action, rng):
    return state + action, 0.5, False


# What is seen -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [walk, jitted_walk], ids=["python", "jitted"])
def test_a_simulator(step):
    seen = look(pacplan.Simulator(step, actions=2), 5, 8, seed())
    assert seen.calls == 88 and seen.reached == 64
    # After the first call each pair that is met again leads to one of two places.
    assert seen.recurred >= seen.again - 17
    assert 0 < seen.varied < seen.again
    assert 8 <= seen.states <= 17
    assert seen.successors_recur and seen.states_recur


def test_continuous_noise():
    seen = look(pacplan.Simulator(drift, actions=3), 0.0, 8, seed())
    # The 12 calls of each of three actions, and the first steps of 8 episodes.
    assert seen.calls == 36 + 64
    assert seen.again == 33 + 8 == seen.varied
    assert seen.recurred == 0
    assert seen.states == seen.reached == 64
    assert not (seen.successors_recur or seen.states_recur)


# What it costs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("actions", "horizon"), [(1, 1), (2, 3), (9, 1000)])
def test_its_calls_are_bounded(actions, horizon):
    seen = look(pacplan.Simulator(drift, actions=actions), 0.0, horizon, seed())
    assert seen.calls == 12 * min(actions, 4) + 8 * min(horizon, 8) <= MOST_CALLS


def test_a_seed_decides_everything():
    drawn = []

    def step(state, action, rng):
        drawn.append(drift(state, action, rng))
        return drawn[-1]

    model, made = pacplan.Simulator(step, actions=2), []
    for number in (1, 1, 2):
        drawn.clear()
        made.append((look(model, 0.0, 8, seed(number)), list(drawn)))
    assert made[0] == made[1] and made[0][1] != made[2][1]


@pytest.mark.parametrize(("seconds", "calls"), [(2.5, 4), (0.5, 2), (0.0, 2), (None, 88)])
def test_its_time_is_limited(monkeypatch, clock, seconds, calls):
    """Each call takes a second; the first, which may compile, does not count."""
    monkeypatch.setattr("pacplan.look.time", clock)

    def step(state, action, rng):
        clock.now += 1.0
        return drift(state, action, rng)

    seen = look(pacplan.Simulator(step, actions=2), 0.0, 8, seed(), seconds=seconds)
    assert seen.calls == calls
    assert seen.seconds == calls - 1


# What ends it -----------------------------------------------------------------------------------------


def wrong(kind):
    """A model that is wrong from its thirtieth call on, and how."""
    calls = []

    def step(state, action, rng):
        calls.append(state)
        answer = (state, 0.5, False)
        if len(calls) < 30:
            return answer
        if kind == "raises":
            raise KeyError("own words")
        return {
            "reward": (state, 2.0, False),
            "ends": (state, 0.5, True),
            "unhashable": ([state], 0.5, False),
            "pair": (state, 0.5),
            "successors": (len(calls), 0.5, False),
        }[kind]

    return pacplan.Simulator(step, actions=2, successors=1, may_end=kind != "ends")


@pytest.mark.parametrize("kind", ["raises", "reward", "ends", "unhashable", "pair", "successors"])
def test_what_is_wrong_is_said_as_a_plan_says_it(kind):
    """The same error, word for word, but for the state, action and step."""

    def error(ask):
        with pytest.raises((BrokenPromiseError, KeyError)) as caught:
            ask(wrong(kind))
        notes = getattr(caught.value, "__notes__", [])
        return type(caught.value), *(re.sub(r"\d+", "#", text) for text in (str(caught.value), *notes))

    asked = {"epsilon": 0.01, "delta": 0.1, "gamma": 0.9}
    looked = error(lambda model: look(model, 0, 8, seed()))
    planned = error(lambda model: pacplan.plan(model, 0, seed=0, **asked))
    assert looked == planned
    assert planned == error(lambda model: pacplan.Bracket(**asked).plan(model, 0, seed=0))


def test_promises_of_the_user_are_checked():
    with pytest.raises(BrokenPromiseError, match="='deterministic', but a second successor"):
        look(pacplan.Simulator(drift, actions=2), 0.0, 8, seed(), deterministic=True)
    with pytest.raises(BrokenPromiseError, match="more than the promised 2 successors"):
        look(pacplan.Simulator(drift, actions=2, successors=2), 0.0, 8, seed())

    def step(state, action, rng):
        return state, rng.random(), False

    with pytest.raises(BrokenPromiseError, match=r"this pair paid 0\.\d+ after"):
        look(pacplan.Simulator(step, actions=2), 0, 8, seed(), same_rewards=True)
    look(pacplan.Simulator(count, actions=2), 0, 8, seed(), deterministic=True, same_rewards=True)


def test_ctrl_c():
    interrupt = Interrupt()
    made = []

    def step(state, action, rng):
        made.append(state)
        interrupt.requested = len(made) == 20
        return drift(state, action, rng)

    assert look(pacplan.Simulator(step, actions=2), 0.0, 8, seed(), interrupt=interrupt).calls == 20

    def raising(state, action, rng):
        made.append(state)
        if len(made) == 20:
            raise KeyboardInterrupt
        return drift(state, action, rng)

    made.clear()
    interrupt = Interrupt()
    assert look(pacplan.Simulator(raising, actions=2), 0.0, 8, seed(), interrupt=interrupt).calls == 19
    assert interrupt.requested
    for interrupt in (None, Interrupt(requested=False, forced=True)):
        made.clear()
        with pytest.raises(KeyboardInterrupt):
            look(pacplan.Simulator(raising, actions=2), 0.0, 8, seed(), interrupt=interrupt)
