"""The pictures of intervals and of convergence show the numbers of the search."""

import re
import sys
from dataclasses import replace
from itertools import pairwise

import matplotlib
import numpy as np
import pytest

import pacplan
from every_planner import make, problem
from pacplan import views

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def test_intervals():
    plan = make("mdp-gape").plan(problem("mdp-gape"), 0, seed=0, budget=4000)
    axes = plan.plot()
    lines, points = axes.collections
    assert [line[:, 0].tolist() for line in lines.get_segments()] == list(
        map(list, zip(plan.lower, plan.upper, strict=True))
    )
    assert points.get_offsets()[:, 0].tolist() == plan.values.tolist()
    best = plan.actions.index(plan.action)
    marks = sorted(line.get_xdata()[0] for line in axes.lines)
    assert marks[1] - marks[0] == pytest.approx(abs(plan.gap))
    assert plan.lower[best] in marks
    challenger = max((i for i in range(3) if i != best), key=lambda i: plan.upper[i])
    assert axes.get_title().startswith(f"action {plan.action} against action {challenger}: gap ")
    named = [text.get_text() for text in axes.get_legend().get_texts()]
    assert named == [f"lower bound of {plan.action}", f"upper bound of {challenger}"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["0", "1", "2"]


def test_intervals_without_bounds_go_into_the_axes_given():
    import matplotlib.pyplot as plt

    figure, given = plt.subplots()
    plan = make("uct").plan(problem("uct"), 0, seed=0, budget=400)
    assert plan.plot(ax=given) is given
    assert plt.get_fignums() == [figure.number]
    assert given.collections[-1].get_offsets()[:, 0].tolist() == plan.values.tolist()
    assert "no bounds" in given.get_title()


def test_odd_and_many_actions_can_be_drawn():
    names = [r"$\nonsense{$", "two\nlines", "x" * 200, *range(97)]
    model = pacplan.Simulator(lambda s, a, rng: (s, 0.5, False), actions=names, successors=1)
    plan = make("mdp-gape").plan(model, 0, seed=0, budget=2000)
    axes = plan.plot()
    axes.figure.canvas.draw()
    assert len(axes.get_yticks()) <= 40
    boxes = [label.get_window_extent() for label in axes.get_yticklabels()]
    assert not any(a.overlaps(b) for a, b in pairwise(boxes))


@pytest.mark.parametrize("name", ["mdp-gape", "uct"])
def test_a_single_action_and_actions_never_tried_can_be_drawn(name):
    def step(state, action, rng):
        return state, 0.5, False

    for actions, budget in ((1, 50), (8, 5)):
        trace = views.Trace()
        model = pacplan.Simulator(step, actions=actions, successors=1)
        plan = make(name).plan(model, 0, seed=0, budget=budget, callback=trace)
        plan.plot().figure.canvas.draw()
        if plan.lower is None:
            continue
        if plan.samples > 0:
            views.convergence(trace).figure.canvas.draw()
        else:
            assert actions == 1
            with pytest.raises(ValueError, match="before its first call"):
                views.convergence(trace)


def test_convergence_draws_the_bounds_up_to_the_stop():
    trace = views.Trace()
    plan = make("mdp-gape").plan(problem("mdp-gape"), 0, seed=0, budget=4000, callback=trace)
    assert np.array_equal(trace.lower[-1], plan.lower)
    assert np.array_equal(trace.upper[-1], plan.upper)
    axes = views.convergence(trace)
    drawn = [tuple(line.get_ydata()) for line in axes.lines if len(line.get_xdata()) == len(trace)]
    expected = [*map(tuple, trace.lower.T), *map(tuple, trace.upper.T)]
    assert sorted(drawn) == sorted(expected)
    assert all(list(line.get_xdata()) == trace.samples.tolist() for line in axes.lines[:-1])
    assert list(axes.lines[-1].get_xdata()) == [4000, 4000]
    assert re.match(r"action \d against action \d: gap [\d.]+ after", axes.get_title())
    assert f"{plan.samples:,} calls" in axes.get_title()
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels[0] == f"{plan.action}, taken"


@pytest.mark.parametrize(
    "limits", [{"budget": 1234}, {"time_limit": 0.1}, {"budget": 10**9, "time_limit": 0.1}]
)
def test_a_trace_ends_where_the_search_ends(limits, clock):
    trace = views.Trace()

    def watch(snapshot):
        clock.now += 0.001
        trace(snapshot)

    for _ in range(2):  # It starts over with the next search.
        # Chunks of one episode end between two calls of the callback.
        planner = make("mdp-gape", chunk=1)
        plan = planner.plan(problem("mdp-gape"), 0, seed=0, callback=watch, **limits)
        assert trace.snapshots[-1].samples == plan.samples
        assert trace.snapshots[0].episodes == 1
        assert (np.diff(trace.samples) > 0).all()


def test_a_search_that_ends_without_another_call_ends_the_trace():
    trace = views.Trace()
    make("mdp-gape").plan(problem("mdp-gape"), 0, seed=0, budget=400, callback=trace)
    length, last = len(trace), trace.snapshots[-1]
    trace(replace(last, seconds=last.seconds + 1.0))
    assert len(trace) == length
    assert trace.snapshots[-1].seconds == last.seconds + 1.0
    assert (np.diff(trace.samples) > 0).all()


def test_a_trace_holds_one_search_however_short_the_one_before_was():
    trace = views.Trace()
    planner = make("mdp-gape")
    planner.plan(problem("mdp-gape"), 0, seed=0, budget=1, callback=trace)
    assert set(trace.samples) == {1}
    plan = planner.plan(problem("mdp-gape"), 0, seed=0, budget=400, callback=trace)
    assert trace.samples[0] > 1 and trace.samples[-1] == plan.samples
    # Another state has other actions.
    model = pacplan.Simulator(lambda s, a, rng: (s, 0.5, False), actions=3, successors=1)
    planner.plan(model, 0, seed=0, budget=1, callback=trace)
    assert {snapshot.actions for snapshot in trace.snapshots} == {(0, 1, 2)}


def test_searches_at_the_same_time_need_a_trace_each():
    trace = views.Trace()
    planner = make("mdp-gape")

    def step(state, action, rng):
        planner.plan(problem("mdp-gape"), 0, seed=0, budget=50, callback=trace)
        return state, 0.5, False

    model = pacplan.Simulator(step, actions=2, successors=1)
    with pytest.raises(ValueError, match="each needs its own"):
        planner.plan(model, 0, seed=0, budget=20, callback=trace)


def test_what_cannot_be_drawn_is_refused(monkeypatch):
    trace = views.Trace()
    with pytest.raises(ValueError, match="callback=trace"):
        views.convergence(trace)
    plan = make("uct").plan(problem("uct"), 0, seed=0, budget=400, callback=trace)
    with pytest.raises(ValueError, match="no bounds"):
        views.convergence(trace)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"matplotlib: pip install pacplan\[viz\]"):
        plan.plot()
