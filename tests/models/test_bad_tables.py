"""Tables that are none are refused at once and by name."""

import numpy as np
import pytest

from conftest import short
from faulty import P, R
from pacplan import Simulator, TabularMDP, envs
from refusals import HUGE, INF, NAN, PLANNER, Counting, refused

SPARSE = np.ones((2, 3, 1))


def changed(array, index, value):
    array = array.copy()
    array[index] = value
    return array


def test_the_tables_these_tests_start_from_are_good():
    assert TabularMDP(P, R).states == 2
    assert TabularMDP(SPARSE, R, successors=np.ones((2, 3, 1), int)).successors == 1


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
    # At the second step alone.
    calm = np.array([1.0, 0.0]) + np.zeros((4, 2, 2))
    p, rewards, to = (np.stack(pair) for pair in zip((calm, calm, 0 * calm), tables, strict=True))
    later = TabularMDP(p, rewards, to.astype(int), **settings)
    assert (later.successors, later.random_rewards) == (successors, random_rewards)


@pytest.mark.parametrize(
    ("transitions", "words"),
    [
        (None, ["transitions"]),
        ("abc", ["transitions"]),
        (P.astype(str), ["transitions", "numbers"]),
        (P + 0.5j, ["transitions", "numbers"]),
        ({}, ["transitions"]),
        (0.5, ["transitions", "shape", "()"]),
        ([], ["transitions", "shape"]),
        ([[0.5, 0.5], [1.0]], ["transitions"]),
        (P[0], ["transitions", "shape", "(3, 2)"]),
        (P[np.newaxis, np.newaxis], ["transitions", "shape", "(1, 1, 2, 3, 2)"]),
        (np.zeros((0, 3, 0)), ["transitions", "shape", "(0, 3, 0)"]),
        (np.zeros((2, 0, 2)), ["transitions", "shape", "(2, 0, 2)"]),
        (np.full((2, 3, 4), 0.25), ["transitions", "dense", "successors"]),
        (changed(P, (1, 2, 0), NAN), ["transitions", "NaN", "state 1, action 2"]),
        (changed(P, (1, 2, 0), INF), ["transitions", "infinity", "state 1, action 2"]),
        (changed(P, (1, 2), [-0.5, 1.5]), ["transitions", "negative", "-0.5"]),
        (changed(P, (1, 2), [0.5, 0.4]), ["state 1, action 2", "0.9", "1"]),
        (changed(P, (1, 2), [1.0, 0.1]), ["state 1, action 2", "1.1", "1"]),
        (changed(P, (0, 0), [0.0, 0.0]), ["state 0, action 0", "0.0", "1"]),
        (changed(P, (0, 0), [0.5, 0.5 + 1e-6]), ["state 0, action 0", "1.000001"]),
    ],
)
def test_transitions(transitions, words):
    refused(lambda: TabularMDP(transitions, R), *words)


@pytest.mark.parametrize(
    ("rewards", "words"),
    [
        (None, ["rewards"]),
        ("abc", ["rewards"]),
        (R.astype(str), ["rewards", "numbers"]),
        (R + 1j, ["rewards", "numbers"]),
        (0.5, ["rewards", "shape", "()", "(2, 3)"]),
        (R.T, ["rewards", "shape", "(3, 2)", "(2, 3)"]),
        (R[np.newaxis], ["rewards", "shape", "(1, 2, 3)"]),
        (np.zeros((2, 3, 3)), ["rewards", "shape", "(2, 3, 3)"]),
        (changed(R, (1, 2), NAN), ["rewards", "NaN", "state 1, action 2"]),
        (changed(R, (1, 2), -INF), ["rewards", "infinity", "state 1, action 2"]),
        (changed(R, (1, 2), 1.5), ["1.5", "state 1, action 2", "reward_range=(0.0, 1.0)"]),
        (changed(R, (0, 0), -1e-8), ["-1e-08", "state 0, action 0", "reward_range"]),
    ],
)
def test_rewards(rewards, words):
    refused(lambda: TabularMDP(P, rewards), *words)


TO = np.zeros((2, 3, 1), int)


