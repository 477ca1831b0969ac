"""Bad input is refused at once and by name, and a model that breaks a promise is told which one."""

import gc
import math
import resource
import subprocess
import sys
import tracemalloc
import weakref

import numba
import numpy as np
import pytest

import pacplan
from conftest import short
from pacplan import BrokenPromiseError, MDPGapE, Simulator, TabularMDP, envs
from pacplan.models.simulator import PythonSession

NAN, INF = math.nan, math.inf
HUGE = 10**400  # no float holds it
NEARLY_ONE = math.nextafter(1.0, 0.0)
SETTINGS = {"epsilon": 1.0, "delta": 0.1, "gamma": 0.7}
PLANNER = MDPGapE(**SETTINGS)
# Comes back to a pair soon, so that a second look at it happens.
SHARP = {"epsilon": 0.01, "delta": 0.1, "gamma": 0.5}


def refused(call, *words):
    """The call raises ValueError or TypeError, and the message has all the words."""
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    assert not isinstance(caught.value, BrokenPromiseError)
    for word in words:
        assert word in str(caught.value)


def broken(call, *words):
    """The call raises BrokenPromiseError, and the message has all the words."""
    with pytest.raises(BrokenPromiseError) as caught:
        call()
    assert isinstance(caught.value, ValueError)
    for word in words:
        assert word in str(caught.value)


@pytest.fixture(autouse=True)
def _no_session_stays_open(monkeypatch):
    opened = weakref.WeakSet()
    start = PythonSession.__init__

    def noted(session, *arguments):
        opened.add(session)
        start(session, *arguments)

    monkeypatch.setattr(PythonSession, "__init__", noted)
    yield
    assert not any(session._entries for session in opened)


class Counting:
    """A Python simulator of one state that counts the calls it gets."""

    def __init__(self, **settings):
        self.calls = 0
        given = {"actions": 2, "successors": 1, "initial": 0}
        self.model = Simulator(self.step, **{**given, **settings})

    def step(self, state, action, rng):
        self.calls += 1
        return state, 0.5 * action, False


# Numbers of the planner -------------------------------------------------------------------------------

NOT_REAL = (True, np.True_, "1", b"1", None, 1j, [1.0], (1,), np.array([1.0, 2.0]), object())
NOT_FINITE = (NAN, INF, -INF, np.float64(NAN), np.float32(INF))
NOT_WHOLE = (True, np.True_, "3", 1.0, 1.5, NAN, INF, 2j, [2], np.array([1, 2]), np.float64(2))
NOT_FLAG = (1, 0, None, "yes", np.True_, NAN)


@pytest.mark.parametrize("name", ["epsilon", "delta", "gamma"])
@pytest.mark.parametrize("value", [*NOT_REAL, *NOT_FINITE], ids=short)
def test_planner_reals(name, value):
    refused(lambda: MDPGapE(**{**SETTINGS, name: value}), name, repr(value))


@pytest.mark.parametrize("name", ["epsilon", "delta", "gamma"])
def test_planner_reals_too_large_for_a_float(name):
    refused(lambda: MDPGapE(**{**SETTINGS, name: HUGE}), name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epsilon", -1),
        ("epsilon", -1e-300),
        ("delta", 0),
        ("delta", 0.0),
        ("delta", 1),
        ("delta", -0.1),
        ("delta", 1.1),
        ("gamma", -0.1),
        ("gamma", 1.0000001),
        ("gamma", -5e-324),
    ],
)
def test_planner_reals_out_of_range(name, value):
    refused(lambda: MDPGapE(**{**SETTINGS, name: value}), name, str(value))


def test_the_smallest_epsilon_has_a_horizon_too():
    # epsilon (1 - gamma) / 2 underflows, its logarithm does not.
    horizon = MDPGapE(epsilon=5e-324, delta=0.1, gamma=0.7).horizon
    assert 0.7**horizon * 2.0 / 0.3 <= 5e-324 < 0.7 ** (horizon - 10) * 2.0 / 0.3


@pytest.mark.parametrize("name", ["horizon", "chunk"])
@pytest.mark.parametrize("value", [*NOT_WHOLE, 0, -1], ids=short)
def test_planner_whole_numbers(name, value):
    refused(lambda: MDPGapE(**{**SETTINGS, name: value}), name, repr(value))


