"""A Canopy search as the driver sees it: its arrays, how they grow, and how it is read."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.betting.planner import BettingSearch
from pacplan.algorithms.canopy.constants import CELLS, MOST_COORDINATES, NOTES, RESOLUTIONS, SHARED
from pacplan.algorithms.canopy.records import (
    ACTION_STATS,
    CELL,
    DRAWN,
    FRAME,
    NOTE,
    PAIR,
    SLOT,
    TASK,
    Search,
)
from pacplan.algorithms.canopy.settings import setup_of
from pacplan.algorithms.canopy.sharing import copy_shared
from pacplan.compiled.tiered import run
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

    derived = frozenset({"shapes", "keys", "point", "after"})

    def __init__(self, planner: "Canopy", query: Query, session: Session) -> None:
        model, actions = query.model, len(query.actions)
        horizon = planner.horizon_for(model, query.budget)
        setup = setup_of(planner, model, horizon, actions)
        task = np.zeros(1, TASK)
        task["policy"] = planner.policy is not None
        bets = setup.arrays
        arrays: dict[str, Any] = bets | {
            "task": task,
            "levels": setup.levels,
            "widths": np.zeros((actions, horizon), np.int64),
            "kept": np.zeros((actions, horizon), np.int64),
            "shapes": np.zeros((3, 2, horizon), np.int64),
            "tree_moments": bets["moments"].copy(),
            "tree_wealth": np.zeros((actions, *bets["wealth"].shape[1:])),
            "forced_tree_wealth": np.zeros((actions, *bets["forced_wealth"].shape[1:])),
            "frames": np.zeros(horizon, FRAME),
            "looks": np.zeros(actions),
            "paid": np.zeros(horizon),
            "action_stats": np.zeros(_FIRST_ROOM, ACTION_STATS),
            "draws": np.zeros(_FIRST_ROOM, DRAWN),
            "shared": np.zeros(SHARED, SLOT),
            "cells": np.zeros(CELLS, CELL),
            "notes": np.zeros(NOTES, NOTE),
            "keys": np.zeros(2 * RESOLUTIONS + 4, np.int64),
            "point": np.zeros(MOST_COORDINATES),
            "origin": np.zeros(MOST_COORDINATES),
            "extent": np.zeros(MOST_COORDINATES),
            "seed": np.zeros(4, np.uint64),
            "after": np.zeros(4, np.uint64),
        }
        super().__init__(
            planner, query, session, setup.scale, arrays, pair=PAIR, kind=Search, run=steps.work
        )
        self.memory.request(sum(array.nbytes for array in arrays.values()))

    def make_room(self, episodes: int) -> None:
        """Make room for a path with more actions and successors, and for another action to bet."""
        task = self.arrays["task"][0]
        self.extend("action_stats", int(task["stats"]))
        self.extend("draws", int(task["draws"]))
        self.extend("looks", int(task["actions"]))
        shared = self.arrays["shared"]
        if 2 * (int(task["shared"]) + self.horizon + 1) > len(shared):
            self.memory.request(2 * shared.nbytes)
            larger = np.zeros(2 * len(shared), SLOT)
            run(copy_shared, len(larger), shared, larger, int(task["number"]))
            self.arrays["shared"] = larger
        super().make_room(episodes)

    def estimates(self) -> NDArray[np.float64]:
        """Estimates of the root's actions; NaN for those never tried, whose estimates are a prior."""
        return np.where(self.root["trees"] > 0, self.in_units(self.root["estimate"]), np.nan)

    @property
    def best(self) -> int:
        return int(self.arrays["task"]["best"][0])

    def reader(self) -> Reader:
        """The root's actions have bounds, and the calls made for them."""
        if len(self.tree) > 0:
            self.tree.pairs["n"] = np.minimum(self.calls, MOST_COUNTED)
            self.tree.nodes["count"] = min(int(self.calls.sum()), MOST_COUNTED)
        return super().reader()
