"""Pictures by Matplotlib: the intervals of a plan, and how its bounds closed in."""

import io
import os
import re
from importlib import import_module
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pacplan.core.keys import place
from pacplan.core.words import at_most, short
from pacplan.views.evidence import challenger

if TYPE_CHECKING:
    from pacplan.result import Plan

# From Okabe and Ito's palette, which colour-blind readers can tell apart.
TAKEN, CHALLENGER, OTHER = "#0072B2", "#D55E00", "#8A8A8A"
# More names than this would overlap on the tallest figure that is drawn.
_MOST_NAMES = 40
_TALLEST = 12.0


def library(name: str) -> Any:
    """A module of the extra `viz`."""
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise ImportError(f"pictures need {package}: pip install pacplan[viz]") from error


def check_target(path: str | os.PathLike[str], what: str, example: str) -> Path:
    """Raise ValueError unless a file can be written to this path; nothing is written yet."""
    target = Path(path)
    if target.is_dir() or not target.parent.is_dir():
        reason = "is a folder" if target.is_dir() else f"lies in {target.parent}, which is no folder"
        raise ValueError(f"cannot write the {what}: {target} {reason}; name a file such as {example}")
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise ValueError(f"cannot write the {what}: no permission to write {target}")
    return target


def intervals(plan: "Plan", ax: Any = None) -> Any:
    """Draw what a plan knows of each action: [lower, upper] if there are bounds, and estimates.

    An action that was never seen has no estimate.

    Args:
        plan: the plan.
        ax: Matplotlib axes to draw in; by default those of a new figure.

    Returns:
        The axes.
    """
    count = len(plan.actions)
    best, rival, colours = _roles(plan)
    axes = _axes(ax, (7.5, min(1.6 + 0.3 * count, _TALLEST)))
    places = np.arange(count)
    if plan.lower is not None and plan.upper is not None:
        axes.hlines(places, plan.lower, plan.upper, colors=colours, linewidth=5, alpha=0.45)
        if rival is not None:
            # The gap is no more than what lies between these.
            label = f"lower bound of {_plain(plan.action)}"
            axes.axvline(plan.lower[best], color=TAKEN, linestyle="--", label=label)
            label = f"upper bound of {_plain(plan.actions[rival])}"
            axes.axvline(plan.upper[rival], color=CHALLENGER, linestyle=":", label=label)
            axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    seen = np.flatnonzero(~np.isnan(plan.values))
    axes.scatter(plan.values[seen], seen, c=[colours[i] for i in seen], marker="D", s=28, zorder=3)
    named = places[:: ceil(count / _MOST_NAMES)]
    axes.set_yticks(named, [_plain(plan.actions[i]) for i in named])
    axes.set_ylim(count - 0.4, -0.6)
    axes.set(ylabel="action", xlabel="value of the action (◆ estimate)")
    axes.set_title(_title(plan, rival), fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


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
    best, rival, colours = _roles(plan)
    calls, lower, upper = plan.curve.samples, plan.curve.lower, plan.curve.upper
    axes = _axes(ax, (7.0, 3.6))
    named = {rival: "its challenger", best: "taken"}
    for i, action in enumerate(plan.actions):
        style = {"color": colours[i], "linewidth": 2.2 if i in named else 1.0}
        label = f"{_plain(action)}, {named[i]}" if i in named else "_"
        if i in named:
            shade = {"color": colours[i], "alpha": 0.12, "linewidth": 0}
            axes.fill_between(calls, lower[:, i], upper[:, i], **shade)
        axes.plot(calls, upper[:, i], **style)
        axes.plot(calls, lower[:, i], label=label, **style)
    # The first calls show next to nothing.
    narrower = (upper - lower).min(axis=1) < 0.99 * (upper[0] - lower[0]).max()
    start = calls[max(0, int(np.argmax(narrower)) - 1)]
    axes.set(xscale="log", xlim=(max(start, 1), 1.05 * calls[-1]))
    axes.set(xlabel="calls to the model", ylabel="bounds on the value")
    axes.set_title(f"{_title(plan, rival)} after {plan.samples:,} calls", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(title="action", loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return axes


def convergence_svg(plan: "Plan") -> str:
    """The picture of convergence as an element of a page, in the colour of its text, or "".

    Raises:
        ImportError: Matplotlib is not installed.
    """
    if plan.curve is None or len(plan.curve.samples) < 2:
        return ""
    # The same plan gives the same picture.
    with library("matplotlib").rc_context({"svg.fonttype": "none", "svg.hashsalt": "pacplan"}):
        figure = library("matplotlib.figure").Figure((7.0, 3.6), layout="constrained")
        axes = convergence(plan, figure.add_subplot())
        axes.patch.set_visible(False)
        axes.set_title("")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2, frameon=False)
        written = io.StringIO()
        figure.savefig(written, format="svg", transparent=True)
    text = written.getvalue()
    text = text[text.index("<svg") :].replace("#000000", "currentColor").replace("xlink:href", "href")
    for role, colour in (("taken", TAKEN), ("challenger", CHALLENGER), ("other", OTHER)):
        text = text.replace(colour.lower(), f"var(--{role})")  # Light or dark, as the page is.
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", text, flags=re.DOTALL)
    return re.sub(r'<svg [^>]*?(viewBox="[^"]*")[^>]*>', r'<svg \1 role="img">', text, count=1)


def _roles(plan: "Plan") -> tuple[int, int | None, list[str]]:
    """The action taken, its challenger, and the colours of all actions."""
    best = place(plan.action, plan.actions)
    rival = None if plan.upper is None else challenger(plan.upper, best)
    colours = {best: TAKEN, rival: CHALLENGER}
    return best, rival, [colours.get(i, OTHER) for i in range(len(plan.actions))]


def _title(plan: "Plan", rival: int | None) -> str:
    taken = f"action {_plain(plan.action)}"
    if plan.gap is None:
        return f"{taken} taken, no bounds"
    if rival is None:
        return f"{taken}, the only one"
    return f"{taken} against action {_plain(plan.actions[rival])}: gap {at_most(plan.gap)}"


def _axes(ax: Any, size: tuple[float, float]) -> Any:
    """The axes given, or those of a new figure."""
    if ax is not None:
        return ax
    return library("matplotlib.pyplot").subplots(figsize=size, layout="constrained")[1]


def _plain(thing: Any) -> str:
    """A state or action for Matplotlib, which would read dollar signs as mathematics."""
    return short(thing, 24).replace("$", r"\$")
