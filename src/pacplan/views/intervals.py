"""The answer in one picture: the intervals of the root's actions."""

from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from pacplan.core.keys import place
from pacplan.core.rivals import challenger as rival_of
from pacplan.core.words import at_most
from pacplan.views.style import CHALLENGER, OTHER, TAKEN, axes_for, plain

if TYPE_CHECKING:
    from pacplan.result import Plan

# More names than this would overlap on the tallest figure that is drawn.
_MOST_NAMES = 40
_TALLEST = 12.0


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
    axes = axes_for(ax, (7.5, min(1.6 + 0.3 * count, _TALLEST)))
    best = place(plan.action, plan.actions)
    challenger = None if plan.upper is None else rival_of(plan.upper, best)
    colours = [TAKEN if i == best else CHALLENGER if i == challenger else OTHER for i in range(count)]
    places = np.arange(count)
    if plan.lower is not None and plan.upper is not None:
        axes.hlines(places, plan.lower, plan.upper, colors=colours, linewidth=5, alpha=0.45)
        if challenger is not None:
            # The gap is no more than what lies between these.
            label = f"lower bound of {plain(plan.action)}"
            axes.axvline(plan.lower[best], color=TAKEN, linestyle="--", label=label)
            label = f"upper bound of {plain(plan.actions[challenger])}"
            axes.axvline(plan.upper[challenger], color=CHALLENGER, linestyle=":", label=label)
            axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    seen = np.flatnonzero(~np.isnan(plan.values))
    axes.scatter(plan.values[seen], seen, c=[colours[i] for i in seen], marker="D", s=28, zorder=3)
    named = places[:: ceil(count / _MOST_NAMES)]
    axes.set_yticks(named, [plain(plan.actions[i]) for i in named])
    axes.set_ylim(count - 0.4, -0.6)
    axes.set(ylabel="action", xlabel="value of the action (◆ estimate)")
    axes.set_title(_title(plan, challenger), fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _title(plan: "Plan", challenger: int | None) -> str:
    taken = f"action {plain(plan.action)}"
    if plan.gap is None:
        return f"{taken} taken, no bounds"
    if challenger is None:
        return f"{taken}, the only one"
    against = f"{taken} against action {plain(plan.actions[challenger])}"
    return f"{against}: gap {at_most(plan.gap)}"
