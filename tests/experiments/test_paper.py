"""The paper's experiments as sweeps."""

import csv
import html
import json
import math

import numpy as np
import pytest

import pacplan
from command_line import run as command
from pacplan.bounds.thresholds import NAMED
from pacplan.experiments import (
    Reproduction,
    claims,
    paper,
)


def test_the_papers_numbers_are_at_hand():
    table = paper.paper_table()
    assert {e: line.horizon for e, line in table.items()} == {1.0: 6, 0.5: 8, 0.2: 10}
    assert table[0.2].max_n == 2.3e6
    curves = paper.paper_curves()
    assert set(curves) == {"mdp-gape", "kl-olop", "brue", "uct"}
    for curve in curves.values():
        assert list(curve) == [10, 31, 100, 316, 1000, 3162, 10000, 31623, 100000]
        assert all(point.low <= point.value <= point.high for point in curve.values())
    assert curves["mdp-gape"][100000].value == 1.41e-4


def test_what_is_run_for_the_paper():
    whole = Reproduction()
    assert len(whole.sweep().runs()) == 200 * (2 * 5 + 6 * 9)
    bounds = [spec.build().thresholds for spec in whole.budgeted() if spec.planner == "mdp-gape"]
    assert bounds == ["sharp", "budget"]  # Ours, and the paper's text.
    assert len(Reproduction("table4").sweep().runs()) == 2 * 600
    planners = [spec.build() for _, spec in Reproduction("table4").certifying()]
    assert sorted(planner.horizon for planner in planners) == [6, 6, 8, 8, 10, 10]
    gape = [planner for planner in planners if planner.name == "mdp-gape"]
    assert len(gape) == 3 and all(planner.thresholds == "paper" for planner in gape)
    both = Reproduction("figure2", thresholds=("budget", "lemma"), planners=("mdp-gape", "olop"))
    assert [spec.name for spec in both.budgeted()] == ["mdp-gape", "olop"]
    assert both.budgeted()[0].build().thresholds == "budget"
    assert both.command.endswith("--thresholds budget,lemma --planners mdp-gape,olop")


@pytest.mark.parametrize("name", [n for n in NAMED if n not in ("lemma", "paper")])
def test_thresholds_for_a_budget(name):
    planner = pacplan.MDPGapE(epsilon=0.0, delta=0.1, gamma=0.7, thresholds=name)
    assert planner.plan(pacplan.envs.garnet(states=20), seed=0, time_limit=0.01).episodes > 0
    plan = planner.plan(pacplan.envs.garnet(states=20), seed=0, budget=1000)
    rivals = np.delete(plan.upper, plan.action)
    assert plan.gap == rivals.max() - plan.lower[plan.action]
    assert not plan.certified and "heuristic" in plan.guarantee


def as_written(value):
    """A number as the report writes it."""
    digits, _, power = f"{value:.1e}".partition("e")
    return "0" if value == 0.0 else f"{digits}e{int(power)}"


def test_planners_that_do_not_end():
    found = {each.planner: each for each in claims.attempts(Reproduction("table4", quick=True))}
    assert set(found) == {"sparse-sampling", "smooth-cruiser", "trailblazer", "stop"}
    refused, smooth, trail, stop = found.values()
    assert (refused.stopped_by, refused.calls) == ("refused", 0)
    # K C (1 + BK + ... + (BK)^5) with C = ceil(2 log(2 N / delta) E^2), N = K (1 + ... + (BK)^5).
    pairs = 5 * 111_111
    sums = sum(0.7**h * sum(0.7**i for i in range(6 - h)) for h in range(6))
    assert refused.predicted == pairs * math.ceil(2 * math.log(2 * pairs / 0.1) * sums**2)
    assert (smooth.stopped_by, smooth.calls) == (trail.stopped_by, trail.calls) == ("budget", 10_000)
    assert smooth.predicted > 1e20 and trail.predicted is None and trail.memory > 0
    assert stop.stopped_by == "memory" and "policies" in stop.words and stop.memory is None


