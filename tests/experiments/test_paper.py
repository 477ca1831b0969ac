"""The paper's experiments as sweeps, and the report of what they find."""

import csv

import numpy as np
import pytest

from command_line import run as command
from pacplan.experiments import Reproduction, paper
from pacplan.experiments.report import short


def test_the_papers_numbers_are_at_hand():
    curves = paper.paper_curves()
    assert set(curves) == {"mdp-gape", "kl-olop", "brue", "uct"}
    for curve in curves.values():
        assert list(curve) == [10, 31, 100, 316, 1000, 3162, 10000, 31623, 100000]
        assert all(point.low <= point.value <= point.high for point in curve.values())
    assert curves["mdp-gape"][100000].value == 1.41e-4


def test_what_is_run_for_the_paper():
    assert len(Reproduction().sweep().runs()) == 200 * (2 * 5 + 6 * 9)
    bounds = [
        spec.build().thresholds for spec in Reproduction().budgeted() if spec.planner == "mdp-gape"
    ]
    assert bounds == ["sharp", "budget"]  # Ours, and the paper's text.
    planners = [spec.build() for _, spec in Reproduction("table4").certifying()]
    assert sorted(planner.horizon for planner in planners) == [6, 6, 8, 8, 10, 10]
    gape = [planner for planner in planners if planner.name == "mdp-gape"]
    assert len(gape) == 3 and all(planner.thresholds == "paper" for planner in gape)
    both = Reproduction("figure2", thresholds=("budget", "lemma"), planners=("mdp-gape", "olop"))
    assert [spec.name for spec in both.budgeted()] == ["mdp-gape", "olop"]
    assert both.budgeted()[0].build().thresholds == "budget"


def test_report_of_everything(tmp_path):
    out = tmp_path / "all"
    arguments = ["reproduce", "all", "--quick", "--mdps", "3", "--workers", "1", "--out", out]
    arguments += ["--quiet", "--planners", "mdp-gape,uct,olop"]
    assert command(*arguments).code == 0
    for stem in ("figure1", "figure2"):
        assert (out / f"{stem}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (out / f"{stem}.svg").read_text()
    rows = list(csv.DictReader((out / "runs.csv").read_text().splitlines()))
    at_half = [row for row in rows if '"epsilon": 0.5' in row["settings"]]
    samples = [int(row["samples"]) for row in at_half]
    regrets = [float(r["regret"]) for r in rows if r["planner"] == "uct" and r["budget"] == "10"]
    assert np.mean(regrets) > 0.0
    text = (out / "index.md").read_text()
    for words in (
        f"pacplan reproduce all --quick --mdps 3 --workers 1 --out {out}",
        *("6,300", "55,000", f"{np.median(samples):,.0f}", f"{max(samples):,}", "1.3e13"),
        short(np.mean(regrets)),
        # What the names of curves and columns stand for.
        "those of its MDP-GapE in every row",
        "action and successor by itself",
        "UCT and BRUE show other rules",
    ):
        assert words in text
    assert command(*arguments).code == 0 and (out / "index.md").read_text() == text
    refused = command(*arguments[:-2])
    assert refused.code == 2 and "choose another place" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["table5"], "table5"),
        (["table4", "--planners", "uct"], "mdp-gape"),
        (["figure2", "--planners", "nonsense"], "nonsense"),
        (["figure2", "--thresholds", "loose"], "loose"),
        (["all", "--mdps", "0"], "mdps"),
    ],
    ids=str,
)
def test_wrong_reproductions(arguments, word, tmp_path):
    result = command("reproduce", *arguments, "--out", tmp_path / "out")
    assert result.code == 2
    assert word in result.stderr and len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()
