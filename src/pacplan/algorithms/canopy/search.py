"""A Canopy search as the driver sees it: its records, what it starts from, and how it is read."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.canopy import units
from pacplan.algorithms.canopy.constants import (
    BELOW,
    CELLS,
    FIRST_CURVE,
    FIRST_NOISE,
    FIRST_VALUE,
    MOST_COORDINATES,
    NOTES,
    OPENED,
    ORDINARY_SHARE,
    PILOTS,
    RESOLUTIONS,
    SHARED,
)
from pacplan.algorithms.canopy.growth import copy_shared
from pacplan.algorithms.canopy.records import (
    ARM,
    CELL,
    CHANGING,
    CHOOSE,
    DECIDE,
    DRAW,
    DRAWN,
    FORCED_EPISODE,
    FRAME,
    GROW,
    LEVEL,
    LOOK,
    MARK,
    NOTE,
    PAIR,
    PLAY,
    RULES,
    SLOT,
    SPANS,
    UNIT,
    Search,
)
from pacplan.algorithms.common.confidence import tail
from pacplan.algorithms.common.grid import Grid, grid_of
from pacplan.algorithms.common.plans import within
from pacplan.algorithms.common.returns import (
    ANYTHING,
    FIRST_SPREAD,
    MOMENTS,
    NEWEST,
    check_returns,
    return_range,
)
from pacplan.bounds.elementary import powers
from pacplan.compiled.tiered import run
from pacplan.engine import steps
from pacplan.engine.driver import Snapshot
from pacplan.engine.query import Query
from pacplan.engine.restoring import MOST_COUNTED, check_states, require
from pacplan.engine.search import KernelSearch
from pacplan.engine.tree import NONE, Evidence, Reader
from pacplan.engine.values import step_range
from pacplan.models.knowledge import attach
from pacplan.models.protocol import Session

if TYPE_CHECKING:
    from pacplan.algorithms.canopy.planner import Canopy

# Room at first, for actions and successors of the nodes on a path.
_FIRST_ROOM = 256


class Task(NamedTuple):
    """What is asked: the planner's settings and the model's promises, in the user's units."""

    epsilon: float  # the gap to stop at
    delta: float
    gamma: float
    horizon: int
    reward_range: tuple[float, float]
    value_range: tuple[float, float]  # infinite if nothing is known
    may_end: bool


@dataclass(frozen=True, eq=False)
class Setting:
    """What a search starts from. A search copies what it writes to.

    Attributes:
        low: what 0 stands for, in the user's units.
        width: what 1 stands for, minus that.
        span: sigma_H, the largest value.
        rules: one record of `RULES`.
        levels: records of `LEVEL`.
        grid: of the bounds.
    """

    low: float
    width: float
    span: float
    rules: NDArray[Any]
    levels: NDArray[Any]
    grid: Grid


@lru_cache(maxsize=64)
def setting_of(task: Task) -> Setting:
    """The setting of a search.

    Raises:
        ValueError: epsilon is too small beside the range of values.
    """
    low, high = step_range(task.reward_range, task.may_end)
    width = high - low
    sigma = np.concatenate([[0.0], np.cumsum(powers(task.gamma, task.horizon))])
    span = float(sigma[-1])
    grid = grid_of(task.epsilon, span, width)
    floor, _ = return_range(task.value_range, low, width, span)
    levels = np.zeros(task.horizon + 1, LEVEL)
    levels["span"], levels["ended"] = sigma[::-1], -low / width * sigma[::-1]
    known = (task.value_range[1] - low * levels["span"]) / width
    levels["cap"] = np.minimum(
        levels["span"], np.maximum(known, levels["ended"] if task.may_end else 0.0)
    )
    levels["noise"], levels["curve"] = FIRST_NOISE, FIRST_CURVE
    levels["misfit"], levels["opened"] = FIRST_NOISE, OPENED
    levels["value"], levels["scatter"] = FIRST_VALUE * levels["span"], (0.2 * levels["span"]) ** 2
    return Setting(
        low=low,
        width=width,
        span=span,
        rules=_rules(task, low, width, floor, grid),
        levels=levels,
        grid=grid,
    )


