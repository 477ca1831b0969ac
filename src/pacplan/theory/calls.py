"""How many calls Bracket needs at most: the theorem of docs/calls.md, evaluated on a known MDP.

Names are those of that page. In units in which a step pays between 0 and 1.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pacplan import exact
from pacplan.algorithms.betting.setup import FORCED_GRID, FORCED_MARGIN
from pacplan.algorithms.bracket import constants
from pacplan.algorithms.bracket.bracket import Bracket
from pacplan.algorithms.bracket.setup import Setup, setup_of
from pacplan.core import checks
from pacplan.models.protocol import Table

# Lemma A: 2 R s / (l n) + 2.5 sqrt(v kappa / n) + 2.5 s kappa / n.
SLOW, ROOT, QUICK = 2.0, 2.5, 2.5
# Lemma B: 1.4 sum w + 2 max w log(1/nu).
EACH, ALL = 1.4, 2.0
# The part of xi that is spared for each of: the margins of Lemma E, actions forced less than T_L times,
# and what lambda adds before it has settled.
SPARED = 0.1
# S >= LEAST_SURPLUS xi epsilon T, and S >= xi sum_t E_t(epsilon + D_t) / OVERALL.
LEAST_SURPLUS, OVERALL = 0.7, 2.5
# E_t Z^c summed is at most this many times the sum of Z^c, up to a constant.
TYPICAL = 1.6
# The part of tau that is held against what falls as 1/n; the rest is for what falls as 1/sqrt(n).
TAU_QUICK = 0.125

# Gaps along a path are rounded down to this part of epsilon, so that paths can be counted together.
_ROUNDING = 1.0 / 64.0

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class BracketCalls:
    """A bound on the calls of Bracket.

    Attributes:
        calls: with probability at least 1 - 2 delta the answer is right, and there are no more calls.
        forced: the same for forced episodes; the larger of the three numbers that follow.
        tree: forced episodes for which surplus can be left in the tree.
        account: those in which some account of the root may not yet be full.
        settling: those needed to make up for lambda before it has settled.
    """

    calls: float
    forced: float
    tree: float
    account: float
    settling: float


def bracket_calls(
    model: Table, state: int | None = None, *, gamma: float, horizon: int, epsilon: float, delta: float
) -> BracketCalls:
    """The most calls that Bracket needs, by the theorem of docs/calls.md.

        100 H T,  T = max( 10 K T_L, 10 A / (xi epsilon), 4.6 / (xi epsilon) [ Psi + Vb log(1/nu) ] )

    with nu = delta/4. Nothing is declared, and equal states are not merged. Every history of the tree
    counts with its own gaps. The constants are those of the proof: see the page for how far they are
    from what is measured.

    Raises:
        ValueError: an argument out of range, a state that the model does not have, or an epsilon too
            small beside the range of values.
        TypeError: an argument of the wrong type, or a model without tables.
    """
    exact.check_tables(model)
    planner = Bracket(
        epsilon=checks.positive("epsilon", epsilon), delta=delta, gamma=gamma, horizon=horizon
    )
    discount, steps = planner.gamma, planner.horizon_for(model)
    root = model.initial_state() if state is None else state
    actions = len(model.actions(root))
    theorem = _Theorem(setup_for(planner, model), discount, actions, planner.delta / 4.0)
    if actions == 1 or theorem.epsilon >= theorem.sigma[0]:
        return BracketCalls(0.0, 0.0, 0.0, 0.0, 0.0)
    gaps = exact.gaps(model, gamma=discount, horizon=steps) / theorem.width
    tree, _ = theorem.tree_episodes(_path_gaps(model, root, gaps, discount, theorem.epsilon))
    account = theorem.account_episodes() * actions / SPARED
    settling = theorem.settling() * actions / (SPARED * theorem.room * theorem.epsilon)
    forced = math.floor(max(tree, account, settling)) + 1.0
    return BracketCalls(constants.FORCED_EVERY * steps * forced, forced, tree, account, settling)


def setup_for(planner: Bracket, model: Table) -> Setup:
    """Bracket's own setup: shares of delta, stakes, cash, grids."""
    assert model.max_actions is not None
    return setup_of(planner, model, planner.horizon_for(model), model.max_actions)


def _path_gaps(
    model: Table, root: int, gaps: Floats, gamma: float, epsilon: float
) -> list[tuple[Floats, Floats]]:
    """All pairs of the tree of histories by depth: the gaps D_e along the way to them, and how many.

    Histories that reach the same state with the same D, rounded down, are counted together. Rounding
    down makes the bound larger.
    """
    _, probabilities, successors = model.sparse()
    grain = _ROUNDING * epsilon
    states = np.array([root])
    behind, counts = np.zeros(1), np.ones(1)
    found = []
    for h in range(len(gaps)):
        at = ... if model.steps is None else h
        along = behind[:, np.newaxis] + gamma**h * gaps[h, states]
        offered = np.isfinite(along)
        many = np.broadcast_to(counts[:, np.newaxis], along.shape)
        found.append((along[offered], many[offered]))
        leads = offered[..., np.newaxis] & (probabilities[at][states] > 0.0)
        rows, columns, _ = np.nonzero(leads)
        bins = np.floor(along[rows, columns] / grain + 1e-9).astype(np.int64)
        width = int(bins.max(initial=0)) + 1
        reached, place = np.unique(successors[at][states][leads] * width + bins, return_inverse=True)
        counts = np.bincount(place, many[rows, columns], len(reached)).astype(np.float64)
        states, behind = reached // width, grain * (reached % width)
    return found


