"""The report of a reproduction: the paper's numbers beside ours, and what they stand for."""

import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from pacplan import envs, theory
from pacplan.algorithms import UCT, SmoothCruiser, SparseSampling, StOP, TrailBlazer
from pacplan.core.version import __version__
from pacplan.experiments import figures, paper, summary
from pacplan.experiments.page import Page
from pacplan.experiments.paper import ACTIONS, DELTA, GAMMA, SUCCESSORS, Accuracy, Curve, Reproduction
from pacplan.experiments.runs import Record
from pacplan.experiments.summary import Estimate
from pacplan.views.pictures import check_target, library

_THEORETICAL = (SparseSampling, SmoothCruiser, TrailBlazer, StOP)
# Calls for planners that would take too long, and the accuracy: the coarsest of the paper's table.
_ENOUGH, _QUICK_ENOUGH, _COARSE = 1_000_000, 10_000, 1.0


def check_report(reproduction: Reproduction, folder: Path) -> None:
    """Raise, before anything is run, if no report could be written in the end."""
    if {"figure1", "figure2"} & set(reproduction.parts):
        library("matplotlib")
    if folder.is_dir():
        for name in ("report.html", "index.md", "summary.csv", "runs.csv"):
            check_target(folder / name, "report", name)


def write_report(reproduction: Reproduction, records: Sequence[Record], folder: Path) -> None:
    """Write report.html, index.md, the figures, runs.csv and summary.csv into the folder."""
    summary.write(folder, records)
    page = Page("The MDP-GapE paper's experiments, reproduced", folder)
    _how(page, reproduction, records, folder)
    lines = paper.accuracies(reproduction, records)
    if "table4" in reproduction.parts and lines:
        _table4(page, lines)
    if "figure1" in reproduction.parts and lines:
        fits = paper.exponents(lines)
        figures.figure1(lines, fits, folder / "figure1")
        _figure1(page, lines, fits)
    if lines:
        _bounds(page, reproduction, lines)
    if "table4" in reproduction.parts and lines:
        _attempts(page, reproduction)
    if curves := paper.curves(reproduction, records):
        figures.figure2(curves, folder / "figure2")
        _figure2(page, curves)
    page.write()


def _how(page: Page, reproduction: Reproduction, records: Sequence[Record], folder: Path) -> None:
    seeds = reproduction.problem_seeds
    page.text(
        "Planning in Markov Decision Processes with Gap-Dependent Sample Complexity (Jonsson, "
        "Kaufmann, Ménard, Darwiche Domingues, Leurent, Valko; NeurIPS 2020), section 5. The "
        f"{len(seeds)} random MDPs have 200 states, K = {ACTIONS} actions, B = {SUCCESSORS} "
        f"successors and rewards on half of the pairs; γ = {GAMMA}, δ = {DELTA}. A pair always pays "
        "its mean reward, but the planners are not told. Regret is measured in the infinite-horizon "
        "problem, by exact dynamic programming."
    )
    page.command(f"{reproduction.command} --out {folder.as_posix()}")
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba"))
    page.text(
        f"MDPs have the seeds {seeds[0]} to {seeds[-1]}. runs.csv has the seed and the result of each "
        f"of the {len(records):,} runs, summary.csv their means. pacplan {__version__}, Python "
        f"{platform.python_version()}, {packages}, {platform.system()} on {platform.machine()}. The "
        "same command gives the same numbers, except for times."
    )
    failed = [record for record in records if record.error]
    if failed:
        page.text(
            f"{len(failed)} of the {len(records)} runs failed and are left out below; the first: "
            f"{failed[0].settings}: {failed[0].error}"
        )