def _rules(
    task: Task,
    low: float,
    width: float,
    floor: float,
    grid: Grid,
) -> NDArray[Any]:
    lowest, highest = task.reward_range
    below, above = BELOW * task.delta, (1.0 - BELOW) * task.delta
    rules = np.zeros(1, RULES)
    rules["gamma"], rules["horizon"], rules["may_end"] = task.gamma, task.horizon, task.may_end
    rules["epsilon"], rules["resolution"] = task.epsilon / width, grid.resolution
    rules["low"], rules["width"] = low, width
    rules["offset"], rules["slope"] = (lowest - low) / width, (highest - lowest) / width
    rules["delta_tree"] = ORDINARY_SHARE * above
    rules["delta_forced_tree"] = (1.0 - ORDINARY_SHARE) * above
    rules["delta_exploit"], rules["reserve"] = ORDINARY_SHARE * below, 1.0
    rules["delta_forced"] = (1.0 - ORDINARY_SHARE) * below
    rules["step"], rules["stride"] = grid.step, grid.stride
    rules["floor"], rules["least_return"], rules["most_return"] = floor, np.inf, -np.inf
    return rules


class CanopySearch(KernelSearch):
    """One search: the tree under way, the accounts of the root's actions, and what was learnt."""

    kernels = units
    derived = frozenset({"shapes", "keys", "point", "after"})
    growing = frozenset({"marks", "draws", "shared", "looks", "wealth", "forced_wealth"})
    changing = CHANGING
    spans = SPANS

    def __init__(self, planner: "Canopy", query: Query, session: Session) -> None:
        model, gamma = query.model, planner.gamma
        # If gamma is 0, nothing after the first step counts.
        horizon = 1 if gamma == 0.0 else planner.horizon_for(model, query.budget)
        super().__init__(query, session, PAIR, gamma=gamma, horizon=horizon, run=steps.work)
        attach(session, planner.value_bounds, planner.policy, planner.value)
        self._value_range = planner.value_range
        target = planner.epsilon
        if planner.target == "infinite":
            target -= tail(model, gamma, horizon)
        self.target = target
        self._setting = setting = setting_of(
            Task(
                epsilon=target,
                delta=planner.delta,
                gamma=gamma,
                horizon=horizon,
                reward_range=model.reward_range,
                value_range=planner.value_range or ANYTHING,
                may_end=model.may_end,
            )
        )
        actions = len(query.actions)
        self.tree.reserve(1, actions, self.room)
        self.root = np.zeros(actions, ARM)
        self.root["ceiling"] = math.ceil(setting.span / setting.rules["step"][0] - 1e-9)
        self.root["forced_ceiling"] = int(
            (setting.span - 1e-9) / (setting.rules["stride"][0] * setting.rules["step"][0]) + 1
        )
        self.root["due"] = PILOTS
        self._unit = np.zeros(1, UNIT)
        self._unit["policy"] = planner.policy is not None
        self._rules = setting.rules.copy()
        self._marks, self._draws = np.zeros(_FIRST_ROOM, MARK), np.zeros(_FIRST_ROOM, DRAWN)
        self._looks = np.zeros(actions)
        self._shared = np.zeros(SHARED, SLOT)
        self._wealth = np.zeros((1, setting.grid.points, len(NEWEST)))
        self._forced_wealth = np.zeros((1, setting.grid.forced_points, setting.grid.fractions))
        moments = np.zeros((actions, len(NEWEST)), MOMENTS)
        moments["spread"] = (FIRST_SPREAD * setting.span) ** 2
        moments["newest"] = NEWEST
        self._fixed: dict[str, Any] = {
            "rules": self._rules,
            "unit": self._unit,
            "levels": setting.levels.copy(),
            "root": self.root,
            "widths": np.zeros((actions, horizon), np.int64),
            "kept": np.zeros((actions, horizon), np.int64),
            "shapes": np.zeros((3, 2, horizon), np.int64),
            "moments": moments,
            "tree_moments": moments.copy(),
            "tree_wealth": np.zeros((actions, setting.grid.points, len(NEWEST))),
            "forced_tree_wealth": np.zeros(
                (actions, setting.grid.forced_points, setting.grid.fractions)
            ),
            "frames": np.zeros(horizon, FRAME),
            "paid": np.zeros(horizon),
            "cells": np.zeros(CELLS, CELL),
            "notes": np.zeros(NOTES, NOTE),
            "keys": np.zeros(2 * RESOLUTIONS + 4, np.int64),
            "point": np.zeros(MOST_COORDINATES),
            "origin": np.zeros(MOST_COORDINATES),
            "extent": np.zeros(MOST_COORDINATES),
            "seed": np.zeros(4, np.uint64),
            "after": np.zeros(4, np.uint64),
        }
        held = (self._wealth, self._forced_wealth, self._shared, *self._fixed.values())
        self.room.take(sum(array.nbytes for array in held))

    def kernel_state(self) -> Search:
        """What the kernels work on."""
        return Search(
            tree=self.tree.arrays(),
            problem=self.problem,
            calls=self.calls,
            report=self.reports,
            wealth=self._wealth,
            forced_wealth=self._forced_wealth,
            marks=self._marks,
            draws=self._draws,
            shared=self._shared,
            looks=self._looks,
            **self._fixed,
        )

    def reserve(self) -> int:
        """Make room for a path with more actions and successors, and for another action to bet."""
        unit, rules = self._unit[0], self._rules[0]
        self.room.extend(self._marks, int(unit["marks"]))
        self.room.extend(self._draws, int(unit["draws"]))
        self.room.extend(self._looks, int(unit["actions"]))
        if 2 * (int(unit["shared"]) + self.horizon + 1) > len(self._shared):
            self.room.take(2 * self._shared.nbytes)
            larger = np.zeros(2 * len(self._shared), SLOT)
            run(copy_shared, len(larger), self._shared, larger, int(unit["number"]))
            self._shared = larger
        for accounts, used in (
            (self._wealth, int(rules["bettors"])),
            (self._forced_wealth, int(rules["forcers"])),
        ):
            if used == len(accounts):
                self.room.extend(accounts, min(used + 1, len(self.actions)))
        return 1

    def sizes(self) -> dict[str, int]:
        """Also those of the grids, and the frames that are open."""
        grid, unit = self._setting.grid, self._unit[0]
        return super().sizes() | {
            "depths": self.horizon + 1,
            "grid": grid.points,
            "forced grid": grid.forced_points,
            "notes": int(unit["notes"]),
        }

    def check_restored(self) -> None:
        """Raise ValueError for a tree, an episode or a step of them that cannot be under way."""
        unit, root, fixed = self._unit[0], self.root, self._fixed
        require(len(self.tree.pairs) == len(self.actions), "the root")
        require(np.all(root["leaf"] > 0) and unit["root"] == self.root_state, "the root")
        h, leaf = np.arange(self.horizon), root["leaf"][:, np.newaxis]
        widths, kept = fixed["widths"], fixed["kept"]
        require(np.all(widths[h < leaf] >= 1), "the shape of a tree")
        opened = h + 1 < leaf  # Of the last level nothing is kept.
        require(np.all((kept >= 1) & (kept <= widths) | ~opened), "the shape of a tree")
        size, now = len(self._shared), self._shared["tree"]
        require(size >= SHARED and size & (size - 1) == 0, "shared values")
        require(np.all((now >= 0) & (now <= unit["number"])), "values of a tree to come")
        values = np.count_nonzero(now == unit["number"]) if unit["number"] else 0
        require(values <= unit["shared"] and 2 * unit["shared"] <= size, "shared values")
        require(np.isfinite([fixed["origin"], fixed["extent"]]).all(), "cells without an end")
        check_states(self, fixed["notes"]["state"][: int(unit["notes"])])
        if unit["phase"] != DECIDE:
            self._check_under_way()

    def _check_under_way(self) -> None:
        unit, levels, frames = self._unit[0], self._fixed["levels"], self._fixed["frames"]
        require(unit["start"] == 0 or unit["kind"] == FORCED_EPISODE, "another tree")
        require(unit["h"] < self.horizon, "steps after the last")
        require(unit["h"] > 0 or unit["state"] == self.root_state, "another beginning")
        check_states(self, [unit["state"]])
        offered = int(self.session.offered(np.array([unit["state"]]))[0])
        if unit["phase"] in (LOOK, PLAY):
            require(unit["play"] < offered and unit["look"] <= offered, "a step")
        if unit["phase"] == LOOK or unit["look"] > 0:
            require(unit["actions"] == offered <= len(self._looks), "a look ahead")
            require(unit["look"] < offered or unit["phase"] == CHOOSE, "a look ahead")
        if unit["phase"] != GROW:
            return
        start, leaf, at = int(unit["start"]), int(unit["leaf"]), int(unit["at"])
        planned = levels[:leaf]
        require(
            start < leaf and np.all((planned["kept"] >= 1) & (planned["kept"] <= planned["width"])),
            "the shape of a tree",
        )
        require(at == NONE or start <= at < leaf, "steps after the last")
        marks = draws = 0
        for h in range(start, at + 1):
            frame, kept = frames[h], int(levels[h]["kept"])
            count = int(frame["actions"])
            one = frame["only"] != NONE
            check_states(self, [frame["state"]], None if one else [count])
            require(count == 1 if one else h > 0, "the actions of a node")
            require(not one or h == start == 0, "the actions of a node")
            require(h > 0 or frame["state"] == self.root_state, "another beginning")
            require(frame["marks"] == marks and frame["draws"] == draws, "the place of a node")
            continues = h + 1 < leaf
            marks, draws = marks + count, draws + count * kept
            require(
                marks <= len(self._marks) and (not continues or draws <= len(self._draws)),
                "a node without room",
            )
            drawing, done = frame["phase"] == DRAW, frame["turn"] == count
            require(frame["rounds"] <= levels[h]["width"] and frame["turn"] <= count, "a node")
            if drawing:
                require(h == at and not done, "the turn of an action")
                continue
            require(frame["top"] < count and frame["chosen"] < count, "an action of a node")
            require(done if not continues else done or frame["child"] <= kept, "a successor")
            require(h == at or (not done and frame["child"] < kept), "a node that waits")
        drawn = self._draws[: draws if at != NONE else 0]
        check_states(self, drawn["state"][drawn["alive"]])

    def in_units(self, scaled: Any) -> Any:
        """Values of H steps in the user's units."""
        return self._setting.low * self._setting.span + self._setting.width * scaled

    def estimates(self) -> NDArray[np.float64]:
        """Estimates of the root's actions; NaN for those never tried, whose estimates are a prior."""
        return np.where(self.root["trees"] > 0, self.in_units(self.root["estimate"]), np.nan)

    def snapshot(self, seconds: float) -> Snapshot:
        """How the search stands.

        Raises:
            BrokenPromiseError: a return lay outside the range that the user gave.
        """
        check_returns(self._rules[0], self.in_units, self._value_range)
        lower, upper = self._bounds()
        return self.standing(int(self._unit[0]["best"]), seconds, lower, upper)

    def _bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        upper = (
            self.root["upper"] if len(self.tree) > 0 else np.full(len(self.actions), self._setting.span)
        )
        return self.in_units(self.root["lower"]), self.in_units(upper)

    def reader(self) -> Reader:
        """The root's actions have bounds, and the calls made for them."""
        if len(self.tree) > 0:
            self.tree.pairs["n"] = np.minimum(self.calls, MOST_COUNTED)
            self.tree.nodes["count"] = min(int(self.calls.sum()), MOST_COUNTED)
        lower, upper = self._bounds()
        return _Reader(lower, upper, within(self.estimates(), lower, upper))


@dataclass(frozen=True, eq=False)
class _Reader:
    """Reads a pair's record, an action of the root: its bounds and estimate, as the plan has them."""

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    values: NDArray[np.float64]

    def __call__(self, pair: Any, offered: Sequence[int]) -> Evidence:
        action = int(pair["action"])
        value = float(self.values[action])
        return Evidence(
            value=None if math.isnan(value) else value,
            lower=float(self.lower[action]),
            upper=float(self.upper[action]),
        )