class _Theorem:
    """The numbers of the theorem that depend on the setup. Arrays are by depth."""

    def __init__(self, setup: Setup, gamma: float, actions: int, chance: float) -> None:
        arrays = setup.arrays
        levels, settings = arrays["levels"][:-1], arrays["settings"][0]
        depths = np.arange(len(levels))
        discount = np.power(gamma, depths)
        self.epsilon, self.width = float(settings["resolution"]), setup.scale.width
        self.chance, self.actions = chance, actions  # nu, and K of the root
        self.sigma = setup.scale.sigma[:0:-1]  # sigma_(H-h)
        self.excess = np.append(levels["excess"][1:] * discount[1:], 0.0)  # C_(h+1)
        self.evidence = float(settings["log_share"]) + float(levels["excess"][0])  # Lambda
        self.penalty = float(settings["kappa"]) * self.evidence  # varpi: lambda_0 Lambda / epsilon
        open_ = constants.SETTLED * self.penalty + constants.STAKES_OPEN + constants.SOLVER_OPEN
        self.room = 1.0 - open_ - FORCED_GRID - 2.0 * FORCED_MARGIN  # xi
        # log(q/alpha), of the wealth that proves a point of a forced account
        self.proof = math.log(
            arrays["forced_wealth"].shape[2] * actions / float(settings["delta_forced"])
        )
        successors = int(settings["strength"] * 2.0)  # B
        weight = float(np.exp(arrays["opening"].min())) / len(arrays["opening"])
        stake = -np.log((1.0 - levels["cash"]) * weight)  # kappa_h
        least = float(settings["least"])  # lambda_0
        learns, settled = bool(settings["learns"]), constants.SETTLED * least
        self.most = discount * self.sigma + settled * self.excess  # V_h
        self.reach = discount * (self.sigma if learns else 1.0)  # gamma^h rho_h, of what is bet on
        # O_h, of mean d - d now; 0 where there is no ball
        ball = learns & (depths < len(depths) - 1)
        self.swing = np.where(ball, discount * (self.sigma - 1.0) + 0.5 * settled * self.excess, 0.0)
        self.quick = discount * self.sigma * (SLOW * self.reach / least + QUICK * stake)  # x_h
        # What 8/7 Y_e^2 is on average over e: a constant, and the factor of log(1 + N).
        first, second = self.reach**2 / (1.0 - TAU_QUICK), 8.0 * self.swing**2 / (1.0 - TAU_QUICK)
        self.constant = first * (ROOT**2 * stake + 4.0 * EACH)
        self.constant += second * (levels["price"] + 2.0 * math.log(successors) + EACH)
        self.slope = 2.0 * first + (successors - 1.0) * second

    def account_episodes(self) -> float:
        """T_L: after this many forced episodes an account has proven what its returns are worth."""
        wealth = max(27.0, 6.0 / self.room) * 4.0 / FORCED_MARGIN * self.proof
        chance = math.log(self.actions / self.chance) / (2.0 * (self.room / 15.0) ** 2)
        return float((self.sigma[0] / self.epsilon) ** 2 * max(wealth, chance))

    def settling(self) -> float:
        """A / K: what an action's lambda adds to its surplus until it has settled."""
        sigma, epsilon = float(self.sigma[0]), self.epsilon
        growth, scale = constants.REBUILD_GROWTH, constants.SETTLING_CALLS
        largest = constants.LARGEST
        settled = growth * scale * (largest * sigma / epsilon) ** 2
        changes = 2.0 + math.log(settled) / math.log(growth)
        total = largest * (1.0 + 2.0 * scale * math.sqrt(growth) * largest)
        total *= constants.NEAR * self.penalty * (1.0 + float(self.excess.sum()) / self.evidence)
        return total * sigma**2 / epsilon + changes * sigma

    def tree_episodes(self, paths: list[tuple[Floats, Floats]]) -> tuple[float, Floats]:
        """The largest T with T <= 4.6 / (xi epsilon) [ Psi(T) + Vb log(1/nu) ], and the best omega.

        The right side grows as log T; omega, which makes its largest terms smallest, is chosen for the
        last T, some times over.
        """
        forced = 1e6
        sums = np.array([(counts / (self.epsilon + gaps)).sum() for gaps, counts in paths])
        for _ in range(4):
            calls = math.log1p(constants.FORCED_EVERY * forced)
            root = np.sqrt(sums * (self.constant + self.slope * calls))
            omega = root / root.sum()
            constant, slope = self.right_side(paths, omega)
            before, forced = 0.0, constant
            while forced > before * (1.0 + 1e-12):
                before = forced
                forced = constant + slope * math.log1p(constants.FORCED_EVERY * before)
        return forced, omega

    def right_side(self, paths: list[tuple[Floats, Floats]], omega: Floats) -> tuple[float, float]:
        """It is the first number plus the second times log(1 + N)."""
        log_chance = -math.log(self.chance)
        tau = self.room / (2.0 * OVERALL) * omega
        total, growth = float(self.most.sum()) * log_chance, 0.0
        for h, (gaps, counts) in enumerate(paths):
            threshold = tau[h] * (self.epsilon + gaps)
            left = threshold < self.most[h]
            threshold, counts = threshold[left], counts[left]
            total += self.most[h] * float(counts.sum())
            total += self.quick[h] * float(counts @ np.log(self.most[h] / (TAU_QUICK * threshold)))
            inverse = float((counts / threshold).sum())
            total += self.constant[h] * inverse
            growth += self.slope[h] * inverse
        # Lemma B's second term: the largest weights have D = 0.
        root = log_chance * ALL / (1.0 - TAU_QUICK) / (tau * self.epsilon)
        total += 4.0 * (root * self.reach**2).max() + 8.0 * (root * self.swing**2).max()
        scale = 2.0 * TYPICAL / LEAST_SURPLUS / (self.room * self.epsilon)
        return float(scale * total), float(scale * growth)