def _table4(page: Page, lines: Sequence[Accuracy]) -> None:
    published = paper.paper_table()
    rows = []
    for line in lines:
        theirs = published.get(line.epsilon)
        if theirs is None:
            continue
        n_ss = theory.sparse_sampling_calls(
            epsilon=line.epsilon, horizon=line.horizon, actions=ACTIONS, successors=SUCCESSORS
        )
        rows.append(
            [
                *_question(line),
                *(_short(theirs.max_regret), _short(line.max_regret)),
                *_compared(theirs.median_n, line.median_n),
                *_compared(theirs.max_n, line.max_n),
                *(_short(n_ss), f"{line.certified:.0%}", f"{line.seconds:.3f}"),
            ]
        )
    page.heading("Table 4: fixed confidence")
    page.text(
        "Calls n to the model until the planner stops by its own rule, and the regret of its action. "
        "The paper's numbers are those of its MDP-GapE in every row, whichever planner of ours the row "
        "is about. The paper's MDP-GapE and, unless it says otherwise, ours use heuristic thresholds, "
        "which certify nothing."
    )
    page.table(
        "planner | ε | H | max regret, paper's MDP-GapE | ours | median n, paper's MDP-GapE | ours "
        "| ratio | max n, paper's MDP-GapE | ours | ratio | n of Sparse Sampling | certified "
        "| seconds a plan",
        rows,
    )
    page.text(
        "Our MDP-GapE takes fewer calls than the paper's largely because the paper's text bounds the "
        "mean reward of a state and action, and so do we, but the published runs bounded it for each "
        "state, action and successor by itself (benchmarks/rewards_per_successor.py)."
    )


def _question(line: Accuracy) -> list[str]:
    return [line.label, f"{line.epsilon:g}", str(line.horizon)]


def _compared(theirs: float, ours: float) -> list[str]:
    return [f"{theirs:,.0f}", f"{ours:,.0f}", f"{ours / theirs:.2f}"]


def _figure1(page: Page, lines: Sequence[Accuracy], fits: dict[str, theory.Exponent]) -> None:
    crude = theory.crude_exponent(gamma=GAMMA, actions=ACTIONS, successors=SUCCESSORS)
    page.heading("Figure 1: growth with the accuracy")
    page.picture("figure1", "Calls to the model against 1/ε, with the paper's behind")
    page.text(
        "The exponent x of n ~ (1/ε)^x: the slope of log(mean n) against log(1/ε), and its 95 % "
        "interval by the bootstrap over MDPs."
    )
    page.table(
        "planner | exponent | 95 % interval",
        [
            ["MDP-GapE, paper", f"{paper.PAPER_EXPONENT}", ""],
            ["crude bound, 2 + log(BK) / log(1/γ)", f"{crude:.1f}", ""],
            *([name, f"{f.value:.2f}", f"{f.low:.2f} .. {f.high:.2f}"] for name, f in fits.items()),
        ],
    )
    means = [(line, np.mean(list(line.samples.values()))) for line in lines]
    page.table(
        "planner | ε | mean n", [[line.label, f"{line.epsilon:g}", f"{n:,.0f}"] for line, n in means]
    )


def _bounds(page: Page, reproduction: Reproduction, lines: Sequence[Accuracy]) -> None:
    models = [envs.garnet(seed=seed) for seed in reproduction.problem_seeds]
    rows = []
    for line in lines:
        if line.label.startswith("mdp-gape"):
            given: dict[str, Any] = {"horizon": line.horizon, "epsilon": line.epsilon}
            found = [theory.corollary_1(model, gamma=GAMMA, delta=DELTA, **given) for model in models]
            proven, order = (
                line.horizon * float(np.median([getattr(bound, name) for bound in found]))
                for name in ("proven", "order")
            )
            rows.append([*_question(line), _short(proven), _short(order), f"{line.median_n:,.0f}"])
    page.heading("Theory and reality")
    page.text(
        "Calls to the model that the paper's Corollary 1 allows MDP-GapE with its proven thresholds, "
        "evaluated with the true gaps of each MDP, against what was measured (with the thresholds of "
        "Table 4): medians over the MDPs. The corollary states an order; the first number has the "
        "constants of the paper's proof, the second is the bare expression."
    )
    page.table("planner | ε | H | Corollary 1, proven | without constants | measured", rows)


