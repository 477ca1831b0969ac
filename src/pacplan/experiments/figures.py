"""The paper's two figures, ours in front and the paper's behind."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from pacplan.experiments.paper import PAPER_EXPONENT, PAPER_TABLE, Accuracy, Curve, paper_curves
from pacplan.theory import Estimate
from pacplan.views.pictures import library

# Okabe and Ito's palette, which colour-blind readers can tell apart.
_COLOURS = ("#000000", "#0072B2", "#CC79A7", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#999999")
_MARKERS = "osD^vP*X<>"
_GREY = "#777777"


def figure1(lines: Sequence[Accuracy], fits: Mapping[str, Estimate], stem: Path) -> None:
    """Calls to the model against 1/epsilon, to stem.png and stem.svg."""
    with _axes(stem, (7.2, 4.6), "1/ε", "calls to the model, n") as axes:
        paper = sorted(PAPER_TABLE.items(), reverse=True)
        inverse = np.array([1.0 / epsilon for epsilon, _ in paper])
        medians = [line.median_n for _, line in paper]
        axes.plot(inverse, medians, "_--", color=_GREY, markersize=12, label="paper: median (Table 4)")
        growth = f"paper: growth as (1/ε)$^{{{PAPER_EXPONENT}}}$"
        axes.plot(inverse, medians[0] * inverse**PAPER_EXPONENT, ":", color=_GREY, label=growth)
        labels = list(dict.fromkeys(line.label for line in lines))
        for label, colour, marker in zip(labels, cycle(_COLOURS), cycle(_MARKERS), strict=False):
            own = sorted((line for line in lines if line.label == label), key=lambda x: -x.epsilon)
            x = [1.0 / line.epsilon for line in own]
            samples = [line.samples for line in own]
            low, high = zip(*(np.quantile(n, [0.05, 0.95]) for n in samples), strict=True)
            fit = fits.get(label)
            growth = "" if fit is None else f", growth as (1/ε)$^{{{fit.value:.2f}}}$"
            axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
            means = [np.mean(n) for n in samples]
            axes.plot(x, means, color=colour, marker=marker, label=f"{label}: mean{growth}")
        axes.fill_between([], [], [], color=_GREY, alpha=0.3, linewidth=0, label="90 % of our MDPs")
        ticks = sorted({line.epsilon for line in lines} | set(PAPER_TABLE))
        axes.set_xticks([1.0 / e for e in ticks], [f"1/{e:g}" if e != 1.0 else "1" for e in ticks])
        axes.minorticks_off()
        axes.legend(loc="upper left", frameon=False)


def figure2(lines: Sequence[Curve], stem: Path) -> None:
    """Mean regret against the budget, to stem.png and stem.svg."""
    with _axes(stem, (9.2, 5.0), "budget: calls to the model, n", "mean simple regret") as axes:
        published = paper_curves()
        budgets = {budget for line in lines for budget in line.points}
        values = [p.value for line in lines for p in line.points.values() if p.value > 0.0]
        # Means of 0 go to the bottom: a logarithmic axis has no 0.
        floor = float(10.0 ** np.floor(np.log10(min(values, default=1e-4))))
        names = [line.planner for line in lines]
        for place, (line, colour) in enumerate(zip(lines, cycle(_COLOURS), strict=False)):
            if line.planner in published and line.planner not in names[:place]:
                behind = {n: p.value for n, p in published[line.planner].items() if n in budgets}
                style = {"color": colour, "linewidth": 1.3, "alpha": 0.7, "zorder": 1}
                axes.plot([*behind], [*behind.values()], "--", label=f"{line.planner}, paper", **style)
            # Side by side, so that intervals of different planners do not cover each other.
            x = np.array(list(line.points)) * 1.04 ** (place - (len(lines) - 1) / 2)
            mean, low, high = (
                np.maximum([getattr(point, name) for point in line.points.values()], floor)
                for name in ("value", "low", "high")
            )
            marker = _MARKERS[place % len(_MARKERS)]
            axes.plot(x, mean, color=colour, marker=marker, linewidth=2.0, label=f"{line.label}, ours")
            axes.vlines(x, low, high, color=colour, linewidth=1.0, alpha=0.6)
            none = x[[point.value == 0.0 for point in line.points.values()]]
            at_foot = np.full(len(none), floor)
            axes.plot(none, at_foot, "v", markersize=9, markerfacecolor="white", color=colour, zorder=4)
        axes.set_ylim(bottom=0.6 * floor)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)


@contextmanager
def _axes(stem: Path, size: tuple[float, float], x: str, y: str) -> Iterator[Any]:
    matplotlib = library("matplotlib")
    # The same picture gives the same file.
    with matplotlib.rc_context({"svg.hashsalt": "pacplan"}):
        figure = library("matplotlib.figure").Figure(figsize=size, layout="constrained")
        axes = figure.add_subplot(xscale="log", yscale="log", xlabel=x, ylabel=y)
        axes.grid(True, which="major", color="#dddddd", linewidth=0.6, zorder=0)
        axes.spines[["top", "right"]].set_visible(False)
        yield axes
        figure.savefig(stem.with_suffix(".png"), dpi=150)
        figure.savefig(stem.with_suffix(".svg"), metadata={"Date": None})
