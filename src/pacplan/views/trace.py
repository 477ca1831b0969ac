"""A search as it ran: a callback that remembers, and the picture of the bounds closing in."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacplan.core.keys import place
from pacplan.core.rivals import challenger as rival_of
from pacplan.core.words import at_most
from pacplan.engine.driver import Snapshot
from pacplan.views.style import CHALLENGER, OTHER, TAKEN, axes_for, plain


class Trace:
    """Remembers how a search went: `planner.plan(..., callback=trace)`.

    It holds one search, and starts over with the next one. Searches that run at the same time need one
    trace each.

    Attributes:
        snapshots: how the search stood, from its first episodes to its end, each after further calls.
    """

    def __init__(self) -> None:
        self.snapshots: list[Snapshot] = []

    def __call__(self, snapshot: Snapshot) -> None:
        """Remember a snapshot, and let the search go on.

        Raises:
            ValueError: it belongs to a search that began before the one the trace holds now.
        """
        held = self.snapshots[-1].search if self.snapshots else snapshot.search
        if snapshot.search < held:
            raise ValueError("two searches at the same time were given one trace; each needs its own")
        if snapshot.search > held:
            self.snapshots.clear()
        if self.snapshots and self.snapshots[-1].samples == snapshot.samples:
            # A deadline may end a search right after a snapshot, before another call.
            self.snapshots.pop()
        self.snapshots.append(snapshot)

    def __len__(self) -> int:
        """Number of snapshots."""
        return len(self.snapshots)

    @property
    def samples(self) -> NDArray[np.int64]:
        """Calls to the model by each snapshot."""
        return np.array([snapshot.samples for snapshot in self.snapshots], np.int64)

    @property
    def lower(self) -> NDArray[np.float64]:
        """Lower bounds, [snapshot, action]."""
        return self._bounds("lower")

    @property
    def upper(self) -> NDArray[np.float64]:
        """Upper bounds, [snapshot, action]."""
        return self._bounds("upper")

    def _bounds(self, name: str) -> NDArray[np.float64]:
        found = [getattr(snapshot, name) for snapshot in self.snapshots]
        if not found:
            raise ValueError("the trace is empty; pass it to a planner: plan(..., callback=trace)")
        if found[-1] is None:
            raise ValueError("this planner has no bounds, so there is no convergence to draw")
        return np.array(found)


def convergence(trace: Trace, ax: Any = None) -> Any:
    """Draw the bounds of the root's actions against calls to the model, up to the stop.

    The action taken and its challenger (the largest upper bound among the others, which together make
    the gap) stand out.

    Args:
        trace: the record of a search by a planner with bounds.
        ax: Matplotlib axes to draw in; by default those of a new figure.

    Returns:
        The axes.

    Raises:
        ValueError: the trace holds no bounds, or not a single call.
    """
    calls, lower, upper = trace.samples, trace.lower, trace.upper
    stop = trace.snapshots[-1]
    if stop.samples == 0:
        raise ValueError("the search stopped before its first call, so there is no convergence to draw")
    count = len(stop.actions)
    best = place(stop.action, stop.actions)
    names = {best: f"{plain(stop.action)}, taken"}
    challenger = rival_of(upper[-1], best)
    if challenger is not None:
        names[challenger] = f"{plain(stop.actions[challenger])}, its challenger"
    others = [i for i in range(count) if i not in names]
    axes = axes_for(ax, (8.0, 3.8))
    for i, name in names.items():
        colour = TAKEN if i == best else CHALLENGER
        axes.plot(calls, upper[:, i], color=colour, linewidth=2.2, zorder=3)
        axes.plot(calls, lower[:, i], color=colour, linewidth=2.2, zorder=3, label=name)
        axes.fill_between(calls, lower[:, i], upper[:, i], color=colour, alpha=0.12, linewidth=0)
    for i in others:
        axes.plot(calls, upper[:, i], color=OTHER, linewidth=1.0, zorder=2)
        # A label that begins with an underscore stays out of the legend.
        label = "others" if i == others[0] else "_"
        axes.plot(calls, lower[:, i], color=OTHER, linewidth=1.0, zorder=2, label=label)
    axes.axvline(stop.samples, color="black", linestyle=":", linewidth=1.2, label="stop")
    # The first calls show next to nothing.
    narrower = (upper - lower).min(axis=1) < 0.99 * (upper[0] - lower[0]).max()
    start = calls[max(0, int(np.argmax(narrower)) - 1)]
    axes.set(xscale="log", xlim=(start, 1.15 * stop.samples))
    axes.set(xlabel="calls to the model", ylabel="bounds on the value")
    title = f"action {plain(stop.action)}"
    if challenger is not None and stop.gap is not None:
        title += f" against action {plain(stop.actions[challenger])}: gap {at_most(stop.gap)}"
    axes.set_title(f"{title} after {stop.samples:,} calls", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(title="action", loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return axes
