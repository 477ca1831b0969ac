"""A Canopy search as the driver sees it: its arrays, how they grow, and how it is read."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.betting.bets import NEWEST
from pacplan.algorithms.betting.planner import BettingSearch
from pacplan.algorithms.betting.setup import Scale, betting_setup
from pacplan.algorithms.canopy.constants import (
    BELOW_SHARE,
    CELLS,
    FIRST_CURVE,
    FIRST_NOISE,
    FIRST_VALUE,
    MOST_COORDINATES,
    NOTES,
    OPENED,
    ORDINARY_SHARE,
    RESOLUTIONS,
)
from pacplan.algorithms.canopy.records import (
    ACTION_STATS,
    ARM,
    CELL,
    DRAWN,
    FRAME,
    LEVEL,
    NOTE,
    PAIR,
    SETTINGS,
    TASK,
    Search,
)
from pacplan.engine import steps
from pacplan.engine.query import Query
from pacplan.engine.search_tree import Reader
from pacplan.engine.tree import MOST_COUNTED
from pacplan.models.protocol import Session

if TYPE_CHECKING:
    from pacplan.algorithms.canopy.canopy import Canopy

# Room at first, for actions and successors of the nodes on a path.
_FIRST_ROOM = 256


class CanopySearch(BettingSearch):
    """One search: the tree under way, the accounts of the root's actions, and what was learnt."""

    derived = frozenset({"keys", "point", "after"})

    def __init__(self, planner: "Canopy", query: Query, session: Session) -> None:
        model, actions, delta = query.model, len(query.actions), planner.delta
        horizon = planner.horizon_for(model, query.budget)
        setup = betting_setup(planner, model, horizon, actions, (SETTINGS, ARM), trees=True)
        (scale, arrays), task = setup, np.zeros(1, TASK)
        settings = arrays["settings"]
        below, above = BELOW_SHARE * delta, (1.0 - BELOW_SHARE) * delta
        settings["delta_tree"] = ORDINARY_SHARE * above
        settings["delta_exploit"] = ORDINARY_SHARE * below
        settings["delta_forced_tree"] = (1.0 - ORDINARY_SHARE) * above
        settings["delta_forced"] = (1.0 - ORDINARY_SHARE) * below
        settings["may_end"] = model.may_end
        arrays["root"]["upper"] = scale.sigma[-1]
        own: dict[str, Any] = {
            "task": task,
            "levels": _levels(settings, scale, model.may_end),
            "shapes": np.zeros((actions + 3, 2, horizon), np.int64),
            "tree_moments": arrays["moments"].copy(),
            "tree_wealth": np.full((actions, *arrays["wealth"].shape[1:]), 1.0 / len(NEWEST)),
            "forced_tree_wealth": np.ones((actions, *arrays["forced_wealth"].shape[1:])),
            "frames": np.zeros(horizon, FRAME),
            "looks": np.zeros(actions),
            "paid": np.zeros(horizon),
            "action_stats": np.zeros(_FIRST_ROOM, ACTION_STATS),
            "draws": np.zeros(_FIRST_ROOM, DRAWN),
            "cells": np.zeros(CELLS, CELL),
            "notes": np.zeros(NOTES, NOTE),
            "keys": np.zeros(RESOLUTIONS + 2, np.int64),
            "point": np.zeros(MOST_COORDINATES),
            "origin": np.zeros(MOST_COORDINATES),
            "extent": np.zeros(MOST_COORDINATES),
            "seed": np.zeros(4, np.uint64),
            "after": np.zeros(4, np.uint64),
        }
        super().__init__(planner, query, session, setup, own, pair=PAIR, kind=Search, run=steps.work)
        self.memory.request(sum(array.nbytes for array in self.arrays.values()))

    def make_room(self, episodes: int) -> None:
        """Make room for a path with more actions and successors, and for another action to bet."""
        task = self.arrays["task"][0]
        self.extend("action_stats", int(task["stats"]))
        self.extend("draws", int(task["draws"]))
        self.extend("looks", int(task["actions"]))
        super().make_room(episodes)

    @property
    def values(self) -> NDArray[np.float64]:
        """Estimates of the root's actions; NaN for those never tried, whose estimates are a prior."""
        return np.where(self.root["trees"] > 0, self.in_units(self.root["estimate"]), np.nan)

    def reader(self) -> Reader:
        """The root's actions have bounds, and the calls made for them."""
        if len(self.tree) > 0:
            self.tree.pairs["n"] = np.minimum(self.calls, MOST_COUNTED)
            self.tree.nodes["count"] = min(int(self.calls.sum()), MOST_COUNTED)
        return super().reader()


def _levels(settings: Any, scale: Scale, may_end: bool) -> NDArray[Any]:
    """What is known by depth before the first call."""
    levels = np.zeros(len(scale.sigma), LEVEL)
    levels["span"] = span = scale.sigma[::-1]
    levels["ended"] = -scale.low / scale.width * span
    known = (settings["most_value"] - scale.low * span) / scale.width
    levels["cap"] = np.minimum(span, np.maximum(known, levels["ended"] if may_end else 0.0))
    levels["noise"], levels["curve"] = FIRST_NOISE, FIRST_CURVE
    levels["misfit"], levels["opened"] = FIRST_NOISE, OPENED
    levels["value"], levels["scatter"] = FIRST_VALUE * span, (0.2 * span) ** 2
    return levels