@pytest.mark.parametrize("name", ["epsilon", "delta", "gamma"])
def test_planner_settings_are_required(name):
    refused(lambda: MDPGapE(**{k: v for k, v in SETTINGS.items() if k != name}), name)


def test_no_discount_needs_a_horizon():
    refused(lambda: MDPGapE(epsilon=1, delta=0.1, gamma=1), "gamma=1", "horizon")


@pytest.mark.parametrize("name", ["goal", "rewards", "transitions", "thresholds"])
@pytest.mark.parametrize("value", ["", "Action", "none", None, True, 1, NAN, [], object()], ids=short)
def test_planner_words(name, value):
    refused(lambda: MDPGapE(**{**SETTINGS, name: value}), name, repr(value))


@pytest.mark.parametrize(
    "thresholds",
    [
        (),
        (abs,),
        (abs, abs, abs),
        (abs, 1),
        [abs, abs],
        abs,
        (lambda: 1.0, lambda: 1.0),
        (lambda n: 1.0, lambda n, delta, more: 1.0),
    ],
    ids=["none", "one", "three", "number", "list", "function", "of nothing", "of three"],
)
def test_thresholds_that_are_no_pair_of_functions(thresholds):
    refused(lambda: MDPGapE(**SETTINGS, thresholds=thresholds), "thresholds")


@pytest.mark.parametrize("value", [-1.0, NAN, INF, "a", None, [1.0, 2.0]], ids=str)
@pytest.mark.parametrize("which", [0, 1])
def test_thresholds_that_return_no_finite_number(value, which):
    pair = [lambda n: 1.0, lambda n: 1.0]
    pair[which] = lambda n: value
    counting = Counting()
    planner = MDPGapE(**SETTINGS, thresholds=tuple(pair))
    refused(lambda: planner.plan(counting.model, seed=0), "thresholds", "finite number")
    assert counting.calls == 0


@pytest.mark.parametrize("pair", [(math.log, math.log), (np.log1p, np.log1p)], ids=["log", "log1p"])
def test_thresholds_whose_signature_python_cannot_tell(pair):
    # They are functions of n, so they may be taken; if they are not, the message says what is.
    try:
        plan = MDPGapE(**SETTINGS, thresholds=pair).plan(Counting().model, seed=0, budget=50)
        told = f"thresholds taken, {plan.samples} calls"
    except (TypeError, ValueError) as error:
        told = str(error)
    assert "thresholds" in told


# Arguments of plan ------------------------------------------------------------------------------------


def plan_refused(counting, words, planner=PLANNER, **arguments):
    refused(lambda: planner.plan(counting.model, **{"seed": 0, **arguments}), *words)
    assert counting.calls == 0


@pytest.mark.parametrize("value", [*NOT_WHOLE, 0, -1, -(2**70)], ids=short)
def test_budget(value):
    plan_refused(Counting(), ["budget", repr(value)], budget=value)


@pytest.mark.parametrize(
    "value", [*(v for v in NOT_REAL if v is not None), *NOT_FINITE, 0, 0.0, -1, -1e-9], ids=short
)
def test_time_limit(value):
    plan_refused(Counting(), ["time_limit", repr(value)], time_limit=value)


def test_time_limit_too_large_for_a_float():
    plan_refused(Counting(), ["time_limit"], time_limit=HUGE)


@pytest.mark.parametrize(
    "value", [*NOT_WHOLE, -1, np.random.default_rng(0), np.random.PCG64(0)], ids=short
)
def test_seed(value):
    plan_refused(Counting(), ["seed", repr(value)], seed=value)


@pytest.mark.parametrize("value", NOT_FLAG, ids=short)
def test_progress(value):
    plan_refused(Counting(), ["progress", repr(value)], progress=value)


@pytest.mark.parametrize("value", [1, True, "print", [], (print,)], ids=short)
def test_callback(value):
    plan_refused(Counting(), ["callback", repr(value)], callback=value)


@pytest.mark.parametrize(
    "model", [None, 3, "garnet", print, Simulator, TabularMDP, envs.garnet, {}], ids=short
)
def test_what_is_no_model(model):
    refused(lambda: PLANNER.plan(model, 0), "model", type(model).__name__)


