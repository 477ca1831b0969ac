"""Planners side by side."""

import json

import numpy as np
import pytest

import pacplan
from command_line import run
from pacplan import comparison, exact
from pacplan.experiments import summary


def garnet(number):
    return pacplan.envs.garnet(states=30, seed=number)


def test_every_planner_gets_the_same_problems_and_budget():
    planners = [pacplan.UCT(gamma=0.7), pacplan.BRUE(gamma=0.7)]
    rows = comparison.compare(garnet, planners, budget=200, runs=5, seed=3)
    for planner, row in zip(planners, rows, strict=True):
        assert (row.name, row.planner) == (planner.name, repr(planner))
        assert (row.samples == 200).all()
        for number in range(5):
            values = exact.discounted(garnet(3 + number), gamma=0.7)[0]
            assert np.isclose(row.regrets[number], values.max() - values, rtol=0, atol=1e-12).any()
    again = comparison.compare(garnet, planners[::-1], budget=200, runs=5, seed=3)[::-1]
    for row, same in zip(rows, again, strict=True):
        assert (row.regrets == same.regrets).all()


@pytest.mark.processes
def test_processes_find_the_same():
    planners = [pacplan.UCT(gamma=0.7), pacplan.BRUE(gamma=0.7)]
    alone = comparison.compare(garnet, planners, budget=100, runs=7)
    for row, same in zip(
        alone, comparison.compare(garnet, planners, budget=100, runs=7, workers=2), strict=True
    ):
        assert (row.planner, row.regrets.tolist()) == (same.planner, same.regrets.tolist())
    with pytest.raises(ValueError, match="workers"):
        comparison.compare(garnet, planners, budget=100, runs=7, workers=0)
    result = run("compare", "garnet", "--planners", "uct", "--runs", "3", "--workers", "2")
    assert result.code == 0, result.output


def test_the_interval_covers_the_mean():
    regrets = np.random.default_rng(0).exponential(size=100)
    estimate = summary.mean(regrets)
    assert estimate.value == regrets.mean()
    # A bootstrap interval is about twice 1.96 standard errors wide.
    assert estimate.high - estimate.low == pytest.approx(2 * 1.96 * regrets.std() / 10, rel=0.1)
    assert estimate.low < estimate.value < estimate.high


def test_command():
    chosen = ("--planners", "uct,kl-olop,mdp-gape", "--budget", "100", "--runs", "3")
    result = run("compare", "garnet", *chosen)
    assert result.code == 0, result.output
    for name in ("uct", "kl-olop", "mdp-gape", "3 problems, 100 calls"):
        assert name in result.output


def test_command_prints_json():
    chosen = ("--planners", "uct,kl-olop", "--budget", "100", "--runs", "3", "--seed", "5", "--json")
    result = run("compare", "garnet", *chosen)
    assert (result.code, result.stderr) == (0, "")
    found = json.loads(result.stdout)
    assert (found["budget"], found["problems"]) == (100, 3)
    made = [pacplan.UCT(gamma=0.7), pacplan.KLOLOP(gamma=0.7, threshold="log")]
    rows = {
        row.name: row
        for row in comparison.compare(
            lambda s: pacplan.envs.garnet(seed=s), made, budget=100, runs=3, seed=5
        )
    }
    means = [entry["mean_regret"] for entry in found["planners"]]
    assert means == sorted(means)
    for entry in found["planners"]:
        row = rows[entry["name"]]
        assert entry["planner"] == row.planner
        assert (entry["regrets"], entry["samples"]) == (row.regrets.tolist(), row.samples.tolist())
        assert entry["mean_regret_low"] <= entry["mean_regret"] <= entry["mean_regret_high"]
        assert len(entry["seconds"]) == 3


def test_command_shows_how_far_it_is():
    command = ("compare", "garnet", "--planners", "uct", "--budget", "50", "--runs", "3")
    shown, quiet = run(*command), run(*command, "--quiet")
    assert "3/3" in shown.stderr and "runs" in shown.stderr
    assert quiet.stderr == ""
    for result in (shown, quiet):
        lines = result.stdout.splitlines()
        assert lines[0] == "3 problems, 50 calls each"
        assert lines[1].split("  ")[0] == "planner" and lines[2].startswith("uct ")


def test_command_draws_a_picture(tmp_path):
    picture = tmp_path / "regret.png"
    chosen = ("--planners", "uct", "--budget", "50", "--runs", "2")
    result = run("compare", "garnet", *chosen, "--plot", picture)
    assert result.code == 0, result.output
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--planners", "nonsense"], "nonsense"),
        (["--planners", ""], "planner"),
        (["--runs", "0"], "--runs must be at least 1, got 0"),
        (["--budget", "0"], "--budget must be at least 1, got 0"),
        (["--planners", "opd"], "one successor"),
        (["--gamma", "2"], "--gamma must lie in [0, 1], got 2"),
    ],
    ids=str,
)
def test_wrong_usage(arguments, word):
    result = run("compare", "garnet", "--runs", "2", "--budget", "50", *arguments)
    assert result.code == 2
    assert word in result.output
    assert "Traceback" not in result.output


def test_regret_needs_tables():
    model = pacplan.Simulator(lambda s, a, rng: (s, 0.0, False), actions=2, successors=1, initial=0)
    with pytest.raises(TypeError, match="TabularMDP"):
        comparison.compare(lambda n: model, [pacplan.UCT(gamma=0.7)], budget=10, runs=1)


def test_planner_by_name_and_its_options():
    arguments = ["plan", "garnet", "--planner", "uct", "--budget", "60", "--seed", "0", "--json"]
    result = run(*arguments, "--option", "rollout=random", "--option", "horizon=4")
    assert result.code == 0, result.output
    assert "rollout='random'" in result.output
    assert run(*arguments, "--option", "colour=red").code == 2
    assert run(*arguments, "--epsilon", "1").code == 2


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("no/such/folder/x.png", "which is no folder"),
        (".", "is a folder"),
        ("picture.doc", "ends in none of"),
        ("picture", "ends in none of"),
    ],
)
def test_pictures_that_cannot_be_drawn_are_refused_before_any_run(tmp_path, monkeypatch, path, word):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pacplan.envs.garnet", lambda seed: pytest.fail("a problem was made"))
    result = run("compare", "garnet", "--planners", "uct", "--plot", path)
    assert result.code == 2, result.output
    assert word in result.stderr and len(result.stderr.splitlines()) == 1
    assert result.stdout == ""


def test_a_picture_that_fails_in_the_end_costs_no_results(tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device", "x.png")

    monkeypatch.setattr(comparison, "plot", full)
    arguments = ["compare", "garnet", "--planners", "uct", "--budget", "50", "--runs", "2"]
    result = run(*arguments, "--plot", str(tmp_path / "x.png"))
    assert result.code == 1
    assert "uct" in result.stdout and "No space left on device" in result.stderr
