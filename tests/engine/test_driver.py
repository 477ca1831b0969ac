"""The driver and the tree: limits, interrupts, determinism, growth, reading."""

import signal
import threading
import tracemalloc
from copy import copy

import numpy as np
import pytest

import pacplan
from conftest import in_chunks
from every_planner import answer, make, problem

MODEL = pacplan.envs.garnet(states=50, seed=1, noise="bernoulli")
PLANNER = pacplan.MDPGapE(epsilon=1.0, delta=0.1, gamma=0.7, thresholds="paper")
ANYTIME = pacplan.MDPGapE(epsilon=0.0, delta=0.1, gamma=0.7, horizon=6)


def test_same_seed_same_plan_whatever_the_chunks():
    first = PLANNER.plan(MODEL, 0, seed=7)
    for chunk in (None, 1, 2, 7, 10_000):
        planner = in_chunks(copy(PLANNER), chunk)
        again = planner.plan(MODEL, 0, seed=7, callback=None if chunk else lambda snapshot: False)
        assert answer(again) == answer(first)
        assert (again.tree.pairs == first.tree.pairs).all()
        assert (again.tree.nodes == first.tree.nodes).all()
    assert answer(PLANNER.plan(MODEL, 0, seed=8)) != answer(first)
    assert answer(PLANNER.plan(MODEL, 0, seed=np.random.SeedSequence(7))) == answer(first)


def test_deadline_in_the_middle_of_a_slow_episode(clock):
    def step(state, action, rng):
        clock.now += 0.005
        return state, 0.5, False

    planner = pacplan.MDPGapE(epsilon=0.0, delta=0.1, gamma=0.99, horizon=15)
    model = pacplan.Simulator(step, actions=2, successors=1)
    plan = planner.plan(model, 0, time_limit=0.1)
    assert plan.stopped_by == "deadline" and 0.095 <= plan.seconds < 0.11
    assert 19 <= plan.samples <= 21
    assert plan.episodes == 2
    assert plan.tree.pairs["n"].sum() == plan.samples
    # Without its first episode a plan would know nothing.
    plan = planner.plan(model, 0, time_limit=0.02)
    assert plan.stopped_by == "deadline"
    assert (plan.samples, plan.episodes) == (15, 1)


def test_an_interrupt_ends_a_plan_inside_a_plan_and_the_outer_one():
    def inner(state, action, rng):
        signal.raise_signal(signal.SIGINT)
        return state, 0.5, False

    def outer(state, action, rng):
        ANYTIME.plan(pacplan.Simulator(inner, actions=2, successors=1), 0, budget=100)
        return state, 0.5, False

    model = pacplan.Simulator(outer, actions=2, successors=1)
    plan = ANYTIME.plan(model, 0, budget=10_000)
    assert plan.stopped_by == "interrupt"
    assert plan.samples <= 1


def test_callback_sees_intervals_close_in_and_can_stop():
    seen = []

    def callback(snapshot):
        seen.append(snapshot)
        return snapshot.samples >= 600

    plan = ANYTIME.plan(MODEL, 0, seed=0, budget=100_000, callback=callback)
    assert plan.stopped_by == "callback"
    assert [s.episodes for s in seen[:5]] == [1, 2, 3, 4, 5]
    assert seen[-1].samples == plan.samples < 700
    assert (seen[-1].upper == plan.upper).all()
    assert seen[-1].action == plan.action
    assert seen[-1].gap == plan.gap < seen[0].gap
    again = []
    ANYTIME.plan(MODEL, 0, seed=0, budget=2000, callback=again.append)
    assert [s.episodes for s in again[: len(seen)]] == [s.episodes for s in seen]


@pytest.mark.parametrize("name", ["mdp-gape", "bracket", "canopy", "ugape-mcts", "opd"])
def test_the_curve_is_what_callbacks_see(name):
    seen, planner = {}, make(name)
    curve = planner.plan(
        problem(name), 0, seed=1, budget=2000, callback=lambda at: seen.update({at.samples: at})
    ).curve
    shared = [i for i, samples in enumerate(curve.samples.tolist()) if samples in seen]
    assert len(shared) >= 3
    for i in shared:
        at = seen[curve.samples[i]]
        assert np.array_equal(curve.lower[i], at.lower) and np.array_equal(curve.upper[i], at.upper)


