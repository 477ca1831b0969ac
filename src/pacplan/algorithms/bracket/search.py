"""A Bracket search as the driver sees it: what it starts from, how its arrays grow, how it is read.

In units in which a step pays between 0 and 1 (docs/bracket.md, "Units").
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pacplan.algorithms.betting.bets import NEWEST, STEADY
from pacplan.algorithms.betting.planner import BettingSearch
from pacplan.algorithms.betting.returns import FIRST_BET
from pacplan.algorithms.betting.setup import Scale, Setup, betting_setup
from pacplan.algorithms.bracket import constants
from pacplan.algorithms.bracket.pool import empty_pool, grown_pool
from pacplan.algorithms.bracket.records import (
    ARM,
    DECISION,
    LEVEL,
    NODE,
    PAIR,
    SCRATCH,
    SETTINGS,
    Search,
)
from pacplan.bounds.elementary import powers
from pacplan.bounds.product import opening, scales
from pacplan.engine.query import Query
from pacplan.engine.search_tree import Evidence, Reader
from pacplan.models.protocol import Model, Session

if TYPE_CHECKING:
    from pacplan.algorithms.bracket.bracket import Bracket


class BracketSearch(BettingSearch):
    """One search: the tree with its bets, the root's accounts, and the pool."""

    derived = frozenset({"opening", "stakes"})

    def __init__(self, planner: "Bracket", query: Query, session: Session) -> None:
        horizon, actions = planner.horizon_for(query.model, query.budget), len(query.actions)
        setup = setup_of(planner, query.model, horizon, actions)
        stakes, self._scale = len(setup.arrays["opening"]), setup.scale
        own: dict[str, Any] = {
            "bets": np.zeros((0, stakes)),
            "pool": empty_pool(horizon, planner.value is not None),
            "gaps": np.zeros((0, actions)),
            "decision": np.zeros(1, DECISION),
            "scratch": np.zeros(max(actions, stakes, horizon), SCRATCH),
        }
        told = planner.transitions == "deterministic"
        engine = {"pair": PAIR, "node": NODE, "kind": Search, "deterministic": told}
        super().__init__(planner, query, session, setup, own, **engine)

    def make_room(self, episodes: int) -> None:
        """Make room for bets, in the pool, for wider pairs and for another account."""
        self.extend("bets", len(self.tree.arrays.pairs))
        super().make_room(episodes)
        arrays, settings = self.arrays, self.arrays["settings"][0]
        arrays["pool"] = grown_pool(arrays["pool"], int(settings["most_actions"]), self.memory)
        # An episode can find a new outcome of the same pair at every step.
        self.extend("scratch", int(settings["widest"]) + self.horizon + 1)
        self.extend("gaps", len(arrays["wealth"]))

    def losses(self, action: int) -> NDArray[np.float64]:
        """By how much each other action may be better than this one, at most."""
        arm = self.root[action]
        apart: NDArray[np.float64] = self.root["upper"] - arm["lower"]
        if arm["exploits"] > FIRST_BET:
            apart = np.minimum(apart, self.arrays["gaps"][arm["account"]])
        return np.multiply(self._scale.width, apart)

    def verdicts(
        self, lower: NDArray[np.float64], upper: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Accounts that count for both sides know more of pairs of actions than the bounds do."""
        gaps, ruled_out = super().verdicts(self.root["lower"], self.root["upper"])
        if len(gaps) == 1:
            return gaps, ruled_out
        gaps *= self._scale.width
        for action in np.flatnonzero(self.root["exploits"] > FIRST_BET).tolist():
            losses = self.losses(action)
            losses[action] = -np.inf
            gaps[action] = losses.max()
            losses[action] = np.inf
            ruled_out |= losses < 0.0
        return gaps, ruled_out

    def reader(self) -> Reader:
        """Pairs hold the sum of their rewards, or the reward that was revealed, and an estimate."""
        return partial(_read, super().reader(), self._scale, bool(self.arrays["settings"]["told"][0]))


def _read(root: Reader, scale: Scale, told: bool, pair: Any, offered: Sequence[int]) -> Evidence:
    """What is known of a pair. Only those of the root have bounds."""
    n, total, depth = int(pair["n"]), float(pair["reward"]), len(offered) - 1
    seen = root(pair, offered) if depth == 0 else Evidence()
    if n == 0:
        return seen
    value = seen.value
    if depth > 0:
        value = scale.low * float(scale.sigma[~depth]) + scale.width * float(pair["estimate"])
    reward = scale.low + scale.width * (total if told else total / n)
    return replace(seen, value=value, reward=reward, reward_interval=(reward, reward) if told else None)


def setup_of(planner: Any, model: Model, horizon: int, actions: int) -> Setup:
    """The setup for H steps, and so many actions of the root."""
    newest, gamma = STEADY if horizon <= constants.STEADY_HORIZON else NEWEST, planner.gamma
    scale, arrays = betting_setup(planner, model, horizon, actions, (SETTINGS, ARM), newest=newest)
    settings = arrays["settings"]
    resolution = float(settings["resolution"][0])
    settings["value_goal"], settings["told"] = planner.goal == "value", planner.rewards != "unknown"
    settings["cut"] = constants.CUT if settings["epsilon"][0] > 0.0 else constants.ANYTIME_CUT
    settings["same_actions"] = model.same_actions
    settings["most_actions"] = max(actions, model.max_actions or 0)
    levels = _levels(scale, gamma, resolution)
    _share(settings, levels[:-1], planner, model)
    log_share = float(settings["log_share"][0])
    settings["kappa"] = kappa = constants.PENALTY / (log_share + float(levels["excess"][0]))
    settings["least"] = least = kappa * resolution
    # The range of what is bet on is at most this; lambda ends below SETTLED times its least.
    span, beyond = levels["span"][:-1], constants.SETTLED * least * gamma * levels["excess"][1:]
    chosen = scales(_largest_scale(span, beyond, gamma, constants.STAKES_OPEN * resolution))
    stakes = 1.0 + span[:, np.newaxis] * chosen
    return Setup(scale, arrays | {"levels": levels, "stakes": stakes, "opening": opening(chosen)})


def _share(settings: NDArray[Any], levels: NDArray[Any], planner: Any, model: Model) -> None:
    """Share delta out: docs/bracket.md, "Shares" and "Both sides at once". And predict outcomes."""
    successors = 1 if planner.transitions == "deterministic" else model.successors
    settings["learns"] = learns = successors != 1
    # Where the last step leads does not matter.
    depths, delta = len(levels) - 1 if learns else 0, planner.delta
    if planner.goal == "action":
        ball = (1.0 - constants.JOINT_SHARE) * delta
        process = (constants.JOINT_SHARE if depths > 0 else 1.0) * delta
        joint, below = (1.0 - constants.JOINT_BELOW) * process, constants.JOINT_BELOW * process
        apart = constants.JOINT_ABOVE
    else:
        above, below, apart = (1.0 - constants.BELOW) * delta, constants.BELOW * delta, 1.0
        ball = (1.0 - constants.PRODUCT_SHARE) * above
        joint = (constants.PRODUCT_SHARE if depths > 0 else 1.0) * above
    settings["apart"] = apart
    settings["log_joint"], settings["log_share"] = -math.log(joint), -math.log(apart * joint)
    settings["delta_exploit"] = constants.EXPLOIT_SHARE * below
    settings["delta_forced"] = (1.0 - constants.EXPLOIT_SHARE) * below
    # How outcomes are predicted: as one out of B, or as one seen before or new.
    if successors is None:
        settings["least_count"] = 1
        settings["discount"] = settings["fresher"] = constants.DISCOUNT
        settings["strength"] = settings["fresh"] = constants.STRENGTH
    else:
        settings["discount"], settings["fresh"], settings["strength"] = -0.5, 0.5, 0.5 * successors
    if depths > 0:
        # How many sets of transitions must hold: how many states a policy can reach in h steps.
        levels["price"] = -math.log(ball) + math.log(depths)
        if successors is not None:
            levels["price"] += np.arange(len(levels)) * math.log(successors)


def _levels(scale: Scale, gamma: float, resolution: float) -> NDArray[Any]:
    """Records of `LEVEL`, without the prices of sets of transitions."""
    span, horizon = scale.sigma[::-1], len(scale.sigma) - 1
    every = np.zeros(horizon + 1, LEVEL)
    every["span"] = span
    every["ended"] = -scale.low / scale.width * span
    levels, discount = every[:-1], powers(gamma, horizon)
    tolerance = min(constants.SOLVER_LEAST, constants.SOLVER_OPEN / horizon) * resolution
    levels["tolerance"] = tolerance / discount
    risk = np.maximum(powers(constants.RISK_DECAY, horizon), constants.LEAST_RISK)
    levels["cash"] = 1.0 - constants.RISK * risk
    levels["weight"] = 1.0 / discount
    kept = [-math.log(cash) for cash in levels["cash"][::-1]]
    levels["excess"] = np.cumsum(kept)[::-1] / discount
    return every


def _largest_scale(
    span: NDArray[np.float64], beyond: NDArray[np.float64], gamma: float, left_open: float
) -> float:
    """The scale of the last stake, such that all pairs of a path together leave at most this much open.

    A mean of numbers with range R = span + beyond is found to within R^2 / 4 (a - 1), if that is at
    most R / 4.
    """
    reach, discount, scale = span + beyond, powers(gamma, len(span)), 1.0
    while True:
        room = scale * span
        found = np.where(room >= reach, reach**2 / (4.0 * room), reach)
        if (found * discount).sum() <= left_open:
            return scale
        scale *= 2.0
