"""What a model says of itself decides what planners do with it; its class does not."""

import re

import numpy as np
import pytest

import pacplan
from pacplan import exact, theory
from pacplan.experiments import PlannerSpec, ProblemSpec, Sweep, run
from pacplan.models.protocol import Facts, check_model, facts
from worlds import Walk

TABLE = pacplan.envs.garnet(states=30, actions=2, seed=3)


class Delegate:
    """A model of a user's own, which hands on what a table says, or says something else."""

    def __init__(self, table=TABLE, **own):
        vars(self).update(own)
        self._table = table

    def __getattr__(self, name):
        if name in ("_table", "hidden") or name in vars(self).get("hidden", ()):
            raise AttributeError(name)
        return getattr(self._table, name)


BARE = Delegate(hidden=Facts._fields)


@pytest.mark.parametrize(
    "planner",
    [
        pacplan.MDPGapE(epsilon=1.0, delta=0.1, gamma=0.7, merge="depth"),
        pacplan.Bracket(epsilon=1.0, delta=0.1, gamma=0.7, merge="depth", rewards="known"),
        pacplan.OPMDP(gamma=0.7),
    ],
    ids=lambda planner: planner.name,
)
def test_a_published_table_is_used_whoever_publishes_it(planner):
    plans = [planner.plan(model, 0, seed=1, budget=3000) for model in (TABLE, Delegate())]
    assert len({(plan.action, plan.samples, plan.gap, plan.assumptions) for plan in plans}) == 1


def test_exact_values_bounds_and_regret_come_from_any_table():
    np.testing.assert_array_equal(
        exact.discounted(Delegate(), gamma=0.7), exact.discounted(TABLE, gamma=0.7)
    )
    question = {"gamma": 0.7, "horizon": 4, "epsilon": 0.5, "delta": 0.1}
    bounds = [theory.corollary_1(model, 0, **question) for model in (TABLE, Delegate())]
    assert bounds[0] == bounds[1]
    problems = [ProblemSpec(lambda seed: Delegate(), label="delegate")]
    uct = PlannerSpec("uct", {"gamma": 0.7})
    (record,) = run(Sweep([uct], problems, budgets=[50]), workers=1)
    values = exact.discounted(TABLE, gamma=0.7)[0]
    assert record.regret == values.max() - values[int(record.action)]


def test_states_are_merged_whether_their_number_is_known_or_not():
    settings = {"epsilon": 1.0, "delta": 0.1, "gamma": 0.7, "seed": 1, "budget": 500, "sample": True}
    merged, plain = (pacplan.plan(model, 0, **settings) for model in (Delegate(), BARE))
    assert "merge='depth'" in merged.planner and "merge='depth'" in plain.planner
    assert not any("at most" in clause and "states" in clause for clause in plain.assumptions)
    alone = pacplan.plan(Delegate(hidden=("known",)), 0, **settings)
    assert "there are at most 30 states" in alone.assumptions
    assert "there are at most 30 states" not in merged.assumptions


def test_a_model_need_say_nothing_more_than_it_must():
    assert facts(BARE) == Facts()
    with pytest.raises(TypeError, match="publish"):
        exact.discounted(BARE, gamma=0.7)
    with pytest.raises(ValueError, match="publishes its table"):
        pacplan.OPMDP(gamma=0.7).plan(BARE, 0, budget=100)
    assert pacplan.UCT(gamma=0.7).plan(BARE, 0, seed=0, budget=50).samples == 50


def test_a_model_that_is_defined_for_some_steps_is_not_stationary():
    assert not facts(Delegate(steps=5, stationary=True)).stationary


def test_what_a_model_lacks_is_named():
    class Half:
        successors = 2

    with pytest.raises(TypeError, match=r"got Half, which has no max_actions, .*open"):
        check_model(Half())


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