@pytest.mark.parametrize("state", [[1], {}, set(), np.zeros(2), ([],)], ids=short)
def test_unhashable_state(state):
    plan_refused(Counting(), ["hashable", repr(state)], state=state)


def test_no_state_to_plan_from():
    plan_refused(Counting(initial=None), ["state"])


@pytest.mark.parametrize(
    ("settings", "arguments", "words"),
    [
        ({"epsilon": 0.0}, {}, ["epsilon=0", "budget", "time_limit"]),
        ({"epsilon": 0.0, "horizon": 3}, {}, ["epsilon=0", "budget", "time_limit"]),
        ({"epsilon": 0.0}, {"time_limit": 1.0}, ["horizon", "budget"]),
        ({"thresholds": "budget"}, {}, ["thresholds", "budget"]),
        ({"thresholds": "budget"}, {"time_limit": 1.0}, ["thresholds", "budget"]),
        ({"rewards": "known"}, {}, ["known", "Simulator"]),
        ({"transitions": "known"}, {}, ["known", "Simulator"]),
    ],
)
def test_what_the_planner_cannot_do(settings, arguments, words):
    planner = MDPGapE(**{**SETTINGS, **settings})
    plan_refused(Counting(), words, planner=planner, **arguments)


def test_unknown_number_of_successors():
    plan_refused(Counting(successors=None), ["successors"])


def test_fewer_steps_than_the_horizon():
    model = TabularMDP(np.full((3, 2, 2, 2), 0.5), np.zeros((3, 2, 2)))
    refused(lambda: PLANNER.plan(model), "3 steps", "horizon", str(PLANNER.horizon))


# Too large for 64 bits, or for any memory: refused by name, or served, but never half of it.
@pytest.mark.parametrize("value", [2**63, 10**30])
@pytest.mark.parametrize("name", ["budget", "chunk", "successors"])
def test_integers_beyond_64_bits(name, value):
    settings = {name: value} if name == "chunk" else {}
    try:
        counting = Counting(**({name: value} if name == "successors" else {}))
        planner = MDPGapE(epsilon=2.0, delta=0.1, gamma=0.7, **settings)
        arguments = {name: value} if name == "budget" else {"budget": 500}
        plan = planner.plan(counting.model, seed=0, **arguments)
        told = f"{name} served" if plan.samples == counting.calls else "calls got lost"
    except ValueError as error:
        told = str(error)
    assert name in told


@pytest.mark.parametrize(
    ("word", "planner", "model"),
    [
        ("horizon", "horizon=10**12", ""),
        ("horizon", "horizon=2**63", ""),
        ("horizon", f"gamma={NEARLY_ONE!r}", ""),
        ("actions", "", "actions=2**40"),
        ("actions", "", "actions=lambda s: 2**40"),
    ],
)
def test_sizes_that_no_memory_holds(word, planner, model):
    # In a process of its own with little memory: the attempt would take the machine with it.
    code = f"""
import pacplan
calls = []
def step(s, a, rng):
    calls.append(s)
    return s, 0.5, False
try:
    model = pacplan.Simulator(step, **{{**dict(actions=2, successors=1, initial=0), **dict({model})}})
    settings = {{**dict(epsilon=1, delta=.1, gamma=.7), **dict({planner})}}
    pacplan.MDPGapE(**settings).plan(model, seed=0, budget=100)
except (ValueError, TypeError) as error:
    print("refused:", len(calls), error)
"""
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=600,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30)),
    )
    assert run.stdout.startswith("refused: 0 "), run.stderr[-300:]
    assert word in run.stdout


# Tables -----------------------------------------------------------------------------------------------

P = np.full((2, 3, 2), 0.5)
R = np.full((2, 3), 0.5)
SPARSE = np.ones((2, 3, 1))


def changed(array, index, value):
    array = array.copy()
    array[index] = value
    return array


def test_the_tables_these_tests_start_from_are_good():
    assert TabularMDP(P, R).states == 2
    assert TabularMDP(SPARSE, R, successors=np.ones((2, 3, 1), int)).successors == 1


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


@pytest.mark.parametrize("name", ["states", "actions", "successors"])
@pytest.mark.parametrize("value", [*NOT_WHOLE, 0, -1], ids=short)
def test_garnet_sizes(name, value):
    refused(lambda: envs.garnet(**{name: value}), name, repr(value))


