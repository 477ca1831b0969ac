"""How many calls Bracket needs at most: the theorem of docs/calls.md, evaluated on a known MDP.

Names are those of that page. In units in which a step pays between 0 and 1.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan import exact
from pacplan.algorithms.betting.grid import FORCED_GRID, FORCED_MARGIN
from pacplan.algorithms.bracket import constants
from pacplan.algorithms.bracket.bracket import Bracket
from pacplan.algorithms.bracket.settings import Setup, setup_of
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
    discount = exact.check_discount(gamma)
    steps = checks.integer("horizon", horizon, least=1) if discount > 0.0 else 1
    accuracy = checks.positive("epsilon", epsilon)
    chance = checks.probability("delta", delta)
    root = model.initial_state() if state is None else state
    actions = len(model.actions(root))
    setup = _setup(model, discount, steps, accuracy, chance)
    problem = _problem(setup, discount, actions, chance / 4.0)
    if actions == 1 or problem.epsilon >= problem.sigma[0]:
        return BracketCalls(0.0, 0.0, 0.0, 0.0, 0.0)
    every = constants.FORCED_EVERY
    gaps = exact.gaps(model, gamma=discount, horizon=steps) / setup.scale.width
    tree = _tree_episodes(problem, _path_gaps(model, root, gaps, problem), every)
    account = _account_episodes(problem) * actions / SPARED
    settling = actions * _settling(problem) / (SPARED * problem.room * problem.epsilon)
    forced = math.floor(max(tree, account, settling)) + 1.0
    return BracketCalls(every * steps * forced, forced, tree, account, settling)


def _setup(model: Table, gamma: float, horizon: int, epsilon: float, delta: float) -> Setup:
    """Bracket's own setup: shares of delta, stakes, cash, grids."""
    assert model.max_actions is not None
    planner = Bracket(epsilon=epsilon, delta=delta, gamma=gamma, horizon=horizon)
    return setup_of(planner, model, horizon, epsilon, model.max_actions)


class _Problem(NamedTuple):
    """The numbers of the theorem that depend on the setup. Arrays are by depth."""

    epsilon: float
    chance: float  # nu
    actions: int  # K, of the root
    penalty: float  # varpi: lambda_0 Lambda = varpi epsilon
    least: float  # lambda_0
    evidence: float  # Lambda = log(1/delta_s) + C_0
    room: float  # xi
    proof: float  # log(q/alpha), of the wealth that proves a point of a forced account
    successors: int  # B
    discount: NDArray[np.float64]  # gamma^h
    sigma: NDArray[np.float64]  # sigma_(H-h)
    excess: NDArray[np.float64]  # C_(h+1)
    stake: NDArray[np.float64]  # kappa_h
    price: NDArray[np.float64]  # of the ball
    reach: NDArray[np.float64]  # gamma^h rho_h, of what is bet on
    swing: NDArray[np.float64]  # O_h, of mean d - d now; 0 where there is no ball
    most: NDArray[np.float64]  # V_h


def _problem(setup: Setup, gamma: float, actions: int, chance: float) -> _Problem:
    levels, settings = setup.levels, setup.settings[0]
    horizon = len(levels)
    epsilon = float(setup.grid.resolution)
    discount = np.power(gamma, np.arange(horizon))
    sigma = setup.scale.sigma[:0:-1]
    excess = np.append(levels["excess"][1:] * discount[1:], 0.0)
    settled = constants.SETTLED * float(settings["least"])
    evidence = float(settings["log_share"]) + float(levels["excess"][0])
    learns = bool(settings["learns"])
    ball = learns & (np.arange(horizon) < horizon - 1)
    weight = float(np.exp(setup.opening.min())) / len(setup.opening)
    penalty = float(settings["kappa"]) * evidence
    open_ = constants.SETTLED * penalty + constants.STAKES_OPEN + constants.SOLVER_OPEN
    return _Problem(
        epsilon=epsilon,
        chance=chance,
        actions=actions,
        penalty=penalty,
        least=float(settings["least"]),
        evidence=evidence,
        room=1.0 - open_ - FORCED_GRID - 2.0 * FORCED_MARGIN,
        proof=math.log(setup.grid.fractions * actions / float(settings["delta_forced"])),
        successors=int(settings["strength"] * 2.0),
        discount=discount,
        sigma=sigma,
        excess=excess,
        stake=-np.log((1.0 - levels["cash"]) * weight),
        price=levels["price"],
        reach=discount * (sigma if learns else 1.0),
        swing=np.where(ball, discount * (sigma - 1.0) + 0.5 * settled * excess, 0.0),
        most=discount * sigma + settled * excess,
    )


class _Paths(NamedTuple):
    """Pairs of the tree at one depth, by the gaps D_e along the way to them."""

    gaps: NDArray[np.float64]
    counts: NDArray[np.float64]


