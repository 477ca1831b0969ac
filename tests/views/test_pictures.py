"""The pictures of intervals and of convergence show the numbers of the search."""

import re
import sys

import matplotlib
import pytest

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
    lines, points = axes.collections[::2], axes.collections[1::2]
    drawn = [tuple(line.get_segments()[0][:, 0]) for line in lines]
    assert drawn == list(zip(plan.lower, plan.upper, strict=True))
    assert [point.get_offsets()[0, 0] for point in points] == plan.values.tolist()
    best = plan.actions.index(plan.action)
    marks = sorted(line.get_xdata()[0] for line in axes.lines)
    assert marks[1] - marks[0] == pytest.approx(abs(plan.gap))
    assert plan.lower[best] in marks
    challenger = max((i for i in range(3) if i != best), key=lambda i: plan.upper[i])
    assert axes.get_title().startswith(f"action {plan.action} against action {challenger}: gap ")
    named = [text.get_text() for text in axes.get_legend().get_texts()]
    assert named == ["lower bound, taken", "upper bound, challenger"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["0", "1", "2"]


def test_convergence_draws_the_bounds_up_to_the_stop():
    plan = make("mdp-gape").plan(problem("mdp-gape"), 0, seed=0, budget=4000)
    axes = views.convergence(plan)
    drawn = [tuple(line.get_ydata()) for line in axes.lines]
    expected = [*map(tuple, plan.curve.lower.T), *map(tuple, plan.curve.upper.T)]
    assert sorted(drawn) == sorted(expected)
    assert all(list(line.get_xdata()) == plan.curve.samples.tolist() for line in axes.lines)
    assert re.match(r"action \d against action \d: gap [\d.]+ after", axes.get_title())
    assert f"{plan.samples:,} calls" in axes.get_title()
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert f"{plan.action}, taken" in labels


def test_what_cannot_be_drawn_is_refused(monkeypatch):
    plan = make("uct").plan(problem("uct"), 0, seed=0, budget=400)
    with pytest.raises(ValueError, match="no bounds"):
        views.convergence(plan)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"matplotlib: pip install pacplan\[viz\]"):
        plan.plot()