def _attempts(page: Page, reproduction: Reproduction) -> None:
    seed = reproduction.problem_seeds[0]
    enough = _QUICK_ENOUGH if reproduction.quick else _ENOUGH
    model, rows, words = envs.garnet(seed=seed), [], []
    for kind in _THEORETICAL:
        planner = kind(epsilon=_COARSE, delta=DELTA, gamma=GAMMA)
        predicted = "not known"
        if isinstance(planner, SparseSampling | SmoothCruiser):
            predicted = _short(float(planner.calls(model)))
        try:
            plan = planner.plan(model, seed=seed, budget=enough)
            rows.append([kind.name, predicted, f"{plan.samples:,}", plan.stopped_by])
            words.append(f"{kind.name}: {plan.guarantee}")
        except ValueError as refusal:
            rows.append([kind.name, predicted, "0", "refused"])
            words.append(f"{kind.name}: {refusal}")
    page.heading("The other planners with a guarantee")
    page.text(
        "The paper calls them theoretical, and ran none of them to its end. Here each was given "
        f"{enough:,} calls on the first MDP, at ε = {_COARSE:g}. Calls predicted are those that the "
        "planner itself computes before the first one, with all constants; SmoothCruiser's are for the "
        "problem regularised by entropy."
    )
    page.table("planner | calls predicted | calls made | stopped by", rows)
    for said in words:
        page.text(said)


def _figure2(page: Page, curves: Sequence[Curve]) -> None:
    published = paper.paper_curves()
    means, intervals = [], []
    for budget in sorted({budget for curve in curves for budget in curve.points}):
        best = min(published, key=lambda name: published[name][budget].value)
        ours = [curve.points.get(budget) for curve in curves]
        means.append(
            [
                *(f"{budget:,}", f"{_short(published[best][budget].value)} ({best})"),
                *("" if point is None else _short(point.value) for point in ours),
            ]
        )
    for curve in curves:
        theirs = published.get(curve.planner, {})
        intervals += [
            [curve.label, f"{budget:,}", _interval(theirs.get(budget)), _interval(point)]
            for budget, point in curve.points.items()
        ]
    page.heading("Figure 2: fixed budget")
    page.picture(
        "figure2",
        "Mean regret after n calls to the model, with its 95 % interval; dashed, the paper's. An open "
        "triangle marks a mean of 0.",
    )
    page.text(
        "The horizon and the number of episodes τ follow from n as in the paper (BRUE takes a third of "
        "that horizon). Bounds of MDP-GapE, none of them proven: those of the paper's text (budget) "
        "are of log τ for rewards and transitions; those of its published runs, which made its curve, "
        "of log τ and 0.1 log τ (published); ours, which we tuned, of 0.2 log τ for both (sharp)."
    )
    page.text(
        f"UCT's exploration constant, {UCT(gamma=GAMMA).exploration:g}, is tuned as well "
        "(benchmarks/uct_constant.py); the textbook's is exploration=2**0.5. The paper's curves "
        "of UCT and BRUE show other rules than these names stand for, so ours do not reproduce them "
        "(docs/experiments.md)."
    )
    page.text("Mean regret of the paper's best planner at each budget, and of ours:")
    page.table(" | ".join(["n", "best of the paper", *(curve.label for curve in curves)]), means)
    page.text("Each planner and its own curve in the paper, with 95 % intervals:")
    page.table("planner | n | paper | ours", intervals)


def _interval(estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    return f"{_short(estimate.value)} ({_short(estimate.low)} .. {_short(estimate.high)})"


def _short(value: float) -> str:
    """Two digits and a power of ten."""
    digits, _, power = f"{value:.1e}".partition("e")
    return "0" if value == 0.0 else f"{digits}e{int(power)}"
