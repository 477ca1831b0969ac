"""Pictures by Matplotlib: the intervals of a plan, and how its bounds closed in."""

import io
from base64 import b64encode
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from pacplan.core.words import at_most, short
from pacplan.views.evidence import Intervals

if TYPE_CHECKING:
    from pacplan.result import Plan

# From Okabe and Ito's palette, which colour-blind readers can tell apart.
_COLOURS = {"taken": "#0072B2", "challenger": "#D55E00", "other": "#8A8A8A"}


def library(name: str) -> Any:
    """A module of the extra `viz`."""
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise ImportError(f"pictures need {package}: pip install pacplan[viz]") from error


def intervals(plan: "Plan", ax: Any = None) -> Any:
    """Draw what a plan knows of each action: [lower, upper] if there are bounds, and estimates.

    Of many actions, the strongest are drawn. An action that was never seen has no estimate.

    Args:
        plan: the plan.
        ax: Matplotlib axes to draw in; by default those of a new figure.

    Returns:
        The axes.
    """
    known = Intervals(plan)
    axes = _axes(ax, (7.5, 1.6 + 0.3 * len(known.rows)))
    for at, row in enumerate(known.rows):
        colour = _COLOURS[row["role"]]
        if row["bounds"] is not None:
            axes.hlines(at, *row["bounds"], colors=colour, linewidth=5, alpha=0.45)
        if row["estimate"] is not None:
            axes.scatter(row["estimate"], at, color=colour, marker="D", s=28, zorder=3)
    # The gap is no more than what lies between these.
    for (role, value), bound, style in zip(known.guides, ("lower", "upper"), ("--", ":"), strict=False):
        axes.axvline(value, color=_COLOURS[role], linestyle=style, label=f"{bound} bound, {role}")
    axes.set_yticks(range(len(known.rows)), [_plain(row["name"]) for row in known.rows])
    axes.invert_yaxis()
    return _finished(axes, plan, known, xlabel="value of the action (◆ estimate)", ylabel="action")


def convergence(plan: "Plan", ax: Any = None) -> Any:
    """Draw how the bounds of a plan's actions closed in, against calls to the model.

    The action taken and its challenger (the largest upper bound among the others, which together make
    the gap) stand out.

    Args:
        plan: a plan with bounds.
        ax: Matplotlib axes to draw in; by default those of a new figure.

    Returns:
        The axes.

    Raises:
        ValueError: the plan has no bounds, or made hardly a call.
    """
    if plan.curve is None:
        raise ValueError("this planner has no bounds, so there is no convergence to draw")
    if len(plan.curve.samples) < 2:
        raise ValueError("the search stopped at once, so there is no convergence to draw")
    known = Intervals(plan)
    calls, lower, upper = plan.curve.samples, plan.curve.lower, plan.curve.upper
    axes = _axes(ax, (7.0, 3.6))
    for i, action in enumerate(plan.actions):
        role = known.role(i)
        style, label = {"color": _COLOURS[role], "linewidth": 1.0}, "_"
        if role != "other":
            style["linewidth"], label = 2.2, f"{_plain(action)}, {role}"
            axes.fill_between(calls, lower[:, i], upper[:, i], color=style["color"], alpha=0.12, lw=0)
        axes.plot(calls, upper[:, i], **style)
        axes.plot(calls, lower[:, i], label=label, **style)
    # The first calls show next to nothing.
    narrower = (upper - lower).min(axis=1) < 0.99 * (upper[0] - lower[0]).max()
    start = calls[max(0, int(np.argmax(narrower)) - 1)]
    axes.set(xscale="log", xlim=(max(start, 1), 1.05 * calls[-1]))
    return _finished(axes, plan, known, xlabel="calls to the model", ylabel="bounds on the value")


def convergence_picture(plan: "Plan") -> str:
    """The picture of convergence as the address of an image, or "" if there is nothing to draw.

    Raises:
        ImportError: Matplotlib is not installed.
    """
    if plan.curve is None or len(plan.curve.samples) < 2:
        return ""
    # The same plan gives the same picture.
    with library("matplotlib").rc_context({"svg.hashsalt": "pacplan"}):
        figure = library("matplotlib.figure").Figure((9.0, 3.6), layout="constrained")
        convergence(plan, figure.add_subplot())
        written = io.BytesIO()
        figure.savefig(written, format="svg", metadata={"Date": None})
    return f"data:image/svg+xml;base64,{b64encode(written.getvalue()).decode()}"


def _axes(ax: Any, size: tuple[float, float]) -> Any:
    """The axes given, or those of a new figure."""
    if ax is not None:
        return ax
    return library("matplotlib.pyplot").subplots(figsize=size, layout="constrained")[1]


def _finished(axes: Any, plan: "Plan", known: Intervals, **labels: str) -> Any:
    """The axes with a title: what is taken, against what, by which gap, after how many calls."""
    title = f"action {_plain(plan.action)} taken, no bounds"
    if plan.gap is not None:
        rival = "" if known.rival is None else f" against action {_plain(plan.actions[known.rival])}"
        title = f"action {_plain(plan.action)}{rival}: gap {at_most(plan.gap)}"
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    axes.set(**labels)
    axes.set_title(f"{title} after {plan.samples:,} calls", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _plain(thing: Any) -> str:
    """A state or action for Matplotlib, which would read dollar signs as mathematics."""
    return short(thing, 24).replace("$", r"\$")
