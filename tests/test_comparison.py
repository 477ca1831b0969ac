"""Planners side by side."""

import json

import numpy as np
import pytest

import pacplan
from command_line import run
from pacplan import comparison, exact
from pacplan.experiments import records


def garnet(number):
    return pacplan.envs.garnet(states=30, seed=number)


def regrets(rows):
    return {row.planner: [plan.regret for plan in row.plans] for row in rows}


def test_every_planner_gets_the_same_problems_and_budget():
    planners = [pacplan.UCT(gamma=0.7), pacplan.BRUE(gamma=0.7)]
    rows = comparison.compare(garnet, planners, budget=200, runs=5, seed=3)
    means = [row.regret.value for row in rows]
    assert means == sorted(means) and {row.planner for row in rows} == {"uct", "brue"}
    for row in rows:
        for number, plan in enumerate(row.plans):
            values = exact.discounted(garnet(3 + number), gamma=0.7)[0]
            assert plan.samples == 200
            assert np.isclose(plan.regret, values.max() - values, rtol=0, atol=1e-12).any()
    again = comparison.compare(garnet, planners[::-1], budget=200, runs=5, seed=3, workers=2)
    assert regrets(again) == regrets(rows)


def test_the_interval_covers_the_mean():
    drawn = np.random.default_rng(0).exponential(size=100)
    estimate = records.mean(drawn)
    assert estimate.value == drawn.mean()
    # A bootstrap interval is about twice 1.96 standard errors wide.
    assert estimate.high - estimate.low == pytest.approx(2 * 1.96 * drawn.std() / 10, rel=0.1)
    assert estimate.low < estimate.value < estimate.high


def test_command():
    chosen = ("--planners", "uct,kl-olop", "--budget", "100", "--runs", "3", "--seed", "5")
    shown, quiet = (run("compare", "garnet", *chosen, *extra) for extra in ((), ("--quiet",)))
    assert shown.code == quiet.code == 0, shown.output
    assert "6/6" in shown.stderr and "runs" in shown.stderr and quiet.stderr == ""
    lines = shown.stdout.splitlines()
    assert lines[0] == "3 problems, 100 calls each" and lines[1].startswith("planner ")
    assert {line.split()[0] for line in lines[2:]} == {"uct", "kl-olop"}
    result = run("compare", "garnet", *chosen, "--json")
    assert (result.code, result.stderr) == (0, "")
    found = json.loads(result.stdout)
    assert (found["budget"], found["problems"]) == (100, 3)
    made = [pacplan.UCT(gamma=0.7), pacplan.KLOLOP(gamma=0.7, threshold="log")]
    rows = comparison.compare(lambda s: pacplan.envs.garnet(seed=s), made, budget=100, runs=3, seed=5)
    for entry, row in zip(found["planners"], rows, strict=True):
        assert (entry["planner"], entry["regrets"]) == (row.planner, regrets([row])[row.planner])
        assert entry["mean_regret_low"] <= entry["mean_regret"] <= entry["mean_regret_high"]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--planners", "nonsense"], "nonsense"),
        (["--planners", ""], "planner"),
        (["--runs", "0"], "--runs must be at least 1, got 0"),
        (["--planners", "opd"], "one successor"),
        (["--gamma", "2"], "--gamma must lie in [0, 1], got 2"),
    ],
    ids=str,
)
def test_wrong_usage(arguments, word):
    result = run("compare", "garnet", "--runs", "2", "--budget", "50", *arguments)
    assert result.code == 2 and word in result.output and "Traceback" not in result.output


def test_regret_needs_tables():
    model = pacplan.Simulator(lambda s, a, rng: (s, 0.0, False), actions=2, successors=1, initial=0)
    with pytest.raises(TypeError, match="TabularMDP"):
        comparison.compare(lambda n: model, [pacplan.UCT(gamma=0.7)], budget=10, runs=1)