def _path_gaps(model: Table, root: int, gaps: NDArray[np.float64], problem: _Problem) -> list[_Paths]:
    """All pairs of the tree of histories.

    Histories that reach the same state with the same D, rounded down, are counted together. Rounding
    down makes the bound larger.
    """
    _, probabilities, successors = model.sparse()
    grain = _ROUNDING * problem.epsilon
    states = np.array([root])
    behind, counts = np.zeros(1), np.ones(1)
    found = []
    for h in range(len(gaps)):
        at = ... if model.steps is None else h
        along = behind[:, np.newaxis] + problem.discount[h] * gaps[h, states]
        offered = np.isfinite(along)
        many = np.broadcast_to(counts[:, np.newaxis], along.shape)
        found.append(_Paths(along[offered], many[offered]))
        leads = offered[..., np.newaxis] & (probabilities[at][states] > 0.0)
        rows, columns, _ = np.nonzero(leads)
        bins = np.floor(along[rows, columns] / grain + 1e-9).astype(np.int64)
        width = int(bins.max(initial=0)) + 1
        reached, place = np.unique(successors[at][states][leads] * width + bins, return_inverse=True)
        counts = np.bincount(place, many[rows, columns], len(reached)).astype(np.float64)
        states, behind = reached // width, grain * (reached % width)
    return found


def _account_episodes(problem: _Problem) -> float:
    """T_L: after this many forced episodes an account has proven what its returns are worth."""
    wealth = max(27.0, 6.0 / problem.room) * 4.0 / FORCED_MARGIN * problem.proof
    chance = math.log(problem.actions / problem.chance) / (2.0 * (problem.room / 15.0) ** 2)
    return float((problem.sigma[0] / problem.epsilon) ** 2 * max(wealth, chance))


def _settling(problem: _Problem) -> float:
    """A / K: what an action's lambda adds to its surplus until it has settled."""
    sigma, epsilon = float(problem.sigma[0]), problem.epsilon
    growth, scale = constants.REBUILD_GROWTH, constants.SETTLING_CALLS
    largest = constants.LARGEST
    settled = growth * scale * (largest * sigma / epsilon) ** 2
    changes = 2.0 + math.log(settled) / math.log(growth)
    total = largest * (1.0 + 2.0 * scale * math.sqrt(growth) * largest)
    total *= constants.NEAR * problem.penalty
    below = float(problem.excess.sum())
    return total * (1.0 + below / problem.evidence) * sigma**2 / epsilon + changes * sigma


def _tree_episodes(problem: _Problem, paths: list[_Paths], every: int) -> float:
    """The largest T with T <= 4.6 / (xi epsilon) [ Psi(T) + Vb log(1/nu) ], at the best omega.

    The right side grows as log T; omega is chosen for the last T, some times over.
    """
    forced = 1e6
    for _ in range(4):
        at = _evaluate(problem, paths, _best_omega(problem, paths, every * forced))
        forced = at.constant
        for _ in range(200):
            before, forced = forced, at.constant + at.slope * math.log1p(every * forced)
            if forced <= before * (1.0 + 1e-12):
                break
    return forced


def _evidence(problem: _Problem) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What 8/7 Y_e^2 is on average over e, by depth: a constant, and the factor of log(1 + N)."""
    root = 1.0 / (1.0 - TAU_QUICK)
    first = problem.reach**2 * root
    second = problem.swing**2 * root
    constant = first * (ROOT**2 * problem.stake + 4.0 * EACH)
    constant += 8.0 * second * (problem.price + 2.0 * math.log(problem.successors) + EACH)
    return constant, 2.0 * first + 8.0 * (problem.successors - 1.0) * second


def _best_omega(problem: _Problem, paths: list[_Paths], calls: float) -> NDArray[np.float64]:
    """The weights of the depths that make the largest terms smallest."""
    constant, slope = _evidence(problem)
    sums = np.array([(each.counts / (problem.epsilon + each.gaps)).sum() for each in paths])
    root = np.sqrt(sums * (constant + slope * math.log1p(calls)))
    return np.asarray(root / root.sum())


class _Line(NamedTuple):
    """constant + slope log(1 + N)."""

    constant: float
    slope: float


def _evaluate(problem: _Problem, paths: list[_Paths], omega: NDArray[np.float64]) -> _Line:
    """The right side for given omega."""
    p, log_chance = problem, -math.log(problem.chance)
    constant, slope = _evidence(problem)
    quick = SLOW * p.discount * p.sigma * p.reach / p.least + QUICK * p.discount * p.sigma * p.stake
    tau = p.room / (2.0 * OVERALL) * omega
    total, growth = float(p.most.sum()) * log_chance, 0.0
    for h, (gaps, counts) in enumerate(paths):
        threshold = tau[h] * (p.epsilon + gaps)
        left = threshold < p.most[h]
        threshold, counts = threshold[left], counts[left]
        total += p.most[h] * float(counts.sum())
        total += quick[h] * float(counts @ np.log(p.most[h] / (TAU_QUICK * threshold)))
        inverse = float((counts / threshold).sum())
        total += constant[h] * inverse
        growth += slope[h] * inverse
    # Lemma B's second term: the largest weights have D = 0.
    root = log_chance * ALL / (1.0 - TAU_QUICK) / (tau * p.epsilon)
    total += 4.0 * (root * p.reach**2).max() + 8.0 * (root * p.swing**2).max()
    scale = 2.0 * TYPICAL / LEAST_SURPLUS / (p.room * p.epsilon)
    return _Line(float(scale * total), float(scale * growth))
