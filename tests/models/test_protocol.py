"""What a model says of itself decides what planners do with it; its class does not."""

import re

import numpy as np
import pytest

import pacplan
from pacplan import exact, theory
from pacplan.experiments import PlannerSpec, ProblemSpec, Sweep, run
from pacplan.models.protocol import Model, check_model
from worlds import Walk

TABLE = pacplan.envs.garnet(states=30, actions=2, seed=3)


SAID = [*Model.__annotations__, "initial_state", "actions", "open", "fingerprint", "sparse"]


def delegate(table=TABLE, hidden=(), **own):
    """A model of a user's own, which hands on what a table says, except for what is hidden."""
    kind = type("Delegate", (Model,), {"__repr__": lambda self: "Delegate()"})
    model = kind()
    said = {name: getattr(table, name) for name in SAID if hasattr(table, name) and name not in hidden}
    vars(model).update(said | own)
    return model


BARE = delegate(hidden=("states", "known", "sparse", "compiled"))


@pytest.mark.parametrize(
    "planner",
    [pacplan.MDPGapE(epsilon=1.0, delta=0.1, gamma=0.7, merge="depth"), pacplan.OPMDP(gamma=0.7)],
    ids=lambda planner: planner.name,
)
def test_a_published_table_is_used_whoever_publishes_it(planner):
    plans = [planner.plan(model, 0, seed=1, budget=3000) for model in (TABLE, delegate())]
    assert len({(plan.action, plan.samples, plan.gap, plan.assumptions) for plan in plans}) == 1


def test_exact_values_bounds_and_regret_come_from_any_table():
    np.testing.assert_array_equal(
        exact.discounted(delegate(), gamma=0.7), exact.discounted(TABLE, gamma=0.7)
    )
    question = {"gamma": 0.7, "horizon": 4, "epsilon": 0.5, "delta": 0.1}
    bounds = [theory.corollary_1(model, 0, **question) for model in (TABLE, delegate())]
    assert bounds[0] == bounds[1]
    problems = [ProblemSpec(lambda seed: delegate(), label="delegate")]
    uct = PlannerSpec("uct", {"gamma": 0.7})
    (record,) = run(Sweep([uct], problems, budgets=[50]), workers=1)
    values = exact.discounted(TABLE, gamma=0.7)[0]
    assert record.regret == values.max() - values[int(record.action)]


def test_a_model_need_say_nothing_more_than_it_must():
    with pytest.raises(TypeError, match="publish"):
        exact.discounted(BARE, gamma=0.7)
    with pytest.raises(ValueError, match="publishes its table"):
        pacplan.OPMDP(gamma=0.7).plan(BARE, 0, budget=100)
    assert pacplan.UCT(gamma=0.7).plan(BARE, 0, seed=0, budget=50).samples == 50


def test_a_model_derives_from_the_class():
    with pytest.raises(TypeError, match="got Half"):
        check_model(type("Half", (), {"successors": 2})())


def a_step(state, action, rng):
    return state, 0.5, False


@pytest.mark.parametrize(
    ("thing", "words"),
    [(Walk(), "from_gymnasium(env)"), (Walk, "got type"), (a_step, "Simulator(step, actions=...)")],
)
def test_what_is_no_model_is_said_with_what_makes_one_of_it(thing, words):
    ask = {"epsilon": 0.5, "delta": 0.1, "gamma": 0.7}
    uct = pacplan.UCT(gamma=0.7)
    for call in (
        lambda: pacplan.plan(thing, 0, **ask),
        lambda: pacplan.plan_many(thing, [0, 1], **ask),
        lambda: uct.plan(thing, 0, budget=1),
        lambda: uct.plan_many(thing, [0, 1], budget=1),
        lambda: pacplan.Agent(uct, thing, budget=1),
    ):
        with pytest.raises(TypeError, match=re.escape(words)):
            call()
