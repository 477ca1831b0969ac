"""Planners side by side."""

import numpy as np
import pytest
from typer.testing import CliRunner

import pacplan
from pacplan import comparison, exact
from pacplan.cli import app

RUNNER = CliRunner()


def garnet(number):
    return pacplan.envs.garnet(states=30, seed=number)


def test_every_planner_gets_the_same_problems_seeds_and_budget():
    planners = [pacplan.UCT(gamma=0.7), pacplan.BRUE(gamma=0.7)]
    rows = comparison.compare(garnet, planners, budget=200, runs=5, gamma=0.7, seed=3)
    for planner, row in zip(planners, rows, strict=True):
        assert row.name == planner.name
        assert (row.calls == 200).all()
        for number in range(5):
            model = garnet(3 + number)
            values = exact.discounted(model, gamma=0.7)[0]
            plan = planner.plan(model, seed=3 + number, budget=200)
            assert row.regrets[number] == values.max() - values[plan.action]


def test_the_interval_covers_the_mean():
    regrets = np.random.default_rng(0).exponential(size=100)
    row = comparison.Row("", "", regrets, np.ones(100, int), np.ones(100))
    mean, low, high = row.interval()
    assert mean == regrets.mean()
    # A bootstrap interval is about twice 1.96 standard errors wide.
    assert high - low == pytest.approx(2 * 1.96 * regrets.std() / 10, rel=0.1)
    assert low < mean < high


def test_command():
    result = RUNNER.invoke(
        app,
        ["compare", "garnet", "--planners", "uct,kl-olop,mdp-gape", "--budget", "100", "--runs", "3"],
    )
    assert result.exit_code == 0, result.output
    for name in ("uct", "kl-olop", "mdp-gape", "3 problems, 100 calls"):
        assert name in result.output


def test_command_draws_a_picture(tmp_path):
    picture = tmp_path / "regret.png"
    result = RUNNER.invoke(
        app,
        [
            "compare",
            "garnet",
            "--planners",
            "uct",
            "--budget",
            "50",
            "--runs",
            "2",
            "--plot",
            str(picture),
        ],
    )
    assert result.exit_code == 0, result.output
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--planners", "nonsense"], "nonsense"),
        (["--planners", ""], "planner"),
        (["--runs", "0"], "runs"),
        (["--budget", "0"], "budget"),
        (["--planners", "opd"], "one successor"),
        (["--gamma", "2"], "gamma"),
    ],
    ids=str,
)
def test_wrong_usage(arguments, word):
    result = RUNNER.invoke(app, ["compare", "garnet", "--runs", "2", "--budget", "50", *arguments])
    assert result.exit_code == 2
    assert word in result.output
    assert "Traceback" not in result.output


def test_regret_needs_tables():
    model = pacplan.Simulator(lambda s, a, rng: (s, 0.0, False), actions=2, successors=1, initial=0)
    with pytest.raises(TypeError, match="TabularMDP"):
        comparison.compare(lambda n: model, [pacplan.UCT(gamma=0.7)], budget=10, runs=1, gamma=0.7)


def test_planner_by_name_and_its_options():
    arguments = ["plan", "garnet", "--planner", "uct", "--budget", "60", "--seed", "0", "--json"]
    result = RUNNER.invoke(app, [*arguments, "--option", "rollout=random", "--option", "horizon=4"])
    assert result.exit_code == 0, result.output
    assert "rollout='random'" in result.output
    assert RUNNER.invoke(app, [*arguments, "--option", "colour=red"]).exit_code == 2
    assert RUNNER.invoke(app, [*arguments, "--epsilon", "1"]).exit_code == 2
