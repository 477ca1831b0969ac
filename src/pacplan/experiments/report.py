"""The report of a reproduction: the paper's numbers beside ours, and what they stand for."""

import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np

from pacplan import envs, theory
from pacplan.algorithms import UCT, SmoothCruiser, SparseSampling, StOP, TrailBlazer
from pacplan.core.version import __version__
from pacplan.experiments import figures, paper, records
from pacplan.experiments.paper import ACTIONS, DELTA, GAMMA, SUCCESSORS, Accuracy, Curve, Reproduction
from pacplan.experiments.records import Estimate, Record

_THEORETICAL = (SparseSampling, SmoothCruiser, TrailBlazer, StOP)
# Calls for planners that would take too long, and the accuracy: the coarsest of the paper's table.
_ENOUGH, _QUICK_ENOUGH, _COARSE = 1_000_000, 10_000, 1.0


def write_report(reproduction: Reproduction, rows: Sequence[Record], folder: Path) -> None:
    """Write index.md, the figures, runs.csv and summary.csv into the folder."""
    records.write(folder, rows)
    parts = _how(reproduction, rows, folder)
    lines = paper.accuracies(reproduction, rows)
    if "table4" in reproduction.parts and lines:
        parts += _table4(lines)
    if "figure1" in reproduction.parts and lines:
        fits = paper.exponents(lines)
        figures.figure1(lines, fits, folder / "figure1")
        parts += _figure1(lines, fits)
    if lines:
        parts += _bounds(reproduction, lines)
    if "table4" in reproduction.parts and lines:
        parts += _attempts(reproduction)
    if curves := paper.curves(reproduction, rows):
        figures.figure2(curves, folder / "figure2")
        parts += _figure2(curves)
    (folder / "index.md").write_text("\n\n".join(parts) + "\n", "utf-8")


