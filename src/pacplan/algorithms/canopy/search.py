"""A Canopy search as the driver sees it: its arrays, how they grow, and how it is read."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.betting.planner import BettingSearch
from pacplan.algorithms.betting.setup import Scale, betting_arrays, return_range, scale_of
from pacplan.algorithms.canopy import constants, records
from pacplan.algorithms.canopy.growth import copy_shared
from pacplan.compiled.tiered import run
from pacplan.engine import steps
from pacplan.engine.query import Query
from pacplan.engine.search_tree import Reader
from pacplan.engine.tree import LINKS, MOST_COUNTED
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
        scale = scale_of(model, planner.gamma, horizon)
        floor, kinds = return_range(planner.value_range, scale)[0], (records.SETTINGS, records.ARM)
        arrays: dict[str, Any]
        arrays = betting_arrays(planner, model, scale, kinds, actions, floor, scale.span)
        settings, task = arrays["settings"], np.zeros(1, records.TASK)
        below, above = constants.BELOW_SHARE * delta, (1.0 - constants.BELOW_SHARE) * delta
        settings["delta_tree"] = constants.ORDINARY_SHARE * above
        settings["delta_exploit"] = constants.ORDINARY_SHARE * below
        settings["delta_forced_tree"] = (1.0 - constants.ORDINARY_SHARE) * above
        settings["delta_forced"] = (1.0 - constants.ORDINARY_SHARE) * below
        settings["reserve"], settings["may_end"] = 1.0, model.may_end
        arrays["root"]["upper"], task["policy"] = scale.span, planner.policy is not None
        arrays |= {
            "task": task,
            "levels": _levels(planner, scale, model.may_end),
            "shapes": np.zeros((actions + 3, 2, horizon), np.int64),
            "tree_moments": arrays["moments"].copy(),
            "tree_wealth": np.zeros((actions, *arrays["wealth"].shape[1:])),
            "forced_tree_wealth": np.zeros((actions, *arrays["forced_wealth"].shape[1:])),
            "frames": np.zeros(horizon, records.FRAME),
            "looks": np.zeros(actions),
            "paid": np.zeros(horizon),
            "action_stats": np.zeros(_FIRST_ROOM, records.ACTION_STATS),
            "draws": np.zeros(_FIRST_ROOM, records.DRAWN),
            "shared": np.zeros(constants.SHARED, records.SLOT),
            "cells": np.zeros(constants.CELLS, records.CELL),
            "notes": np.zeros(constants.NOTES, records.NOTE),
            "keys": np.zeros(2 * constants.RESOLUTIONS + 4, np.int64),
            "point": np.zeros(constants.MOST_COORDINATES),
            "origin": np.zeros(constants.MOST_COORDINATES),
            "extent": np.zeros(constants.MOST_COORDINATES),
            "seed": np.zeros(4, np.uint64),
            "after": np.zeros(4, np.uint64),
        }
        engine: Any = {"pair": np.dtype(LINKS), "kind": records.Search, "run": steps.work}
        super().__init__(planner, query, session, scale, arrays, **engine)
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
            larger = np.zeros(2 * len(shared), records.SLOT)
            run(copy_shared, len(larger), shared, larger, int(task["number"]))
            self.arrays["shared"] = larger
        super().make_room(episodes)

    @property
    def best(self) -> int:
        return int(self.arrays["task"]["best"][0])

    def reader(self) -> Reader:
        """The root's actions have bounds, and the calls made for them."""
        if len(self.tree) > 0:
            self.tree.pairs["n"] = np.minimum(self.calls, MOST_COUNTED)
            self.tree.nodes["count"] = min(int(self.calls.sum()), MOST_COUNTED)
        return super().reader()


def _levels(planner: "Canopy", scale: Scale, may_end: bool) -> NDArray[Any]:
    """What is known by depth before the first call."""
    levels = np.zeros(len(scale.sigma), records.LEVEL)
    levels["span"] = span = scale.sigma[::-1]
    levels["ended"] = -scale.low / scale.width * span
    most = math.inf if planner.value_range is None else planner.value_range[1]
    known = (most - scale.low * span) / scale.width
    levels["cap"] = np.minimum(span, np.maximum(known, levels["ended"] if may_end else 0.0))
    levels["noise"], levels["curve"] = constants.FIRST_NOISE, constants.FIRST_CURVE
    levels["misfit"], levels["opened"] = constants.FIRST_NOISE, constants.OPENED
    levels["value"], levels["scatter"] = constants.FIRST_VALUE * span, (0.2 * span) ** 2
    return levels