@pytest.mark.parametrize(
    ("successors", "words"),
    [
        ("abc", ["successors", "integers"]),
        (TO.astype(float), ["successors", "integers", "float64"]),
        (TO.astype(bool), ["successors", "integers", "bool"]),
        (TO.astype(str), ["successors", "integers"]),
        (TO[..., 0], ["successors", "shape", "(2, 3)"]),
        (np.zeros((2, 3, 2), int), ["successors", "shape", "(2, 3, 2)"]),
        ([], ["successors", "shape"]),
        ([[0], [0, 1]], ["successors"]),
        (changed(TO, (1, 1, 0), 2), ["successors", "0..1", "2"]),
        (changed(TO, (1, 1, 0), -1), ["successors", "0..1", "-1"]),
        (TO.astype(np.uint64) + np.uint64(2**63), ["successors", "0..1"]),
        (np.array(2**70), ["successors"]),
    ],
    ids=short,
)
def test_successors(successors, words):
    refused(lambda: TabularMDP(SPARSE, R, successors=successors), *words)


@pytest.mark.parametrize(
    ("terminal", "words"),
    [
        (1, ["terminal", "1", "0..1"]),
        (True, ["terminal", "(2,)", "()"]),
        ("1", ["terminal", "integers"]),
        ([1.0], ["terminal", "integers", "float64"]),
        ([NAN], ["terminal", "integers"]),
        ([None], ["terminal", "integers"]),
        ([2], ["terminal", "0..1", "[2]"]),
        ([-1], ["terminal", "0..1", "[-1]"]),
        ([[1]], ["terminal", "0..1", "[[1]]"]),
        ([[0], [0, 1]], ["terminal"]),
        ([True], ["terminal", "(2,)", "(1,)"]),
        ([[True, False]], ["terminal", "(2,)", "(1, 2)"]),
        ([True, False, False], ["terminal", "(2,)", "(3,)"]),
    ],
    ids=short,
)
def test_terminal(terminal, words):
    refused(lambda: TabularMDP(P, R, terminal=terminal), *words)


MASK = np.ones((2, 3), bool)


@pytest.mark.parametrize(
    ("available", "words"),
    [
        (True, ["available", "(2, 3)", "()"]),
        (MASK.astype(int), ["available", "booleans", "int64"]),
        (MASK.astype(float), ["available", "booleans", "float64"]),
        (MASK.astype(str), ["available", "booleans"]),
        (MASK.T, ["available", "(2, 3)", "(3, 2)"]),
        (MASK[0], ["available", "(2, 3)", "(3,)"]),
        ([[True], [True, False]], ["available"]),
        ("yes", ["available", "booleans"]),
        (changed(MASK, 1, False), ["state 1", "no action"]),
    ],
    ids=short,
)
def test_available(available, words):
    refused(lambda: TabularMDP(P, R, available=available), *words)


@pytest.mark.parametrize("initial", [True, 1.0, "0", None, NAN, [0], (0,), 2, -1, 2**70], ids=short)
def test_initial(initial):
    refused(lambda: TabularMDP(P, R, initial=initial), "initial", repr(initial))


@pytest.mark.parametrize("noise", ["", "gauss", "None", None, True, 0, ["none"]], ids=short)
def test_noise(noise):
    refused(lambda: TabularMDP(P, R, noise=noise), "noise", repr(noise), "bernoulli")
    refused(lambda: envs.garnet(noise=noise), "noise", repr(noise), "bernoulli")


@pytest.mark.parametrize(
    "bad",
    [
        None,
        0,
        1.0,
        "01",
        (0,),
        (0, 1, 2),
        (1, 1),
        (1, 0),
        ("0", "1"),
        (False, True),
        (np.False_, np.True_),
        (None, 1),
        (0, NAN),
        (-INF, 0),
        (0, INF),
        (0, HUGE),
        (0, 1j),
        (0, [1]),
        # Its width is no float, respectively too small to divide by.
        (-1e308, 1e308),
        (0.0, 5e-324),
    ],
    ids=short,
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


@pytest.mark.parametrize("state", [True, 1.0, "0", NAN, (0,), [0], 2, -1, 2**70], ids=short)
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