def test_table_2_on_the_papers_mdps():
    lines = claims.table_2_lines(Reproduction("table4", mdps=3))
    calls = {each.line.formula: each.calls for each in lines}
    for epsilon, n in ((1.0, 7.776e9), (0.5, 1.31072e13), (0.2, 2.5e16)):
        assert calls["H^5 (BK)^H / ε^2"][epsilon] == pytest.approx((n, n))
    assert calls["ε^-4"][0.2] == pytest.approx((625, 625))


def test_report_of_everything(tmp_path):
    out = tmp_path / "all"
    arguments = ["reproduce", "all", "--quick", "--mdps", "3", "--workers", "1", "--out", out]
    result = command(*arguments, "--planners", "mdp-gape,uct,olop", "--quiet")
    assert result.code == 0
    for stem in ("figure1", "figure2"):
        assert (out / f"{stem}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (out / f"{stem}.svg").read_text()
    page = (out / "report.html").read_text()
    text = (out / "index.md").read_text()
    assert page.count("data:image/svg+xml") == 2
    rows = list(csv.DictReader((out / "runs.csv").read_text().splitlines()))
    at_half = [row for row in rows if json.loads(row["settings"])["settings"].get("epsilon") == 0.5]
    median = np.median([int(row["samples"]) for row in at_half])
    largest = max(int(row["samples"]) for row in at_half)
    regrets = [float(r["regret"]) for r in rows if r["planner"] == "uct" and r["budget"] == "10"]
    assert np.mean(regrets) > 0.0
    for written in (page, text):
        assert "pacplan reproduce all --mdps 3 --seed 0 --planners mdp-gape,uct,olop --quick" in written
        assert f"pacplan {pacplan.__version__}" in written
        for number in ("6,300", "55,000", f"{median:,.0f}", f"{largest:,}", "1.3e13"):
            assert number in written
        assert as_written(np.mean(regrets)) in written
        # What the names of curves and columns stand for.
        for words in (
            "mdp-gape (sharp) has bounds that we tuned",
            "mdp-gape (budget) has the bounds of the paper",
            "curves of UCT and BRUE show other rules",
            "The textbook's √2",
            "those of its MDP-GapE in every row",
            "action and successor by itself",
        ):
            assert words in html.unescape(written)
        assert "Corollary 2" in written and "without constants" in written
    curves = [line for line in text.splitlines() if line.startswith("| mdp-gape (budget) | 100 |")]
    of_text = [float(r["regret"]) for r in rows if '"budget"' in r["settings"] and r["budget"] == "100"]
    assert len(of_text) == 3 and len(curves) == 1
    assert f"| {as_written(np.mean(of_text))} (" in curves[0]
    svg = (out / "figure2.svg").read_text()
    assert "mdp-gape, ours, tuned bounds" in svg and "mdp-gape, ours, the text's bounds" in svg
    assert json.loads((out / "sweep.json").read_text())["seeds"] == [0, 1, 2]
    again = command(*arguments, "--planners", "mdp-gape,uct,olop", "--quiet")
    assert again.code == 0 and (out / "index.md").read_text() == text
    refused = command(*arguments, "--quiet")
    assert refused.code == 2 and "another folder" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["table5"], "table5"),
        (["table4", "--planners", "uct"], "mdp-gape"),
        (["table4", "--planners", ","], "planner"),
        (["figure2", "--planners", "nonsense"], "nonsense"),
        (["figure2", "--thresholds", "loose"], "loose"),
        (["all", "--mdps", "0"], "mdps"),
        (["all", "--workers", "0"], "workers"),
    ],
    ids=str,
)
def test_wrong_reproductions(arguments, word, tmp_path):
    result = command("reproduce", *arguments, "--out", tmp_path / "out")
    assert result.code == 2
    assert word in result.stderr and len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()
