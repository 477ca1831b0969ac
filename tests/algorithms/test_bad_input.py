"""Settings and queries that make no sense are refused by name, before the model is called."""

import numpy as np
import pytest

import pacplan
from conftest import short
from pacplan import MDPGapE, Simulator, TabularMDP, envs
from pacplan.bounds import Thresholds
from refusals import HUGE, INF, NAN, PLANNER, SETTINGS, Counting, no_session_stays_open, refused

_sessions = pytest.fixture(autouse=True)(no_session_stays_open)
DEEP = (pacplan.TrailBlazer, pacplan.SmoothCruiser, pacplan.StOP)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("epsilon", [-1, -1e-300, "1", NAN, None]),
        ("delta", [0, 1, -0.1, True, None]),
        ("gamma", [-0.1, 1.0000001, -5e-324, INF, None]),
        ("horizon", [0, -1, 1.5, True]),
        *((name, ["", "Action", 1, []]) for name in ("goal", "rewards", "transitions", "thresholds")),
    ],
)
def test_settings(name, values):
    for value in values:
        refused(lambda value=value: MDPGapE(**{**SETTINGS, name: value}), name, str(value))


@pytest.mark.parametrize("cls", DEEP)
def test_accuracies_that_are_needed_beforehand(cls):
    given = {"epsilon": 1.0, "delta": 0.1, "gamma": 0.5}
    for name, value in (("epsilon", 0.0), ("delta", 1.0), ("gamma", 1.0)):
        refused(lambda name=name, value=value: cls(**(given | {name: value})), name)
    model = Simulator(lambda s, a, rng: (s, 0.5, False), actions=lambda s: 2, successors=1)
    refused(lambda: cls(**given).plan(model, 0), "max_actions")


def test_the_smallest_epsilon_has_a_horizon_too():
    # epsilon (1 - gamma) / 2 underflows, its logarithm does not.
    horizon = MDPGapE(epsilon=5e-324, delta=0.1, gamma=0.7).horizon
    assert 0.7**horizon * 2.0 / 0.3 <= 5e-324 < 0.7 ** (horizon - 10) * 2.0 / 0.3
    refused(lambda: MDPGapE(epsilon=1, delta=0.1, gamma=1), "gamma=1", "horizon")


def test_thresholds_that_are_none():
    for wrong in (None, 3, abs, (abs, abs), "hoeffding"):
        refused(lambda wrong=wrong: MDPGapE(**SETTINGS, thresholds=wrong), "thresholds")
    wrong = Thresholds(np.ones_like, lambda n: -n, proven=False, name="own")
    planner = MDPGapE(**SETTINGS, thresholds=wrong)
    plan_refused(Counting(), ["thresholds", "finite number", "'own'"], planner)


def plan_refused(counting, words, planner=PLANNER, **arguments):
    refused(lambda: planner.plan(counting.model, **{"seed": 0, **arguments}), *words)
    assert counting.calls == 0


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("budget", [0, -1, 1.5, True, "3"]),
        ("time_limit", [0, -1e-9, NAN, INF, "1"]),
        ("seed", [-1, 1.5, np.random.default_rng(0), np.random.PCG64(0)]),
        ("progress", [1, None, "yes"]),
        ("callback", [1, True, "print", (print,)]),
        ("state", [[1], {}, np.zeros(2), ([],)]),
    ],
)
def test_queries(name, values):
    for value in values:
        plan_refused(
            Counting(), ["hashable" if name == "state" else name, repr(value)], **{name: value}
        )


def test_queries_that_lack_something():
    plan_refused(Counting(), ["time_limit"], time_limit=HUGE)
    plan_refused(Counting(initial=None), ["state"])
    plan_refused(Counting(successors=None), ["successors"])
    model = TabularMDP(np.full((3, 2, 2, 2), 0.5), np.zeros((3, 2, 2)))
    refused(lambda: PLANNER.plan(model), "3 steps", "horizon", str(PLANNER.horizon))


@pytest.mark.parametrize("model", [None, 3, "garnet", print, Simulator, envs.garnet, {}], ids=short)
def test_what_is_no_model(model):
    refused(lambda: PLANNER.plan(model, 0), "model", type(model).__name__)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"epsilon": 0.0}, ["epsilon=0", "budget", "time_limit"]),
        ({"epsilon": 0.0, "horizon": 3}, ["epsilon=0", "budget", "time_limit"]),
        ({"thresholds": "budget"}, ["thresholds", "budget", "time_limit"]),
    ],
)
def test_what_the_planner_cannot_do(settings, words):
    plan_refused(Counting(), words, planner=MDPGapE(**{**SETTINGS, **settings}))
