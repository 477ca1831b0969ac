"""The bounds of the MDP-GapE paper, evaluated on a known MDP."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

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


@dataclass(frozen=True)
class Exponent:
    """The x of n ~ (1/epsilon)^x, and its 95 % interval."""

    value: float
    low: float
    high: float


def sparse_sampling_calls(*, epsilon: float, horizon: int, actions: int, successors: int) -> float:
    """n_SS = H^5 (BK)^H / epsilon^2, the order of Sparse Sampling's calls (Lemma 1 and Table 4)."""
    accuracy = checks.positive("epsilon", epsilon)
    steps = checks.integer("horizon", horizon, least=1)
    return steps**5 * _power(_branches(actions, successors), steps) / accuracy / accuracy


def crude_exponent(*, gamma: float, actions: int, successors: int) -> float:
    """2 + log(BK) / log(1/gamma): the growth of n in 1/epsilon if gaps are neglected (section 4)."""
    return 2.0 + math.log(_branches(actions, successors)) / _log_inverse(gamma)


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
        remark: what the bound is for.
    """

    planner: str
    setting: str
    formula: str
    least: float
    most: float
    remark: str = ""


def table_2(
    model: Table, state: int | None = None, *, gamma: float, horizon: int, epsilon: float
) -> tuple[Complexity, ...]:
    """The paper's Table 2 (sample complexities in the literature) evaluated on a known MDP.

    Everything is an order, in calls: constants, logarithms and o(1) in exponents are left out, so lines
    can be compared neither with each other nor with counted calls. kappa, a branching factor of nearly
    optimal nodes that each planner's paper defines in its own way, is not computed; both ends of its
    range are evaluated. Infinite for BRUE if the two best actions tie, or there is only one.
    """
    question = _question(model, state, gamma, horizon, epsilon)
    rate, b, k = _log_inverse(gamma), question.successors, question.actions
    first = question.gaps[0, question.root] / question.width
    unit = question.epsilon / question.width
    smallest = _second_gap(question.raw[0, question.root]) / question.width
    tree = _power(b * k, horizon)

    def power(least: float, most: float) -> tuple[float, float]:
        """The ends of a power of 1/epsilon."""
        return _power(unit, -least), _power(unit, -most)

    ss = sparse_sampling_calls(epsilon=unit, horizon=horizon, actions=k, successors=b)
    brue = horizon**4 * tree / smallest**2 if smallest > 0.0 else math.inf
    gape = horizon**2 * tree / k * float((1.0 / first**2).sum())
    wide, narrow = math.log(b * k) / rate, math.log(k) / rate
    few, many = max(2.0, math.log(b) / rate), max(2.0, wide)
    lines: tuple[tuple[str, str, str, tuple[float, float], str], ...] = (
        ("sparse-sampling", "action, value", "H^5 (BK)^H / ε^2", (ss, ss), "Lemma 1"),
        ("sparse-sampling", "action, value", "ε^-(2 + log K / log(1/γ))",
         power(2.0 + narrow, 2.0 + narrow), ""),
        ("olop", "budget", "ε^-max(2, log κ / log(1/γ))", power(2.0, max(2.0, narrow)),
         "open loop, κ from 1 to K"),
        ("op-mdp", "anytime", "ε^-(log κ / log(1/γ))", power(0.0, wide), "known MDP, κ up to BK"),
        ("brue", "anytime", "H^4 (BK)^H / Δ^2", (brue, brue), "smallest gap Δ"),
        ("stop", "action", "ε^-(2 + log κ / log(1/γ) + o(1))", power(2.0, 2.0 + wide), "κ up to BK"),
        ("trailblazer", "value", "ε^-max(2, log(Bκ) / log(1/γ) + o(1))", power(few, many),
         "κ from 1 to K"),
        ("smooth-cruiser", "value", "ε^-4", power(4.0, 4.0), "regularised MDPs only"),
        ("mdp-gape", "action", "Σ_a H^2 (BK)^(H-1) B / (Δ(a) ∨ Δ ∨ ε)^2", (gape, gape), "Corollary 1"),
    )  # fmt: skip
    return tuple(
        Complexity(planner, setting, formula, *ends, remark)
        for planner, setting, formula, ends, remark in lines
    )


def exponent(epsilons: Sequence[float], samples: ArrayLike) -> Exponent:
    """The slope of log(mean n) against log(1/epsilon), by least squares (the paper's Figure 1).

    Args:
        epsilons: two or more accuracies.
        samples: n of every problem, an array of shape (problems, epsilons).

    Returns:
        The slope and its 95 % interval, by the bootstrap over problems: how much it would vary with
        the choice of problems, not how straight the line is.
    """
    x = -np.log([checks.positive("epsilons", epsilon) for epsilon in epsilons])
    try:
        n = np.asarray(samples, np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"samples must be an array of numbers: {error}") from None
    if n.ndim != 2 or len(n) == 0 or n.shape[1] != len(x) or len(set(x)) < 2:
        raise ValueError(
            f"samples must have a row for every problem and a column for each of two or more "
            f"epsilons; got shape {n.shape} and the epsilons {list(epsilons)}"
        )
    if not (np.isfinite(n) & (n > 0.0)).all():
        raise ValueError("samples must be positive and finite")
    weights = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    draws = np.random.default_rng(0).integers(len(n), size=(2000, len(n)))
    low, high = np.quantile(np.log(n[draws].mean(1)) @ weights, [0.025, 0.975])
    return Exponent(float(np.log(n.mean(0)) @ weights), float(low), float(high))


def gaps(
    model: Table, state: int | None = None, *, gamma: float, horizon: int, epsilon: float
) -> NDArray[np.float64]:
    """The paper's gaps Delta~_h(s, a) (Definition 1), an array of shape (H, S, A).

    At the root (h = 1, `state`) Delta~ is max(Delta_1(s, a), Delta, epsilon), where Delta is the gap
    of the second best action; elsewhere it is Delta_h(s, a). In entry 0 other states have NaN, and
    actions that are not offered have infinite gaps.
    """
    return _question(model, state, gamma, horizon, epsilon).gaps


def _visits(question: "_Question", gap: float) -> float:
    """How often MDP-GapE is expected to take an action of the root at most, given its D = Delta~_1.

    With m = C0 (BK)^(H-1) / D^2 and c = log(3 (BK)^H / delta), section 4 derives from Theorem 1

        m [ c + 2 (B-1) log( m ( c / sqrt(B-1) + 2 sqrt(e (B-1)) ) ) + (B-1) ]

    At B = 1 the terms with B - 1 vanish, and the bound is only as good as the paper's threshold there,
    which then lacks the reward's log(e (1 + n)): use `deterministic_theorem`.
    """
    more, c = question.successors - 1, question.price
    m = C0 * _power(question.successors * question.actions, question.horizon - 1) / gap**2
    if more == 0:
        return m * c
    rest = c / math.sqrt(more) + 2.0 * math.sqrt(math.e * more)
    return m * (c + 2.0 * more * math.log(m * rest) + more)


def corollary_1(
    model: Table, state: int | None = None, *, gamma: float, horizon: int, epsilon: float, delta: float
) -> Bound:
    """The paper's Corollary 1: episodes until MDP-GapE stops.

        O( sum_a (BK)^(H-1) / (Delta_1(s, a) v Delta v epsilon)^2 [ log(1/delta) + B H log(BK) ] )

    `proven` is the sum of the bounds on the visits of the root's actions, from which the paper derives
    it.
    """
    question = _question(model, state, gamma, horizon, epsilon, delta)
    b, k, steps = question.successors, question.actions, question.horizon
    first = question.gaps[0, question.root] / question.width
    weight = math.log(1.0 / delta) + b * steps * math.log(b * k)
    order = _power(b * k, steps - 1) * (1.0 / first**2).sum() * weight
    return Bound(float(order), float(sum(_visits(question, gap) for gap in first[np.isfinite(first)])))


def deterministic_theorem(
    model: Table, state: int | None = None, *, gamma: float, horizon: int, epsilon: float, delta: float
) -> Bound:
    """The paper's Theorem 2, for B = 1: a sum over all trajectories of H state-action pairs.

        O( sum over trajectories of min_h ( sigma_(H-h+1) / Delta~_h )^2 [ log(1/delta) + H log K ] )

    with sigma_k = 1 + gamma + ... + gamma^(k-1). (The statement is printed with a power too many for
    the gap and with gamma^h in sigma; its proof, in the appendix, has it as here.) `proven` follows
    that proof with two corrections. A trajectory that is played for the n-th time has been played
    n - 1 times before, and the root's gap is at most *twice* the width of its interval (the lemma of
    appendix D.1): so with f_1 = 2 and f_h = 1 below the root, n is at most 1 more than the largest m
    with

        m max_h ( Delta~_h / (f_h sigma_(H-h+1)) )^2 <= 2 beta(m) = 2 ( c + 1 + log(1 + m) )

    the largest root of which has a closed form, by Lambert's W.
    """
    question = _question(model, state, gamma, horizon, epsilon, delta)
    if question.successors != 1:
        raise ValueError(
            f"the theorem is about B = 1; this model has up to {question.successors} successors"
        )
    steps, widths = question.horizon, question.gaps / question.width
    sigma = np.cumsum(question.gamma ** np.arange(steps))[::-1]
    weight = math.log(1.0 / delta) + steps * math.log(question.actions)
    order = sum(
        count / steepest**2 * weight
        for steepest, count in _steepest(model, question.root, widths, sigma)
    )
    doubled = sigma * np.where(np.arange(steps) == 0, 2.0, 1.0)
    proven = 0.0
    for steepest, count in _steepest(model, question.root, widths, doubled):
        half = 0.5 * steepest**2
        root = special.lambertw(-half * math.exp(-half - question.price - 1.0), -1).real
        proven += count * (1.0 + math.floor(-root / half - 1.0))
    return Bound(float(order), float(proven))


def _steepest(
    model: Table, root: int, widths: NDArray[np.float64], scale: NDArray[np.float64]
) -> list[tuple[float, int]]:
    """max_h Delta~_h / scale_h along a trajectory, and how many trajectories have that maximum.

    Trajectories are not listed: those in the same state with the same maximum so far are merged.
    """
    _, probabilities, successors = model.sparse()
    here: dict[tuple[int, float], int] = {(root, 0.0): 1}
    ended: dict[float, int] = defaultdict(int)
    for h in range(len(widths)):
        at = ... if model.steps is None else h
        following: dict[tuple[int, float], int] = defaultdict(int)
        for (state, steepest), count in here.items():
            for action in np.flatnonzero(np.isfinite(widths[h, state])):
                most = max(steepest, float(widths[h, state, action] / scale[h]))
                outcome = int(np.argmax(probabilities[at][state, action]))
                if probabilities[at][state, action, outcome] > 0.0 and h + 1 < len(widths):
                    following[int(successors[at][state, action, outcome]), most] += count
                else:
                    ended[most] += count
        here = following
    return list(ended.items())


def _second_gap(found: NDArray[np.float64]) -> float:
    """Delta, the gap of the second best action; 0 if there is one action, and nothing to decide."""
    offered = np.sort(found[np.isfinite(found)])
    return float(offered[1]) if len(offered) > 1 else 0.0


def _log_inverse(gamma: float) -> float:
    """log(1/gamma), by which the growth of a tree is turned into a power of epsilon."""
    return -math.log(checks.probability("gamma", gamma))


class _Question(NamedTuple):
    """What the bounds of a model depend on besides its tables, checked."""

    root: int
    gamma: float
    horizon: int
    epsilon: float
    successors: int  # B
    actions: int  # K
    price: float  # c_delta = log(3 (BK)^H / delta)
    width: float  # of the rewards
    raw: NDArray[np.float64]  # Delta_h(s, a)
    gaps: NDArray[np.float64]  # Delta~_h(s, a)


def _question(
    model: Table, state: int | None, gamma: float, horizon: int, epsilon: float, delta: float = 0.5
) -> _Question:
    exact.check_tables(model)
    root = model.initial_state() if state is None else state
    model.actions(root)  # Raises if there is no such state, or nothing to decide in it.
    discount = checks.within_one("gamma", gamma)
    steps = checks.integer("horizon", horizon, least=1)
    accuracy = checks.positive("epsilon", epsilon)
    b, k = model.successors, model.max_actions
    assert b is not None and k is not None
    price = math.log(3.0) + steps * math.log(b * k) - math.log(checks.probability("delta", delta))
    raw = exact.gaps(model, gamma=discount, horizon=steps)
    gaps = raw.copy()
    gaps[0] = np.nan
    gaps[0, root] = np.maximum(raw[0, root], max(_second_gap(raw[0, root]), accuracy))
    low, high = model.reward_range
    return _Question(int(root), discount, steps, accuracy, b, k, price, high - low, raw, gaps)


def _branches(actions: int, successors: int) -> int:
    """BK."""
    b = checks.integer("successors", successors, least=1)
    return b * checks.integer("actions", actions, least=1)


def _power(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return math.inf
