"""The report of a reproduction: the paper and ours side by side."""

import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np

import pacplan
from pacplan import theory
from pacplan.experiments import document, figures, paper
from pacplan.experiments.document import Code, Heading, Paragraph, Part, Picture, Table
from pacplan.experiments.paper import Accuracy, Curve, Reproduction
from pacplan.experiments.records import RUNS, Record
from pacplan.experiments.summary import Estimate, groups, write
from pacplan.views.style import check_target, library

_TITLE = "The MDP-GapE paper's experiments, reproduced"


def check_report(reproduction: Reproduction, folder: Path) -> None:
    """Raise, before anything is run, where no report could be written in the end."""
    if {"figure1", "figure2"} & set(reproduction.parts):
        library("matplotlib")
    for name in ("report.html", "index.md", "summary.csv"):
        if folder.is_dir():
            check_target(folder / name, "report", name)


def write_report(reproduction: Reproduction, records: Sequence[Record], folder: Path) -> None:
    """Write report.html, index.md, the figures and summary.csv into the folder."""
    lines = paper.accuracies(reproduction, records)
    parts = [*_how(reproduction, folder, records)]
    if "table4" in reproduction.parts and lines:
        parts += _table4(lines)
    if "figure1" in reproduction.parts and lines:
        fits = paper.exponents(lines)
        figures.figure1(lines, fits, folder / "figure1")
        parts += _figure1(lines, fits)
    if lines:
        parts += _bounds(reproduction, lines)
    if curves := paper.curves(reproduction, records):
        figures.figure2(curves, folder / "figure2")
        parts += _figure2(curves)
    write(groups(records), folder / "summary.csv")
    (folder / "index.md").write_text(document.markdown(_TITLE, parts), "utf-8")
    (folder / "report.html").write_text(document.page(_TITLE, parts, folder), "utf-8")


def _how(reproduction: Reproduction, folder: Path, records: Sequence[Record]) -> list[Part]:
    seeds = reproduction.problem_seeds
    failed = [record for record in records if record.error]
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba"))
    parts: list[Part] = [
        Paragraph(
            "Planning in Markov Decision Processes with Gap-Dependent Sample Complexity (Jonsson, "
            "Kaufmann, Ménard, Darwiche Domingues, Leurent, Valko; NeurIPS 2020), section 5. The "
            f"{len(seeds)} random MDPs have 200 states, K = {paper.ACTIONS} actions, "
            f"B = {paper.SUCCESSORS} successors and rewards on half of the pairs; "
            f"γ = {paper.GAMMA}, δ = {paper.DELTA}. A pair always pays its mean reward, which the "
            "planners are not told. Regret is measured in the infinite-horizon problem, by exact "
            "dynamic programming."
        ),
        Code(f"{reproduction.command} --out {folder.as_posix()}"),
        Paragraph(
            f"MDPs have the seeds {seeds[0]} to {seeds[-1]}; every plan has a seed of its own, which "
            f"{RUNS} lists with everything else about the {len(records):,} runs (written beside this "
            "page by the command; summary.csv has their means). pacplan "
            f"{pacplan.__version__}, Python {platform.python_version()}, {packages}, "
            f"{platform.system()} on {platform.machine()}. The same command gives the same numbers, "
            "times apart, whatever the number of workers."
        ),
    ]
    if failed:
        parts.append(
            Paragraph(
                f"{len(failed)} of the {len(records)} runs failed and are left out below; the first: "
                f"{failed[0].parameters}: {failed[0].error}"
            )
        )
    return parts


def _table4(lines: Sequence[Accuracy]) -> list[Part]:
    published = paper.paper_table()
    rows = []
    for line in lines:
        theirs = published.get(line.epsilon)
        if theirs is None:
            continue
        n_ss = theory.sparse_sampling_calls(
            epsilon=line.epsilon,
            horizon=line.horizon,
            actions=paper.ACTIONS,
            successors=paper.SUCCESSORS,
        )
        rows.append(
            [
                line.label,
                f"{line.epsilon:g}",
                str(line.horizon),
                _short(theirs.max_regret),
                _short(line.max_regret),
                f"{theirs.median_n:,.0f}",
                f"{line.median_n:,.0f}",
                f"{line.median_n / theirs.median_n:.2f}",
                f"{theirs.max_n:,.0f}",
                f"{line.max_n:,}",
                f"{line.max_n / theirs.max_n:.2f}",
                _short(n_ss),
                f"{line.certified:.0%}",
                f"{line.seconds:.3f}",
            ]
        )
    header = [
        "planner",
        "ε",
        "H",
        "max regret, paper",
        "ours",
        "median n, paper",
        "ours",
        "ratio",
        "max n, paper",
        "ours",
        "ratio",
        "n of Sparse Sampling",
        "certified",
        "seconds a plan",
    ]
    return [
        Heading("Table 4: fixed confidence"),
        Paragraph(
            "Calls n to the model until the planner stops by its own rule, and the regret of the "
            "action that it then takes. The paper's MDP-GapE and, unless it says otherwise, ours use "
            "heuristic thresholds, which certify nothing."
        ),
        Table(header, rows),
    ]