@pytest.mark.parametrize("value", [*NOT_REAL, *NOT_FINITE, -0.1, 1.1], ids=short)
def test_garnet_reward_density(value):
    refused(lambda: envs.garnet(states=5, reward_density=value), "reward_density", repr(value))


@pytest.mark.parametrize("value", [*NOT_WHOLE, -1], ids=short)
def test_garnet_seed(value):
    refused(lambda: envs.garnet(states=5, seed=value), "seed", repr(value))


def test_garnet_more_successors_than_states():
    refused(lambda: envs.garnet(states=3, successors=4), "successors=4", "3")


# Simulators, before the first call --------------------------------------------------------------------


def simulator(**settings):
    given = {"step": lambda s, a, rng: (s, 0.5, False), "actions": 2, "successors": 1}
    return Simulator(**{**given, **settings})


@pytest.mark.parametrize("value", [None, 1, True, "step", (0, 0.5, False), []], ids=short)
def test_simulator_step(value):
    refused(lambda: simulator(step=value), "step", repr(value))


# A list or an array is the list of the actions.
NO_ACTIONS = [value for value in NOT_WHOLE if not isinstance(value, list | np.ndarray)]


@pytest.mark.parametrize("value", [*NO_ACTIONS, None, 0, -1], ids=short)
def test_simulator_actions(value):
    refused(lambda: simulator(actions=value), "actions", repr(value))


@pytest.mark.parametrize("value", [*NOT_WHOLE, 0, -1], ids=short)
def test_simulator_successors(value):
    refused(lambda: simulator(successors=value), "successors", repr(value))


@pytest.mark.parametrize("value", [*NOT_WHOLE, 0, -1], ids=short)
def test_simulator_max_actions(value):
    refused(lambda: simulator(actions=lambda s: 2, max_actions=value), "max_actions", repr(value))


@pytest.mark.parametrize(
    ("actions", "value"), [(2, 3), (2, 1), (2, "2"), (2, 2.0), (1, True), (1, np.True_), (1, 1.0)]
)
def test_simulator_max_actions_beside_a_number_of_actions(actions, value):
    refused(lambda: simulator(actions=actions, max_actions=value), "max_actions", repr(value))


@pytest.mark.parametrize("name", ["stationary", "may_end"])
@pytest.mark.parametrize("value", NOT_FLAG, ids=short)
def test_simulator_flags(name, value):
    refused(lambda: simulator(**{name: value}), name, repr(value))


@pytest.mark.parametrize("value", [[1], {}, np.zeros(2), ([],)], ids=short)
def test_simulator_initial(value):
    refused(lambda: simulator(initial=value), repr(value), "hashable")


@pytest.mark.parametrize("offered", [0, [], (), -1, 3, ["a", "b", "c"]], ids=short)
def test_first_state_with_a_wrong_number_of_actions(offered):
    counting = Counting(actions=lambda s: offered, max_actions=2, initial="here")
    broken(lambda: PLANNER.plan(counting.model, seed=0), "'here'", "action")
    assert counting.calls == 0


# Simulators that break a promise: Python --------------------------------------------------------------


def two_ways(state):
    """Actions with names, so that a message cannot name them by chance."""
    return ["left", "right"]


def plan_drawn(drawn, planner=PLANNER, **settings):
    """Plan in a simulator that always draws `drawn`, or calls it."""
    step = drawn if callable(drawn) else lambda s, a, rng: drawn
    given = {"actions": two_ways, "successors": 2, "initial": "start"}
    return planner.plan(Simulator(step, **{**given, **settings}), seed=0, budget=3000)


def broken_at_start(call, *words):
    """Broken in the state 'start', by one of its actions."""
    with pytest.raises(BrokenPromiseError) as caught:
        call()
    message = str(caught.value)
    assert "'start'" in message
    assert "'left'" in message or "'right'" in message
    for word in words:
        assert word in message


@pytest.mark.parametrize("reward", [NAN, INF, -INF, 2.0, -0.1, 1.0000001, -1e-8, 10**30, np.float32(7)])
def test_reward_outside_its_range(reward):
    broken_at_start(
        lambda: plan_drawn(("start", reward, False)), str(float(reward)), "reward_range=(0.0, 1.0)"
    )
    broken_at_start(lambda: plan_drawn(("start", reward, True)), "reward_range=(0.0, 1.0)")


