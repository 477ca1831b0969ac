"""The bounds of the MDP-GapE paper, evaluated on a known MDP."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pacplan import exact
from pacplan.core import checks
from pacplan.models.protocol import Table

C0 = (64.0 * math.sqrt(2.0) * (1.0 + math.sqrt(2.0))) ** 2
"""The constant of the paper's bound on pseudo-counts, from its Theorem 1."""


@dataclass(frozen=True)
class Bound:
    """A bound on the number of episodes.

    Attributes:
        order: the expression inside the O() of the paper's statement. It has no constant: only its
            growth is meaningful.
        proven: the same with the constants of the paper's proof; it holds with probability at least
            1 - delta for the thresholds `lemma`.
    """

    order: float
    proven: float


class Estimate(NamedTuple):
    """A number and its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Complexity:
    """A line of the paper's Table 2, evaluated: orders, without constants and logarithms.

    Attributes:
        planner: our name for it.
        setting: "action" or "value" for fixed confidence, "budget" or "anytime".
        formula: the expression.
        least: calls by the expression, kappa at its smallest. (A kappa below 1 would make a power of
            epsilon fall as epsilon does; the smallest is taken as 1.)
        most: the same with the largest kappa, B K or K; equal to `least` if there is no kappa.
    """

    planner: str
    setting: str
    formula: str
    least: float
    most: float


def sparse_sampling_calls(*, epsilon: float, horizon: int, actions: int, successors: int) -> float:
    """n_SS = H^5 (BK)^H / epsilon^2, the order of Sparse Sampling's calls (Lemma 1 and Table 4)."""
    accuracy = checks.positive("epsilon", epsilon)
    steps = checks.integer("horizon", horizon, least=1)
    return steps**5 * _power(_branches(actions, successors), steps) / accuracy / accuracy


def crude_exponent(*, gamma: float, actions: int, successors: int) -> float:
    """2 + log(BK) / log(1/gamma): the growth of n in 1/epsilon if gaps are neglected (section 4)."""
    rate = -math.log(checks.probability("gamma", gamma))
    return 2.0 + math.log(_branches(actions, successors)) / rate


def exponent(epsilons: Sequence[float], samples: ArrayLike) -> Estimate:
    """The slope of log(mean n) against log(1/epsilon), by least squares (the paper's Figure 1).

    Args:
        epsilons: two or more accuracies.
        samples: n of every problem, an array of shape (problems, epsilons).

    Returns:
        The slope and its 95 % interval, by the bootstrap over problems: how much it would vary with
        the choice of problems, not how straight the line is.
    """
    x = -np.log([checks.positive("epsilons", epsilon) for epsilon in epsilons])
    n = np.asarray(samples, np.float64)
    if n.ndim != 2 or len(n) == 0 or n.shape[1] != len(x) or len(set(x)) < 2 or not (n > 0.0).all():
        raise ValueError(
            "samples must be positive, with a row for every problem and a column for each of two or "
            f"more epsilons; got shape {n.shape} and the epsilons {list(epsilons)}"
        )
    weights = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    draws = np.random.default_rng(0).integers(len(n), size=(2000, len(n)))
    low, high = np.quantile(np.log(n[draws].mean(1)) @ weights, [0.025, 0.975])
    return Estimate(float(np.log(n.mean(0)) @ weights), float(low), float(high))