def _table(header: str, rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown; the first column is aligned left."""
    names = header.split(" | ")
    ruler = ["---", *["---:"] * (len(names) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [names, ruler, *rows])


def _picture(stem: str, caption: str) -> str:
    return f"![{caption}]({stem}.png)\n\n*{caption}*"


def _how(reproduction: Reproduction, rows: Sequence[Record], folder: Path) -> list[str]:
    seeds = reproduction.problem_seeds
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba"))
    parts = [
        "# The MDP-GapE paper's experiments, reproduced",
        "Planning in Markov Decision Processes with Gap-Dependent Sample Complexity (Jonsson, "
        "Kaufmann, Ménard, Darwiche Domingues, Leurent, Valko; NeurIPS 2020), section 5. The "
        f"{len(seeds)} random MDPs have 200 states, K = {ACTIONS} actions, B = {SUCCESSORS} "
        f"successors and rewards on half of the pairs; γ = {GAMMA}, δ = {DELTA}. A pair always pays "
        "its mean reward, but the planners are not told. Regret is measured in the infinite-horizon "
        "problem, by exact dynamic programming.",
        f"```sh\n{reproduction.command} --out {folder.as_posix()}\n```",
        f"MDPs have the seeds {seeds[0]} to {seeds[-1]}. runs.csv has the seed and the result of each "
        f"of the {len(rows):,} runs, summary.csv their means. pacplan {__version__}, Python "
        f"{platform.python_version()}, {packages}, {platform.system()} on {platform.machine()}. The "
        "same command gives the same numbers, except for times.",
    ]
    if failed := [row for row in rows if row.error]:
        parts.append(
            f"{len(failed)} of the {len(rows)} runs failed and are left out below; the first: "
            f"{failed[0].settings}: {failed[0].error}"
        )
    return parts


def _table4(lines: Sequence[Accuracy]) -> list[str]:
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
                *_compared(theirs.max_n, line.samples.max()),
                *(_short(n_ss), f"{line.certified:.0%}", f"{line.seconds:.3f}"),
            ]
        )
    return [
        "## Table 4: fixed confidence",
        "Calls n to the model until the planner stops by its own rule, and the regret of its action. "
        "The paper's numbers are those of its MDP-GapE in every row, whichever planner of ours the row "
        "is about. The paper's MDP-GapE and, unless it says otherwise, ours use heuristic thresholds, "
        "which certify nothing.",
        _table(
            "planner | ε | H | max regret, paper's MDP-GapE | ours | median n, paper's MDP-GapE | ours "
            "| ratio | max n, paper's MDP-GapE | ours | ratio | n of Sparse Sampling | certified "
            "| seconds a plan",
            rows,
        ),
        "Our MDP-GapE takes fewer calls than the paper's largely because the paper's text bounds the "
        "mean reward of a state and action, and so do we, but the published runs bounded it for each "
        "state, action and successor by itself (benchmarks/rewards_per_successor.py).",
    ]


def _question(line: Accuracy) -> list[str]:
    return [line.label, f"{line.epsilon:g}", str(line.horizon)]


def _compared(theirs: float, ours: float) -> list[str]:
    return [f"{theirs:,.0f}", f"{ours:,.0f}", f"{ours / theirs:.2f}"]


def _figure1(lines: Sequence[Accuracy], fits: dict[str, theory.Exponent]) -> list[str]:
    crude = theory.crude_exponent(gamma=GAMMA, actions=ACTIONS, successors=SUCCESSORS)
    return [
        "## Figure 1: growth with the accuracy",
        _picture("figure1", "Calls to the model against 1/ε, with the paper's behind"),
        "The exponent x of n ~ (1/ε)^x: the slope of log(mean n) against log(1/ε), and its 95 % "
        "interval by the bootstrap over MDPs.",
        _table(
            "planner | exponent | 95 % interval",
            [
                ["MDP-GapE, paper", f"{paper.PAPER_EXPONENT}", ""],
                ["crude bound, 2 + log(BK) / log(1/γ)", f"{crude:.1f}", ""],
                *([name, f"{f.value:.2f}", f"{f.low:.2f} .. {f.high:.2f}"] for name, f in fits.items()),
            ],
        ),
        _table(
            "planner | ε | mean n",
            [[line.label, f"{line.epsilon:g}", f"{line.samples.mean():,.0f}"] for line in lines],
        ),
    ]


def _bounds(reproduction: Reproduction, lines: Sequence[Accuracy]) -> list[str]:
    models = [envs.garnet(seed=seed) for seed in reproduction.problem_seeds]
    rows = []
    for line in lines:
        if line.label.startswith("mdp-gape"):
            horizon, epsilon = line.horizon, line.epsilon
            found = [
                theory.corollary_1(model, gamma=GAMMA, delta=DELTA, horizon=horizon, epsilon=epsilon)
                for model in models
            ]
            proven = horizon * float(np.median([bound.proven for bound in found]))
            order = horizon * float(np.median([bound.order for bound in found]))
            rows.append([*_question(line), _short(proven), _short(order), f"{line.median_n:,.0f}"])
    return [
        "## Theory and reality",
        "Calls to the model that the paper's Corollary 1 allows MDP-GapE with its proven thresholds, "
        "evaluated with the true gaps of each MDP, against what was measured (with the thresholds of "
        "Table 4): medians over the MDPs. The corollary states an order; the first number has the "
        "constants of the paper's proof, the second is the bare expression.",
        _table("planner | ε | H | Corollary 1, proven | without constants | measured", rows),
    ]


def _attempts(reproduction: Reproduction) -> list[str]:
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
    return [
        "## The other planners with a guarantee",
        "The paper calls them theoretical, and ran none of them to its end. Here each was given "
        f"{enough:,} calls on the first MDP, at ε = {_COARSE:g}. Calls predicted are those that the "
        "planner itself computes before the first one, with all constants; SmoothCruiser's are for the "
        "problem regularised by entropy.",
        _table("planner | calls predicted | calls made | stopped by", rows),
        *words,
    ]


def _figure2(curves: Sequence[Curve]) -> list[str]:
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
    return [
        "## Figure 2: fixed budget",
        _picture(
            "figure2",
            "Mean regret after n calls to the model, with its 95 % interval; dashed, the paper's. An "
            "open triangle marks a mean of 0.",
        ),
        "The horizon and the number of episodes τ follow from n as in the paper (BRUE takes a third of "
        "that horizon). Bounds of MDP-GapE, none of them proven: those of the paper's text (budget) "
        "are of log τ for rewards and transitions; those of its published runs, which made its curve, "
        "of log τ and 0.1 log τ (published); ours, which we tuned, of 0.2 log τ for both (sharp).",
        f"UCT's exploration constant, {UCT(gamma=GAMMA).exploration:g}, is tuned as well "
        "(benchmarks/uct_constant.py); the textbook's is exploration=2**0.5. The paper's curves "
        "of UCT and BRUE show other rules than these names stand for, so ours do not reproduce them "
        "(docs/experiments.md).",
        "Mean regret of the paper's best planner at each budget, and of ours:",
        _table(" | ".join(["n", "best of the paper", *(curve.label for curve in curves)]), means),
        "Each planner and its own curve in the paper, with 95 % intervals:",
        _table("planner | n | paper | ours", intervals),
    ]


def _interval(estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    return f"{_short(estimate.value)} ({_short(estimate.low)} .. {_short(estimate.high)})"


def _short(value: float) -> str:
    """Two digits and a power of ten."""
    digits, _, power = f"{value:.1e}".partition("e")
    return "0" if value == 0.0 else f"{digits}e{int(power)}"
