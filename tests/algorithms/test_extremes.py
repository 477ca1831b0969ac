"""Settings at the edge of what numbers, memory and patience can do: an answer or a clear refusal."""

import math
import tracemalloc
from functools import partial

import numpy as np
import pytest

import pacplan
from refusals import refused

SMALL = pacplan.envs.garnet(states=6, actions=3, seed=0, noise="bernoulli")
FIXED = pacplan.envs.garnet(states=6, actions=3, successors=1, seed=0)
ALMOST_ONE = 1 - 1e-12


def draws(successors, actions, **options):
    """A simulator that declares much and shows little."""

    def step(state, action, rng):
        return int(rng.random() * 3), rng.random(), False

    return pacplan.Simulator(step, actions=actions, successors=successors, **options)


# Memory goes by what is seen, not by what was declared.

WIDE = {
    "bracket": pacplan.Bracket(epsilon=0.5, delta=0.1, gamma=0.7),
    "bracket fine": pacplan.Bracket(epsilon=1e-4, delta=0.1, gamma=0.7, horizon=8),
    "mdp-gape": pacplan.MDPGapE(epsilon=0.5, delta=0.1, gamma=0.7),
    "sparse-sampling": pacplan.SparseSampling(gamma=0.7, horizon=3, width=10_000),
    "stop": pacplan.StOP(epsilon=0.5, delta=0.1, gamma=0.3),
    "trailblazer": pacplan.TrailBlazer(epsilon=0.5, delta=0.1, gamma=0.3),
    "smooth-cruiser": pacplan.SmoothCruiser(epsilon=0.5, delta=0.1, gamma=0.3),
    "uct": pacplan.UCT(gamma=0.7),
    "brue": pacplan.BRUE(gamma=0.7),
    "olop": pacplan.OLOP(gamma=0.7),
}


def peak_of(plan):
    """Megabytes that a plan asks for at most; compiled kernels do not count."""
    plan()
    tracemalloc.start()
    try:
        plan()
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", WIDE)
def test_memory_does_not_grow_with_what_was_only_declared(name):
    model = draws(successors=1_000_000, actions=2000)
    calls = []

    def enough(snapshot):
        calls.append(snapshot.samples)
        return snapshot.samples >= 300

    def plan():
        budget = None if name == "sparse-sampling" else 400
        WIDE[name].plan(model, 0, seed=0, budget=budget, callback=enough)

    # 40 MB are for a distribution on a million outcomes, which is not written to.
    assert peak_of(plan) < 100
    assert calls[-1] >= 300


def test_tables_of_many_actions_ask_for_no_more_than_a_few_of_their_states():
    rng = np.random.default_rng(0)
    actions, successors = 1000, 20
    model = pacplan.TabularMDP(
        np.full((20, actions, successors), 1 / successors),
        rng.random((20, actions)),
        successors=np.broadcast_to(np.arange(successors), (20, actions, successors)),
    )
    assert peak_of(partial(pacplan.OPMDP(gamma=0.7).plan, model, 0, seed=0, budget=1000)) < 60
    refused(partial(pacplan.OPMDP(gamma=0.7).plan, model, 0, budget=999), "budget=999", "1000 actions")


# Numbers.


def test_calls_out_of_reach_are_refused_unless_something_ends_the_search():
    wide = {"epsilon": 1e-9, "delta": 0.1, "gamma": ALMOST_ONE, "horizon": 1000}
    planner = pacplan.SparseSampling(gamma=0.99, horizon=1000, width=3)
    assert planner.calls(SMALL) == math.inf
    for made, limits, words in (
        (pacplan.SparseSampling(**wide), {"time_limit": 0.1}, "raise epsilon"),
        (planner, {}, "more than"),
        (planner, {"budget": 10**6}, "budget of 1000000"),
    ):
        with pytest.raises(ValueError, match=words):
            made.plan(SMALL, 0, seed=0, **limits)
    plan = planner.plan(SMALL, 0, seed=0, callback=lambda snapshot: snapshot.samples >= 5000)
    assert plan.stopped_by == "callback"
    alone = pacplan.TabularMDP(np.ones((1, 1, 1)), [[0.5]], successors=[[[0]]])
    assert pacplan.SparseSampling(gamma=0.99, horizon=10**6, width=3).calls(alone) == 3 * 10**6