@pytest.mark.parametrize(
    "reward", ["0.5", None, 0.5j, [0.5], np.array([0.5, 0.5]), {}, HUGE], ids=short
)
def test_reward_that_is_no_number(reward):
    broken_at_start(lambda: plan_drawn(("start", reward, False)), "reward")


@pytest.mark.parametrize(
    "drawn",
    [
        None,
        0.5,
        "abc",
        (),
        ("start", 0.5),
        ("start", 0.5, False, False),
        ("start", 0.5, False, False, {}),
        {"state": 1},
        (0.5, "start", False),
        (False, "start", 0.5),
    ],
    ids=short,
)
def test_step_that_returns_something_else(drawn):
    broken_at_start(lambda: plan_drawn(drawn), "(next_state, reward, terminated)", repr(drawn))


@pytest.mark.parametrize("terminated", ["False", np.array([True, False])], ids=short)
def test_terminated_that_is_no_truth_value(terminated):
    broken_at_start(lambda: plan_drawn(("start", 0.5, terminated)), "terminated")


@pytest.mark.parametrize("state", [[1], {}, set(), np.zeros(2), ("a", [])], ids=short)
def test_unhashable_successor(state):
    broken_at_start(lambda: plan_drawn((state, 0.5, False)), "hashable", repr(state))


class NoHash:
    def __hash__(self):
        raise RuntimeError("no hash today")


class NoRepr:
    __hash__ = None

    def __repr__(self):
        raise RuntimeError("no repr today")


class NeverEqual:
    def __hash__(self):
        return 1

    def __eq__(self, other):
        raise RuntimeError("no comparison today")


@pytest.mark.parametrize(
    "step",
    [
        lambda s, a, rng: (NoHash(), 0.5, False),
        lambda s, a, rng: (NoRepr(), 0.5, False),
        lambda s, a, rng: ("start", NoRepr(), False),
        lambda s, a, rng: (NeverEqual(), 0.5, False),
    ],
    ids=["hash", "repr", "repr of a reward", "eq"],
)
def test_states_whose_own_methods_raise(step):
    # What they raise may come through or be wrapped; the model must be usable afterwards.
    with pytest.raises((RuntimeError, BrokenPromiseError)):
        plan_drawn(step)
    assert plan_drawn(("start", 0.5, False)).samples > 0


def test_more_successors_than_promised():
    def step(state, action, rng):
        return ("start", "b", "c")[rng.integers(3)], 0.5, False

    broken_at_start(lambda: plan_drawn(step), "2", "successors")
    assert plan_drawn(step, successors=3).samples > 0


def test_the_end_of_an_episode_counts_as_a_successor():
    def step(state, action, rng):
        return "start", 0.5, rng.random() < 0.5

    broken_at_start(lambda: plan_drawn(step, successors=1), "1", "successors")
    assert plan_drawn(step, successors=2).samples > 0


def test_states_that_are_never_equal():
    broken_at_start(lambda: plan_drawn(lambda s, a, rng: (float("nan"), 0.5, False)), "successors")


def test_an_end_though_it_was_ruled_out():
    def step(state, action, rng):
        return state, 1.5, rng.random() < 0.2

    settings = {"may_end": False, "reward_range": (1.0, 2.0)}
    broken_at_start(lambda: plan_drawn(step, **settings), "may_end")
    broken_at_start(lambda: plan_drawn(("start", 1.5, True), **settings), "may_end")


def test_rewards_that_vary_though_declared_deterministic():
    planner = MDPGapE(**SHARP, rewards="deterministic")
    broken_at_start(
        lambda: plan_drawn(lambda s, a, rng: (s, rng.random(), False), planner), "deterministic"
    )


@pytest.mark.parametrize("successors", [None, 1, 2])
def test_second_successor_though_declared_deterministic(successors):
    planner = MDPGapE(**SHARP, transitions="deterministic")

    def step(state, action, rng):
        return ("start", "b")[rng.integers(2)], 0.5, False

    broken_at_start(lambda: plan_drawn(step, planner, successors=successors), "deterministic")