def _figure1(lines: Sequence[Accuracy], fits: dict[str, theory.Exponent]) -> list[Part]:
    crude = theory.crude_exponent(gamma=paper.GAMMA, actions=paper.ACTIONS, successors=paper.SUCCESSORS)
    rows = [
        ["MDP-GapE, paper", f"{paper.PAPER_EXPONENT}", ""],
        ["crude bound, 2 + log(BK) / log(1/γ)", f"{crude:.1f}", ""],
        *([name, f"{fit.value:.2f}", f"{fit.low:.2f} .. {fit.high:.2f}"] for name, fit in fits.items()),
    ]
    means = [
        [line.label, f"{line.epsilon:g}", f"{np.mean(list(line.samples.values())):,.0f}"]
        for line in lines
    ]
    return [
        Heading("Figure 1: growth with the accuracy"),
        Picture("figure1", "Calls to the model against 1/ε, with the paper's behind"),
        Paragraph(
            "The exponent x of n ~ (1/ε)^x: the slope of log(mean n) against log(1/ε), and its 95 % "
            "interval by the bootstrap over MDPs. (The paper's Figure 1 gives a slope of 3.9; the "
            "medians of its Table 4 alone have a slope of "
            f"{_slope_of_medians():.1f}.)"
        ),
        Table(["planner", "exponent", "95 % interval"], rows),
        Table(["planner", "ε", "mean n"], means),
    ]


def _slope_of_medians() -> float:
    table = sorted(paper.paper_table().items())
    x = [np.log(1.0 / epsilon) for epsilon, _ in table]
    y = [np.log(line.median_n) for _, line in table]
    return float(np.polyfit(x, y, 1)[0])


def _bounds(reproduction: Reproduction, lines: Sequence[Accuracy]) -> list[Part]:
    rows = []
    for bound in paper.theory_lines(reproduction):
        for line in lines:
            # The corollary is about MDP-GapE, whatever its thresholds.
            if line.epsilon == bound.epsilon and line.label.startswith("mdp-gape"):
                rows.append(
                    [
                        line.label,
                        f"{bound.epsilon:g}",
                        str(bound.horizon),
                        _short(bound.proven),
                        _short(bound.order),
                        f"{line.median_n:,.0f}",
                    ]
                )
    header = ["planner", "ε", "H", "Corollary 1, proven", "without constants", "measured"]
    return [
        Heading("Theory and reality"),
        Paragraph(
            "Calls to the model that the paper's Corollary 1 allows MDP-GapE with its proven "
            "thresholds, evaluated with the true gaps of each MDP, against what was measured (with "
            "the thresholds of Table 4): medians over the MDPs. The corollary states an order; the "
            "first number has the constants of the paper's proof, the second is the bare expression."
        ),
        Table(header, rows),
    ]


def _figure2(curves: Sequence[Curve]) -> list[Part]:
    published = paper.paper_curves()
    budgets = sorted({budget for curve in curves for budget in curve.points})
    means = []
    for budget in budgets:
        best = min(published, key=lambda name: published[name][budget].value)
        ours = [curve.points.get(budget) for curve in curves]
        means.append(
            [
                f"{budget:,}",
                f"{_short(published[best][budget].value)} ({best})",
                *("" if point is None else _short(point.value) for point in ours),
            ]
        )
    intervals = [
        [
            curve.label,
            f"{budget:,}",
            _interval(published.get(curve.planner, {}).get(budget)),
            _interval(point),
        ]
        for curve in curves
        for budget, point in curve.points.items()
    ]
    return [
        Heading("Figure 2: fixed budget"),
        Picture(
            "figure2",
            "Mean regret after n calls to the model, with its 95 % interval; dashed, the paper's. "
            "An open triangle marks a mean of 0.",
        ),
        Paragraph(
            "The horizon and the number of episodes follow from n as in the paper (BRUE takes a third "
            "of that horizon). Mean regret of the paper's best planner at each budget, and of ours:"
        ),
        Table(["n", "best of the paper", *(curve.label for curve in curves)], means),
        Paragraph("Each planner and its own curve in the paper, with 95 % intervals:"),
        Table(["planner", "n", "paper", "ours"], intervals),
    ]


def _interval(estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    return f"{_short(estimate.value)} ({_short(estimate.low)} .. {_short(estimate.high)})"


def _short(value: float) -> str:
    """Two digits and a power of ten."""
    digits, _, power = f"{value:.1e}".partition("e")
    return "0" if value == 0.0 else f"{digits}e{int(power)}"