EXTREMES = [
    (name, {"epsilon": epsilon, "delta": delta, "gamma": gamma} | horizon)
    for name, horizons in (
        ("bracket", ({}, {"horizon": 3})),
        ("mdp-gape", ({}, {"horizon": 3})),
        ("sparse-sampling", ({}, {"horizon": 3})),
        ("stop", ({},)),
        ("trailblazer", ({},)),
        ("smooth-cruiser", ({},)),
    )
    for horizon in horizons
    for epsilon in (1e-320, 1e-200, 1e-9, 1e200)
    for delta in (1e-300, 1 - 1e-16)
    for gamma in (0.5, ALMOST_ONE, math.nextafter(1.0, 0.0))
] + [
    (name, {"gamma": gamma})
    for name in ("uct", "brue", "olop", "kl-olop", "opd", "op-mdp")
    for gamma in (0.0, 1e-300, ALMOST_ONE, math.nextafter(1.0, 0.0))
]
# What Python and NumPy say by themselves.
RAW = ("math domain", "cannot convert", "allowed dimension", "array is too big", "out of range")


@pytest.mark.parametrize(("name", "settings"), EXTREMES, ids=str)
def test_extreme_settings_end_in_a_plan_or_a_refusal(name, settings):
    rewards = [(0.0, 1.0), (0.0, 1e140)]
    for low, high in rewards[: 1 if name in ("opd", "op-mdp") else 2]:

        def step(state, action, rng, high=high):
            return int(rng.random() * 3), rng.random() * high, False

        model = pacplan.Simulator(step, actions=2, successors=3, reward_range=(low, high))
        if name in ("opd", "op-mdp"):
            model = FIXED
        refusal = refusal_of(
            lambda model=model: pacplan.planners[name](**settings).plan(
                model, 0, seed=0, budget=10**12, callback=lambda s: s.samples >= 200
            )
        )
        assert not any(words in refusal for words in RAW), refusal


def refusal_of(plan):
    """What a plan that cannot be made says; nothing if it is made, and can be printed."""
    try:
        made = plan()
    except ValueError as error:
        return str(error)
    except MemoryError as error:
        return str(error) if "max_policies" in str(error) else RAW[0]
    assert str(made)
    assert made.to_dict()
    return ""


# Patience: what is done in Python does not grow faster than what was asked for.


def test_setting_up_does_not_count_the_steps_of_a_long_horizon():
    cruise = pacplan.SmoothCruiser(epsilon=0.5, delta=0.1, gamma=ALMOST_ONE)
    assert cruise.calls(SMALL) == math.inf
    assert cruise.plan(SMALL, 0, seed=0, budget=1000).samples == 1000
    with pytest.raises(ValueError, match="smaller gamma"):
        pacplan.TrailBlazer(epsilon=0.5, delta=0.1, gamma=ALMOST_ONE).plan(SMALL, 0, seed=0, budget=10)
    stop = pacplan.StOP(epsilon=0.5, delta=0.1, gamma=ALMOST_ONE)
    assert stop.depth(SMALL) > 10**12
    assert stop.trajectories(SMALL, 10**9) == 2**62
    assert stop.plan(SMALL, 0, seed=0, budget=1000).samples == 1000


@pytest.mark.parametrize("name", ["uct", "brue", "olop", "kl-olop"])
def test_horizons_out_of_reach_are_refused(name):
    with pytest.raises(ValueError, match=r"pass (a horizon|horizon=)"):
        pacplan.planners[name](gamma=ALMOST_ONE).plan(SMALL, 0, seed=0, budget=10**13)


def test_stop_looks_at_the_clock_where_there_is_nothing_to_draw():
    # Policies share draws, so that rounds over rounds need none: millions of policies without a call.
    planner = pacplan.StOP(epsilon=0.1, delta=0.1, gamma=0.5, max_policies=10**7)
    plan = planner.plan(pacplan.envs.garnet(seed=0), 0, seed=0, time_limit=0.5)
    assert plan.stopped_by == "deadline"