@pytest.mark.parametrize(
    ("offered", "words"),
    [
        (0, ["no action"]),
        ([], ["no action"]),
        (-1, ["no action"]),
        (3, ["3", "max_actions=2"]),
        (["a", "b", "c"], ["3", "max_actions=2"]),
        (2.0, ["2.0", "number"]),
        (True, ["True", "number"]),
        (None, ["None", "number"]),
        ("ab", ["'ab'", "number"]),
        ({1, 2}, ["{1, 2}", "number"]),
    ],
    ids=short,
)
def test_later_state_with_wrong_actions(offered, words):
    def actions(state):
        return offered if state == "later" else ["left", "right"]

    call = lambda: plan_drawn(("later", 0.5, False), actions=actions, max_actions=2)  # noqa: E731
    broken(call, "'later'", *words)


@pytest.mark.parametrize("actions", [list(np.eye(2)), [[1], [2]], ["a", "a"]], ids=str)
def test_actions_that_cannot_be_told_apart(actions):
    model = simulator(actions=lambda s: actions, initial=0)
    with pytest.raises(pacplan.BrokenPromiseError, match=r"actions\(0\)"):
        PLANNER.plan(model, seed=0, budget=100)


# Rewards at the very ends of their range are good, whichever way the width of the range rounds, and
# beyond them there is room for rounding only.
EDGES = [(0.0, 1.0), (-0.9, 0.5), (-2.0, -0.6), (-0.4, 1.8), (0.1, 0.7), (-1e9, 1e-3), (1.0, 3.0)]


@pytest.mark.parametrize("ends", EDGES, ids=str)
def test_ends_of_the_reward_range(ends):
    low, high = ends
    for reward in ends:
        plan = plan_drawn(("start", reward, False), reward_range=ends)
        assert plan.samples > 0
        plan = PLANNER.plan(
            TabularMDP(P, np.full((2, 3), reward), reward_range=ends), seed=0, budget=100
        )
        assert plan.samples > 0
    for reward in (low - 1e-8 * (high - low), high + 1e-8 * (high - low)):
        broken_at_start(
            lambda r=reward: plan_drawn(("start", r, False), reward_range=ends), "reward_range"
        )
        refused(lambda r=reward: TabularMDP(P, np.full((2, 3), r), reward_range=ends), "reward_range")


@pytest.mark.parametrize("ends", EDGES, ids=str)
def test_bernoulli_rewards_stay_in_their_range(ends):
    model = TabularMDP(P, np.full((2, 3), ends[1]), noise="bernoulli", reward_range=ends)
    rng = np.random.default_rng(0)
    paid = [model.step(0, 0, rng)[1] for _ in range(50)]
    assert paid == pytest.approx([ends[1]] * 50, abs=1e-9 * (ends[1] - ends[0]))


# Simulators that break a promise: jitted --------------------------------------------------------------

# Every other kernel would have to be compiled, so one simulator does all: the first state says what.
FAITHFUL, TOO_HIGH, NOT_A_NUMBER, THREE_WAYS, STUCK, CROWDED = 0, 1, 2, 3, 4, 5
VARIES, TWO_WAYS, RAISES, ENDS, DIVIDES, NO_LUCK = 6, 7, 8, 9, 10, 11
NO_ACTIONS, THREE_ACTIONS, NO_COUNT = 20, 21, 22
BITS = 1 << 40  # larger states are a reward, bit by bit


@numba.njit
def jitted_step(state, action, rng):
    reward = 0.5
    successor = state
    if abs(state) > BITS:
        reward = np.int64(state).view(np.float64)
    elif state == TOO_HIGH:
        reward = 2.0
    elif state == NOT_A_NUMBER:
        reward = np.nan
    elif state == THREE_WAYS:
        successor = state + 100 * rng.integers(0, 3)
    elif state == STUCK:
        successor = NO_ACTIONS
    elif state == CROWDED:
        successor = THREE_ACTIONS
    elif state == VARIES:
        reward = rng.random()
    elif state == TWO_WAYS:
        successor = state + 100 * rng.integers(0, 2)
    elif state == RAISES:
        raise LookupError("the simulator's own message")
    elif state == DIVIDES:
        successor = 1 // (state - DIVIDES)
    elif state == NO_LUCK and rng.random() < 0.01:
        raise LookupError("no luck")
    return successor, reward, state == ENDS


