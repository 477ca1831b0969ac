"""Tables that are none are refused at once and by name."""

import numpy as np
import pytest

from conftest import short
from faulty import P, R
from pacplan import Simulator, TabularMDP
from refusals import HUGE, INF, NAN, PLANNER, Counting, refused

SPARSE = np.ones((2, 3, 1))


def changed(array, index, value):
    array = array.copy()
    array[index] = value
    return array


@pytest.mark.parametrize(
    ("p", "rewards", "to", "successors", "random_rewards"),
    [
        ([0.5, 0.5], [0.2, 0.2], [0, 0], 1, False),
        ([0.5, 0.5], [0.2, 0.2 + 1e-12], [0, 0], 1, False),  # The same but for rounding.
        ([0.5, 0.5], [0.2, 0.3], [0, 0], 1, True),
        ([1e-9, 1.0 - 1e-9], [0.2, 0.3], [0, 0], 1, True),
        ([0.0, 1.0], [0.2, 0.3], [0, 1], 1, False),
        ([0.5, 0.5], [0.2, 0.2], [0, 1], 2, False),
        ([0.5, 0.5], [0.2, 0.3], [0, 1], 2, True),
        ([0.5, 0.5], [0.2, 0.2], [2, 3], 1, False),  # All ends are one successor.
        ([0.5, 0.5], [0.2, 0.3], [2, 3], 1, True),
        ([0.5, 0.5], [0.2, 0.2], [0, 3], 2, False),
    ],
)
def test_what_is_random_is_read_from_the_rows(p, rewards, to, successors, random_rewards):
    """Of those that can be met: not of ends, nor of actions that are not available."""
    coin = [[0.5, 0.5], [0.1, 0.9], [0, 1]]
    rows = [[p, rewards, to], coin, [[1.0, 0.0], [0.4, 0.9], [0, 0]], coin, coin, coin, coin, coin]
    tables = [np.array([row[i] for row in rows]).reshape(4, 2, 2) for i in range(3)]
    settings = {
        "terminal": [2, 3],
        "available": np.array([[True, False], [True, False], [True, True], [True, True]]),
    }
    model = TabularMDP(tables[0], tables[1], tables[2].astype(int), **settings)
    assert (model.successors, model.random_rewards) == (successors, random_rewards)
    noisy = TabularMDP(tables[0], tables[1], tables[2].astype(int), noise="bernoulli", **settings)
    assert noisy.random_rewards


TO = np.zeros((2, 3, 1), int)
MASK = np.ones((2, 3), bool)
REFUSED = [
    ("transitions", None, ["numbers"]),
    ("transitions", [[0.5, 0.5], [1.0]], []),
    ("transitions", P[0], ["shape", "(3, 2)"]),
    ("transitions", np.full((2, 3, 4), 0.25), ["dense", "successors"]),
    ("transitions", changed(P, (1, 2, 0), NAN), ["NaN", "state 1, action 2"]),
    ("transitions", changed(P, (1, 2), [-0.5, 1.5]), ["negative", "-0.5"]),
    ("transition", changed(P, (1, 2), [0.5, 0.4]), ["state 1, action 2", "0.9", "1"]),
    ("transition", changed(P, (0, 0), [0.5, 0.5 + 1e-6]), ["state 0, action 0", "1.000001"]),
    ("rewards", R + 1j, ["numbers"]),
    ("rewards", R.T, ["shape", "(3, 2)", "(2, 3)"]),
    ("rewards", changed(R, (1, 2), -INF), ["-inf", "state 1, action 2"]),
    ("reward", changed(R, (1, 2), 1.5), ["1.5", "state 1, action 2", "reward_range=(0.0, 1.0)"]),
    ("successors", TO.astype(float), ["integers", "float64"]),
    ("successors", np.zeros((2, 3, 2), int), ["shape", "(2, 3, 2)"]),
    ("successors", changed(TO, (1, 1, 0), 2), ["0..1", "2"]),
    ("terminal", [1.0], ["integers", "float64"]),
    ("terminal", [2], ["0..1", "[2]"]),
    ("terminal", [True], ["(2,)", "(1,)"]),
    ("available", MASK.astype(int), ["booleans", "int64"]),
    ("available", MASK.T, ["(2, 3)", "(3, 2)"]),
    ("state 1", {"available": changed(MASK, 1, False)}, ["no action"]),
    ("initial", 2, ["2"]),
    ("noise", "gauss", ["'gauss'", "bernoulli"]),
]


@pytest.mark.parametrize(("name", "value", "words"), REFUSED, ids=short)
def test_what_is_no_table(name, value, words):
    given = {"transitions": P, "rewards": R}
    if name == "successors":
        given["transitions"] = SPARSE
    argument = {"transition": "transitions", "reward": "rewards"}.get(name, name)
    given |= value if isinstance(value, dict) else {argument: value}
    refused(lambda: TabularMDP(**given), name, *words)


@pytest.mark.parametrize(
    "bad", [None, (0, 1, 2), (1, 1), (False, True), (0, NAN), (0, HUGE), (-1e308, 1e308)], ids=short
)
def test_reward_range(bad):
    def planned(model):
        return PLANNER.plan(model, seed=0, budget=100)

    refused(lambda: planned(TabularMDP(P, np.zeros((2, 3)), reward_range=bad)), "reward")
    counting = Counting()
    refused(
        lambda: planned(Simulator(counting.step, actions=2, successors=1, reward_range=bad)), "reward"
    )
    assert counting.calls == 0


@pytest.mark.parametrize("state", [True, 1.0, "0", (0,), 2, -1, 2**70], ids=short)
def test_states_a_table_does_not_have(state):
    refused(lambda: PLANNER.plan(TabularMDP(P, R), state, seed=0), "state", repr(state))


def test_terminal_start_state():
    model = TabularMDP(P, R, terminal=[1], initial=1)
    refused(lambda: PLANNER.plan(model, seed=0), "state 1", "terminal")
    refused(lambda: PLANNER.plan(model, 1, seed=0), "state 1", "terminal")


def test_step_of_a_table_checks_its_arguments():
    model = TabularMDP(P, R, terminal=[1], available=changed(MASK, (0, 1), False))
    rng = np.random.default_rng(0)
    refused(lambda: model.step(0, 1, rng), "state 0", "1", "(0, 2)")
    refused(lambda: model.step(0, 3, rng), "state 0", "3", "(0, 2)")
    refused(lambda: model.step(1, 0, rng), "state 1", "terminal")
    refused(lambda: model.step(2, 0, rng), "state", "0..1", "2")