def test_points_of_the_curve_come_after_half_as_many_episodes_again():
    curve = ANYTIME.plan(MODEL, 0, seed=0, budget=1080).curve
    assert curve.samples.tolist() == [192, 288, 432, 648, 972, 1080]  # six calls an episode


@pytest.mark.parametrize("how", ["signal in a step", "exception in a step", "signal", "exception"])
def test_interrupt_returns_the_plan_so_far(how):
    handler = signal.getsignal(signal.SIGINT)
    calls = []

    def step(state, action, rng):
        calls.append(1)
        if len(calls) == 100:
            if how == "signal in a step":
                signal.raise_signal(signal.SIGINT)
            if how == "exception in a step":
                raise KeyboardInterrupt
        return MODEL.step(state, action, rng)

    def callback(snapshot):
        if snapshot.episodes == 20:
            if how == "signal":
                signal.raise_signal(signal.SIGINT)
            if how == "exception":
                raise KeyboardInterrupt

    plan = ANYTIME.plan(
        pacplan.Simulator(step, actions=5, successors=2), 0, seed=0, budget=10_000, callback=callback
    )
    assert plan.stopped_by == "interrupt"
    assert not plan.certified
    assert 90 <= plan.samples <= 125
    assert plan.samples == plan.tree.pairs["n"].sum()
    assert np.isfinite(plan.gap)
    assert signal.getsignal(signal.SIGINT) is handler
    assert ANYTIME.plan(MODEL, 0, seed=0, budget=60).samples == 60


def pressing(times):
    """A model in which Ctrl-C is pressed during the calls of these numbers."""
    calls = []

    def step(state, action, rng):
        calls.append(1)
        if len(calls) in times:
            signal.raise_signal(signal.SIGINT)
        return state, 0.5, False

    return pacplan.Simulator(step, actions=2, successors=1)


def test_a_loop_of_plans_is_left_by_pressing_twice():
    model = pressing({5, 8})
    assert ANYTIME.plan(model, 0, budget=12).interrupted
    with pytest.raises(KeyboardInterrupt):
        ANYTIME.plan(model, 0, budget=12)
    # After a plan that was not interrupted, the next Ctrl-C is a first one again.
    model = pressing({5, 20, 40})
    interrupted = [ANYTIME.plan(model, 0, budget=12).interrupted for _ in range(6)]
    assert interrupted == [True, False, True, False, True, False]


def test_planning_from_several_threads():
    models = MODEL, pacplan.Simulator(MODEL.step, actions=5, successors=2)
    expected = [answer(PLANNER.plan(models[i % 2], 0, seed=i)) for i in range(6)]
    found = {}

    def work(i):
        found[i] = answer(PLANNER.plan(models[i % 2], 0, seed=i))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[i] for i in range(6)] == expected


def test_the_tree_is_consistent():
    plan = ANYTIME.plan(MODEL, 0, seed=0, budget=60_000)
    tree = plan.tree
    assert len(tree) > 4096, "the tree must have grown"
    todo, nodes, pairs = [(0, 0)], 0, 0
    while todo:
        node, depth = todo.pop()
        nodes += 1
        record = tree.nodes[node]
        tried = list(tree.tried(node))
        assert len(tried) == record["tried"] <= record["actions"]
        assert len({int(tree.pairs[i]["action"]) for i in tried}) == len(tried)
        if node > 0:
            assert sum(int(tree.pairs[i]["n"]) for i in tried) == record["count"]
        for i in tried:
            pairs += 1
            outcomes = list(tree.outcomes(i))
            assert depth < 6
            if depth < 5:
                assert sum(o.count for o in outcomes) == tree.pairs[i]["n"]
                assert 1 <= len(outcomes) <= 2
                assert len({o.state for o in outcomes}) == len(outcomes)
            else:
                assert not outcomes
            assert all(o.node > node for o in outcomes)
            todo += [(o.node, depth + 1) for o in outcomes]
    assert nodes == len(tree)
    assert pairs == tree.made
    assert tree.pairs["n"].sum() == plan.samples
    assert sum(int(tree.pairs[i]["n"]) for i in tree.tried(0)) == plan.episodes


def test_growth_takes_less_than_twice_the_tree():
    planner = pacplan.UCT(gamma=0.9, horizon=20)
    planner.plan(MODEL, 0, seed=0, budget=200_000)
    tracemalloc.start()
    plan = planner.plan(MODEL, 0, seed=0, budget=200_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert plan.tree.nbytes / plan.samples < 60
    assert peak < 2 * plan.tree.nbytes