@numba.njit
def jitted_actions(state):
    if state == NO_ACTIONS:
        return 0
    if state == THREE_ACTIONS:
        return 3
    if state == NO_COUNT:
        raise LookupError("cannot count")
    return 2


def jitted(**settings):
    given = {"actions": jitted_actions, "successors": 2, "max_actions": 2}
    return Simulator(jitted_step, **{**given, **settings})


def plan_jitted(state, planner=PLANNER, **settings):
    return planner.plan(jitted(**settings), state, seed=0, budget=3000)


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


def test_jitted_state_without_actions():
    broken(lambda: plan_jitted(STUCK), str(NO_ACTIONS), "no action")
    broken(lambda: plan_jitted(NO_ACTIONS), str(NO_ACTIONS), "no action")


def test_jitted_state_with_too_many_actions():
    broken(lambda: plan_jitted(CROWDED), f"state {THREE_ACTIONS}", "3", "2")
    broken(lambda: plan_jitted(THREE_ACTIONS), str(THREE_ACTIONS), "3", "max_actions=2")


def test_jitted_rewards_that_vary_though_declared_deterministic():
    planner = MDPGapE(**SHARP, rewards="deterministic")
    broken(lambda: plan_jitted(VARIES, planner), f"state {VARIES}", "action", "deterministic")


def test_jitted_second_successor_though_declared_deterministic():
    planner = MDPGapE(**SHARP, transitions="deterministic")
    broken(lambda: plan_jitted(TWO_WAYS, planner), f"state {TWO_WAYS}", "action", "deterministic")


def test_jitted_end_though_it_was_ruled_out():
    broken(lambda: plan_jitted(ENDS, may_end=False), f"state {ENDS}", "may_end")


@pytest.mark.parametrize("ends", EDGES, ids=str)
def test_jitted_ends_of_the_reward_range(ends):
    def bits(reward):
        return int(np.float64(reward).view(np.int64))

    for reward in ends:
        if abs(bits(reward)) > BITS:
            assert plan_jitted(bits(reward), reward_range=ends).samples > 0
    beyond = 1e-8 * (ends[1] - ends[0])
    for reward in (ends[0] - beyond, ends[1] + beyond):
        if abs(bits(reward)) > BITS:
            broken(lambda r=reward: plan_jitted(bits(r), reward_range=ends), "reward_range")


@pytest.mark.parametrize(
    "state", [True, 1.0, "0", (0,), [0], NAN, 2**63, -(2**63) - 1, 10**30], ids=short
)
def test_jitted_states_are_64_bit_integers(state):
    refused(lambda: plan_jitted(state), "state", repr(state))


@pytest.mark.parametrize("state", [1.0, "0", (0,), 2**63], ids=short)
def test_jitted_initial_state(state):
    refused(lambda: jitted(initial=state), repr(state))


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


@numba.njit
def takes_two(state, action):
    return state, 0.5, False


@numba.njit
def gives_two(state, action, rng):
    return state, 0.5


@numba.njit
def gives_none(state, action, rng):
    return None


@numba.njit
def gives_word(state, action, rng):
    return state, "0.5", False


@numba.njit
def gives_pair_as_state(state, action, rng):
    return (state, state), 0.5, False


@numba.njit
def gives_float_as_state(state, action, rng):
    # Cut to an integer it would be another state.
    return state + 0.5, 0.5, False


@numba.njit
def gives_complex_reward(state, action, rng):
    return state, 0.5j, False


@pytest.mark.parametrize(
    "step",
    [
        takes_two,
        gives_two,
        gives_none,
        gives_word,
        gives_pair_as_state,
        gives_float_as_state,
        gives_complex_reward,
    ],
)
def test_jitted_step_of_other_types(step):
    model = Simulator(step, actions=jitted_actions, successors=2)
    refused(lambda: PLANNER.plan(model, 0, seed=0, budget=10), "step", "state", "reward")


@numba.njit
def counts_in_floats(state):
    return 2.5


@numba.njit
def counts_in_words(state):
    return "2"


@pytest.mark.parametrize("actions", [counts_in_floats, counts_in_words])
def test_jitted_actions_of_other_types(actions):
    model = Simulator(jitted_step, actions=actions, successors=2)
    with pytest.raises((ValueError, TypeError), match="actions"):
        PLANNER.plan(model, 0, seed=0, budget=10)


# Simulators that raise --------------------------------------------------------------------------------


