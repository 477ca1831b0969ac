"""The report of a reproduction: the paper's numbers beside ours, and what they stand for."""

import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from pacplan import envs, theory
from pacplan.algorithms import UCT
from pacplan.core.version import __version__
from pacplan.experiments import figures, paper, records
from pacplan.experiments.paper import ACTIONS, DELTA, GAMMA, SUCCESSORS, Accuracy, Reproduction
from pacplan.experiments.records import Record


def write_report(
    reproduction: Reproduction, rows: Sequence[Record], folder: Path, command: str
) -> None:
    """Write index.md, the figures, runs.csv and summary.csv into the folder."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    groups = records.write(folder, rows)
    lines, curves = paper.accuracies(reproduction, groups), paper.curves(reproduction, groups)
    fits = None
    if "figure1" in reproduction.parts and lines:
        fits = paper.exponents(lines)
        figures.figure1(lines, fits, folder / "figure1")
    if curves:
        figures.figure2(curves, folder / "figure2")
    budgets = sorted({budget for curve in curves for budget in curve.points})
    published = paper.paper_curves()
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba"))
    system = f"Python {platform.python_version()}, {packages}, {platform.system()}"
    found: dict[str, Any] = {
        "paper": paper,
        "reproduction": reproduction,
        "command": command,
        "runs": len(rows),
        "failed": [row for row in rows if row.error],
        "versions": f"pacplan {__version__}, {system} on {platform.machine()}",
        "lines": lines,
        "sparse_sampling": _sparse_sampling,
        "fits": fits,
        "crude": theory.crude_exponent(gamma=GAMMA, actions=ACTIONS, successors=SUCCESSORS),
        "bounds": [_bounds(reproduction, one) for one in lines if one.label.startswith("mdp-gape")],
        "curves": curves,
        "published": published,
        "best": {n: min(published, key=lambda name: published[name][n].value) for n in budgets},
        "exploration": UCT(gamma=GAMMA).exploration,
    }
    made = Environment(
        loader=PackageLoader("pacplan.experiments", "data"),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    made.filters["short"] = short
    (folder / "index.md").write_text(made.get_template("index.md.jinja").render(found), "utf-8")


def _sparse_sampling(line: Accuracy) -> float:
    """Calls that Sparse Sampling would make."""
    return theory.sparse_sampling_calls(
        epsilon=line.epsilon, horizon=line.horizon, actions=ACTIONS, successors=SUCCESSORS
    )


def _bounds(reproduction: Reproduction, line: Accuracy) -> tuple[Accuracy, float, float]:
    """Corollary 1 with and without its constants, in calls: medians over the MDPs."""
    question: Any = {"horizon": line.horizon, "epsilon": line.epsilon, "gamma": GAMMA, "delta": DELTA}
    models = [envs.garnet(seed=seed) for seed in reproduction.problem_seeds]
    found = [theory.corollary_1(model, **question) for model in models]
    proven, order = np.median([(bound.proven, bound.order) for bound in found], axis=0)
    return line, line.horizon * float(proven), line.horizon * float(order)


def short(value: float) -> str:
    """Two digits and a power of ten."""
    digits, _, power = f"{value:.1e}".partition("e")
    return "0" if value == 0.0 else f"{digits}e{int(power)}"