def table_2(
    model: Table, state: int | None = None, *, gamma: float, horizon: int, epsilon: float
) -> tuple[Complexity, ...]:
    """The paper's Table 2 (sample complexities in the literature) evaluated on a known MDP.

    Everything is an order, in calls: constants, logarithms and o(1) in exponents are left out, so lines
    can be compared neither with each other nor with counted calls. kappa, a branching factor of nearly
    optimal nodes that each planner's paper defines in its own way, is not computed; both ends of its
    range are evaluated. Infinite for BRUE if the two best actions tie, or there is only one.
    """
    rate = -math.log(checks.probability("gamma", gamma))
    b, k, unit, smallest, gaps = _question(model, state, gamma, horizon, epsilon)
    tree = _power(b * k, horizon)

    def power(least: float, most: float | None = None) -> tuple[float, float]:
        """The ends of a power of 1/epsilon."""
        return _power(unit, -least), _power(unit, -(least if most is None else most))

    ss = sparse_sampling_calls(epsilon=unit, horizon=horizon, actions=k, successors=b)
    brue = horizon**4 * tree / smallest**2 if smallest > 0.0 else math.inf
    gape = horizon**2 * tree / k * float((1.0 / gaps**2).sum())
    wide, narrow = math.log(b * k) / rate, math.log(k) / rate
    few, many = max(2.0, math.log(b) / rate), max(2.0, wide)
    lines: dict[str, tuple[str, str, tuple[float, float]]] = {
        "H^5 (BK)^H / ε^2": ("sparse-sampling", "action, value", (ss, ss)),
        "ε^-(2 + log K / log(1/γ))": ("sparse-sampling", "action, value", power(2.0 + narrow)),
        # Open loop, κ from 1 to K.
        "ε^-max(2, log κ / log(1/γ))": ("olop", "budget", power(2.0, max(2.0, narrow))),
        # A known MDP, κ up to BK.
        "ε^-(log κ / log(1/γ))": ("op-mdp", "anytime", power(0.0, wide)),
        "H^4 (BK)^H / Δ^2": ("brue", "anytime", (brue, brue)),
        "ε^-(2 + log κ / log(1/γ) + o(1))": ("stop", "action", power(2.0, 2.0 + wide)),
        "ε^-max(2, log(Bκ) / log(1/γ) + o(1))": ("trailblazer", "value", power(few, many)),
        "ε^-4": ("smooth-cruiser", "value", power(4.0)),
        "Σ_a H^2 (BK)^(H-1) B / (Δ(a) ∨ Δ ∨ ε)^2": ("mdp-gape", "action", (gape, gape)),
    }
    return tuple(
        Complexity(planner, setting, formula, *ends)
        for formula, (planner, setting, ends) in lines.items()
    )


def corollary_1(
    model: Table, state: int | None = None, *, gamma: float, horizon: int, epsilon: float, delta: float
) -> Bound:
    """The paper's Corollary 1: episodes until MDP-GapE stops.

        O( sum_a (BK)^(H-1) / (Delta_1(s, a) v Delta v epsilon)^2 [ log(1/delta) + B H log(BK) ] )

    `proven` adds up how often each action of the root is taken at most. With
    m = C0 (BK)^(H-1) / (Delta_1(s, a) v Delta v epsilon)^2 and c = log(3 (BK)^H / delta), section 4
    derives from Theorem 1

        m [ c + 2 (B-1) log( m ( c / sqrt(B-1) + 2 sqrt(e (B-1)) ) ) + (B-1) ]

    At B = 1 this has 1 in place of B - 1, since the thresholds of rewards are as large as at B = 2.
    """
    chance = checks.probability("delta", delta)
    b, k, _, _, gaps = _question(model, state, gamma, horizon, epsilon)
    size, more = horizon * math.log(b * k), max(1, b - 1)
    c = math.log(3.0) + size - math.log(chance)
    with np.errstate(over="ignore"):
        m = C0 * _power(b * k, horizon - 1) / gaps**2
        rest = c / math.sqrt(more) + 2.0 * math.sqrt(math.e * more)
        visits = m * (c + 2.0 * more * np.log(m * rest) + more)
        order = (m / C0).sum() * (b * size - math.log(chance))
    return Bound(float(order), float(visits.sum()))


class _Question(NamedTuple):
    """What the bounds of a model depend on; accuracy and gaps in units of the rewards' width."""

    successors: int  # B
    actions: int  # K
    epsilon: float
    smallest: float  # Delta, the gap of the second best action; 0 if there is one action
    gaps: NDArray[np.float64]  # of the root's actions: the largest of their own, Delta and epsilon


def _question(model: Table, state: int | None, gamma: float, horizon: int, epsilon: float) -> _Question:
    exact.check_tables(model)
    root = model.initial_state() if state is None else state
    model.actions(root)  # Raises if there is no such state, or nothing to decide in it.
    low, high = model.reward_range
    accuracy = checks.positive("epsilon", epsilon) / (high - low)
    b, k = model.successors, model.max_actions
    assert b is not None and k is not None
    gaps = exact.gaps(model, gamma=gamma, horizon=horizon)[0, root] / (high - low)
    gaps = np.sort(gaps[np.isfinite(gaps)])
    smallest = float(gaps[1]) if len(gaps) > 1 else 0.0
    return _Question(b, k, accuracy, smallest, np.maximum(gaps, max(smallest, accuracy)))


def _branches(actions: int, successors: int) -> int:
    """BK."""
    b = checks.integer("successors", successors, least=1)
    return b * checks.integer("actions", actions, least=1)


def _power(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return math.inf