class OwnError(Exception):
    def __init__(self, what, number):
        super().__init__(what, number)
        self.number = number


RAISED = [
    OwnError("what", 7),
    ZeroDivisionError("zero"),
    KeyError("key"),
    ValueError("value"),
    TypeError("type"),
    BrokenPromiseError("of its own"),
    StopIteration(3),
    AssertionError(),
    MemoryError("memory"),
    RecursionError("deep"),
    SystemExit(4),
    GeneratorExit(),
]


@pytest.mark.parametrize("error", RAISED, ids=repr)
@pytest.mark.parametrize("where", ["step", "late step", "actions", "late actions"])
def test_what_a_simulator_raises_comes_through(error, where):
    calls = 0
    armed = True

    def raise_at(place, n):
        if armed and place == where.split()[-1] and (n > 100 or "late" not in where):
            raise error

    def step(state, action, rng):
        nonlocal calls
        calls += 1
        raise_at("step", calls)
        return calls, 0.5, False

    def actions(state):
        raise_at("actions", state)
        return 2

    planner = MDPGapE(**SETTINGS, transitions="deterministic")
    model = Simulator(lambda s, a, rng: (s + 1, *step(s, a, rng)[1:]), actions=actions, successors=1)
    start = 97 if where == "late actions" else 0
    with pytest.raises(type(error)) as caught:
        planner.plan(model, start, seed=0, budget=3000)
    assert caught.value is error
    armed = False
    first = planner.plan(model, 0, seed=0, budget=300)
    fresh = MDPGapE(**SETTINGS, transitions="deterministic")
    assert first.action == fresh.plan(model, 0, seed=0, budget=300).action


def test_endless_recursion_in_a_simulator():
    def step(state, action, rng):
        return step(state, action, rng)

    with pytest.raises(RecursionError):
        plan_drawn(step)


def test_step_of_the_wrong_arity():
    with pytest.raises(TypeError, match="positional argument"):
        plan_drawn(lambda s, a: (s, 0.5, False))


def test_callback_that_raises():
    error = OwnError("callback", 1)

    def callback(snapshot):
        raise error

    with pytest.raises(OwnError) as caught:
        PLANNER.plan(Counting().model, seed=0, callback=callback)
    assert caught.value is error


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


# Nothing leaks ----------------------------------------------------------------------------------------


def raising_step(state, action, rng):
    if rng.random() < 0.01:
        raise OwnError("leak", 0)
    return state, 0.5, False


def raising_actions(state):
    if state == 1:
        raise OwnError("leak", 1)
    return 2


def going_to_one(state, action, rng):
    return 1, 0.5, False


SMALL = {"successors": 2, "initial": 0}
LEAKS = {
    "nothing wrong": Simulator(lambda s, a, rng: (s, 0.5, False), actions=2, **SMALL),
    "table": TabularMDP(P, R),
    "step raises": Simulator(raising_step, actions=2, **SMALL),
    "actions raise": Simulator(going_to_one, actions=raising_actions, **SMALL),
    "reward": Simulator(lambda s, a, rng: (s, 2.0, False), actions=2, **SMALL),
    "unhashable": Simulator(lambda s, a, rng: ([s], 0.5, False), actions=2, **SMALL),
    "hash raises": Simulator(lambda s, a, rng: (NoHash(), 0.5, False), actions=2, **SMALL),
    "jitted": jitted(initial=FAITHFUL),
    "jitted raises": jitted(initial=NO_LUCK),
    "jitted reward": jitted(initial=TOO_HIGH),
}


@pytest.mark.parametrize("model", LEAKS.values(), ids=LEAKS.keys())
def test_nothing_leaks(model):
    def plan():
        try:
            PLANNER.plan(model, seed=0, budget=1200)
        except Exception:
            return

    plan()  # Compile.
    tracemalloc.start()
    try:
        for _ in range(50):  # Fill what is cached on purpose.
            plan()
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(50):
            plan()
        gc.collect()
        growth = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    # Bytes a plan: a generator takes 2700, a search tree more.
    assert growth / 50 < 2000


def test_thresholds_of_something_else_than_functions_are_refused_at_once():
    with pytest.raises(TypeError, match="'one'"):
        pacplan.bounds.Thresholds("one", "two", proven=False, name="mine")
