"""What a simulator must leave alone: its states, and its answers about their actions."""

import collections
import copy
import itertools
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest

import pacplan
from pacplan import BrokenPromiseError
from pacplan.core.keys import signs

PLANNER = pacplan.Bracket(epsilon=0.3, delta=0.01, gamma=0.9, horizon=3)
GUESSER = pacplan.UCT(gamma=0.9, horizon=4)


def walk(state, action, rng):
    """'R' pays nearly always, 'L' hardly ever."""
    return (state + 1) % 5, float(rng.random() < (0.95 if action == "R" else 0.05)), False


def plans(actions, planner=PLANNER, step=walk, seeds=18, **settings):
    model = pacplan.Simulator(step, actions=actions, successors=1, **settings)
    return [planner.plan(model, 0, seed=seed, budget=20_000) for seed in range(seeds)]


# ------------------------------------------------------------------------------------- Actions


def test_the_root_offers_what_the_plan_says():
    """An answer that turns after the planner has asked: whatever is certified is right."""
    for asked_before in range(1, 8):
        counter = itertools.count()

        def once(state, counter=counter, turn=asked_before):
            return ["R", "L"] if next(counter) == turn else ["L", "R"]

        model = pacplan.Simulator(walk, actions=once, successors=1)
        try:
            plan = PLANNER.plan(model, 0, seed=0, budget=20_000)
        except BrokenPromiseError:
            continue
        assert plan.action == "R"


def test_agents_are_told_as_well():
    listed = ["L", "R"]
    model = pacplan.Simulator(walk, actions=lambda state: listed, successors=1)
    agent = pacplan.Agent(None, model, gamma=0.9, budget=300, seed=0)
    assert agent.act(0) == "R" and agent.act(1) == "R" and agent.history[1].reused_samples > 0
    listed.reverse()
    # The chart that was kept counts actions as they were listed before.
    with pytest.raises(BrokenPromiseError, match=r"returned \['L', 'R'\] and then \['R', 'L'\]"):
        agent.act(2)


@numba.njit
def jitted_walk(state, action, rng):
    return (state + 1) % 5, 1.0 if action == 0 else 0.0, False


@pytest.mark.parametrize(
    ("actions", "labels"),
    [
        (range(3, 5), (3, 4)),
        (np.array(["L", "R"]), ("L", "R")),
        (collections.deque(["L", "R"]), ("L", "R")),
        ([False, True], (False, True)),
    ],
)
def test_any_sequence_lists_actions(actions, labels):
    def step(state, action, rng):
        assert any(action is label or action == label for label in labels)
        return state, float(action == labels[1]), False

    for given in (actions, lambda state: actions):
        model = pacplan.Simulator(step, actions=given, successors=1)
        plan = GUESSER.plan(model, 0, seed=0, budget=100)
        assert plan.actions == labels and plan.action == labels[1]
        assert all(type(a) is type(b) for a, b in zip(plan.actions, labels, strict=True))


def test_sequences_that_list_no_actions():
    for actions in ("LR", {0, 1}, np.zeros((2, 2)), [], range(0)):
        with pytest.raises((TypeError, ValueError)):
            pacplan.Simulator(walk, actions=actions, successors=1)
    assert pacplan.Simulator(jitted_walk, actions=range(2), successors=1).max_actions == 2
    with pytest.raises(TypeError, match="pass actions=2"):
        pacplan.Simulator(jitted_walk, actions=["L", "R"], successors=1)


# -------------------------------------------------------------------------------------- States


class Box:
    """A state that can be changed: equal to itself only."""

    def __init__(self, place):
        self.place = place


class Valued(Box):
    """Equal by what it holds."""

    def __eq__(self, other):
        return isinstance(other, Valued) and self.place == other.place

    def __hash__(self):
        return hash(self.place)


def in_place(state, action, rng):
    state.place += 1
    return state, float(action), state.place >= 50


def in_a_tuple(state, action, rng):
    return (in_place(state[0], action, rng)[0],), float(action), False


@pytest.mark.parametrize(
    ("step", "state"), [(in_place, Box(0)), (in_place, Valued(0)), (in_a_tuple, (Box(0),))]
)
@pytest.mark.parametrize("planner", [PLANNER, GUESSER], ids=["Bracket", "UCT"])
def test_states_changed_in_place_are_found_out(step, state, planner):
    model = pacplan.Simulator(step, actions=2, successors=1)
    with pytest.raises(
        BrokenPromiseError, match=r"a state has changed and is now|more than the promised"
    ):
        planner.plan(model, copy.deepcopy(state), seed=0, budget=1000)


def test_states_that_are_always_new_are_explained():
    def step(state, action, rng):
        return Box(state.place + 1), float(action), False

    model = pacplan.Simulator(step, actions=2, successors=2)
    with pytest.raises(BrokenPromiseError, match="an object of class Box is equal to itself only"):
        GUESSER.plan(model, Box(0), seed=0, budget=1000)


# ---------------------------------------------------------------------------------- Exceptions


@pytest.mark.parametrize("wrap", [float, lambda zero: (1, (zero,))])
def test_zeros_of_both_signs_are_two_states(wrap):
    """They are equal, but what follows them is not."""

    def step(state, action, rng):
        if state == "start":
            return wrap(rng.choice([0.0, -0.0])), 0.0, False
        return "end", float(-1.0 not in signs(state)), False

    model = pacplan.Simulator(step, actions=2, successors=2)
    plan = pacplan.UCT(gamma=0.9, horizon=2).plan(model, "start", seed=0, budget=200)
    for pair in plan.tree.tried(0):
        found = list(plan.tree.outcomes(pair))
        assert len(found) == 2
        for outcome in found:
            reward = float(-1.0 not in signs(outcome.state))
            pairs = list(plan.tree.tried(outcome.node))
            assert pairs and all(plan.tree.pairs[link]["average"] == reward for link in pairs)
    side_by_side = pacplan.UCT(gamma=0.9, horizon=2).plan(
        model, "start", seed=0, budget=200, executor=ThreadPoolExecutor(2)
    )
    assert all(len(list(side_by_side.tree.outcomes(pair))) == 2 for pair in side_by_side.tree.tried(0))
