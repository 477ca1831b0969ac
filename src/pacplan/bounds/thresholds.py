"""Exploration functions: the thresholds beta(n, delta) that size the confidence sets.

| name        | rewards                            | transitions                                      |
|-------------|------------------------------------|--------------------------------------------------|
| `lemma`     | log(3 (BK)^H/delta) + log(e (1+n)) | log(3 (BK)^H/delta) + (B-1) log(e (1 + n/(B-1))) |
| `paper`     | log(1/delta) + log log n           | log(1/delta) + log n                             |
| `budget`    | log tau                            | log tau                                          |
| `published` | log tau                            | 0.1 log tau                                      |
| `sharp`     | 0.2 log tau                        | 0.2 log tau                                      |

`lemma` is proven (the paper's Lemma 2), `paper` and `budget` are what its text gives for its
experiments. The last three are for a fixed budget of tau episodes: `published` is what the published
runs actually used, and `sharp` leads to smaller regret than both from about 30 calls on
(`pacplan reproduce figure2 --thresholds budget,published,sharp`). These three give no guarantee.
"""

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from inspect import Parameter, signature
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan.bounds import elementary
from pacplan.bounds.bernoulli import no_shares

Threshold = Callable[[NDArray[np.float64]], NDArray[np.float64]]


class Setting(NamedTuple):
    """What thresholds may depend on, besides the number n of visits to a pair.

    `pairs` bounds the number of pairs that a search can have, if a bound better than (BK)^H is known.
    """

    delta: float
    successors: int
    actions: int | None
    horizon: int
    episodes: int | None
    pairs: int | None = None


@dataclass(frozen=True)
class Thresholds:
    """A pair of exploration functions.

    Attributes:
        reward: threshold for a mean reward, vectorised over n >= 1.
        transition: threshold for a transition kernel, vectorised too.
        proven: whether all sets hold together, at all times, with probability at least 1 - delta.
        name: what to call it.
    """

    reward: Threshold
    transition: Threshold
    proven: bool
    name: str


def _lemma(setting: Setting) -> Thresholds:
    """The paper's Lemma 2.

    The lemma counts (BK)^H pairs. At B = 1 there are more, but two of its three events are sure, so
    the factor 3 makes up for that; only at B = K = 1 the H pairs themselves are counted. If the
    setting knows of fewer pairs, those are counted.
    """
    b, k, h = setting.successors, setting.actions, setting.horizon
    assert k is not None
    size = max(math.log(3.0) + h * math.log(b * k), math.log(h) if b * k == 1 else 0.0)
    if setting.pairs is not None:
        size = min(size, math.log(3.0 * setting.pairs))
    price = size - math.log(setting.delta)

    def transition(n: NDArray[np.float64]) -> NDArray[np.float64]:
        if b == 1:
            return np.zeros_like(n)
        return price + (b - 1) * (1.0 + elementary.log1p(n / (b - 1)))

    return Thresholds(lambda n: price + 1.0 + elementary.log1p(n), transition, True, "lemma")


def _paper(setting: Setting) -> Thresholds:
    """The paper's section 5. log log n is read as log(max(log n, 1)): it is undefined at n = 1."""
    price = -math.log(setting.delta)
    return Thresholds(
        lambda n: price + elementary.log(np.maximum(elementary.log(n), 1.0)),
        lambda n: price + elementary.log(n),
        proven=False,
        name="paper",
    )


# Multiples of log tau, tau the number of episodes that the budget affords.
_FIXED_BUDGET = {"budget": (1.0, 1.0), "published": (1.0, 0.1), "sharp": (0.2, 0.2)}


def _within_budget(name: str, setting: Setting) -> Thresholds:
    if setting.episodes is None:
        raise ValueError(f"thresholds={name!r} needs a budget: plan(..., budget=n)")
    reward, transition = (part * math.log(setting.episodes) for part in _FIXED_BUDGET[name])
    return Thresholds(
        lambda n: np.full_like(n, reward),
        lambda n: np.full_like(n, transition),
        proven=False,
        name=name,
    )


NAMED: dict[str, Callable[[Setting], Thresholds]] = {"lemma": _lemma, "paper": _paper}
NAMED |= {name: partial(_within_budget, name) for name in _FIXED_BUDGET}


def for_a_budget(thresholds: Any) -> bool:
    """Whether these are defined only for a fixed budget."""
    return isinstance(thresholds, str) and thresholds in _FIXED_BUDGET


def check(thresholds: Any) -> None:
    """Raise unless `thresholds` is a name, a `Thresholds` or a pair of functions."""
    if isinstance(thresholds, Thresholds):
        return
    if isinstance(thresholds, str):
        if thresholds not in NAMED:
            words = ", ".join(repr(name) for name in NAMED)
            raise ValueError(f"thresholds must be one of {words}, or your own; got {thresholds!r}")
        return
    if isinstance(thresholds, tuple) and len(thresholds) == 2 and all(map(callable, thresholds)):
        return
    raise TypeError(
        "thresholds must be a name, a pair of functions (reward, transition) of n or of (n, delta), "
        f"or a pacplan.bounds.Thresholds; got {thresholds!r}"
    )


def resolve(thresholds: Any, setting: Setting) -> Thresholds:
    """The exploration functions that the user asked for, in one setting."""
    if isinstance(thresholds, Thresholds):
        return thresholds
    if isinstance(thresholds, str):
        return NAMED[thresholds](setting)
    reward, transition = (_of_scalars(function, setting.delta) for function in thresholds)
    return Thresholds(reward, transition, proven=False, name="custom")


def _of_scalars(function: Callable[..., float], delta: float) -> Threshold:
    """A user's function of n, or of (n, delta), made to work on arrays."""
    try:
        known = list(signature(function).parameters.values())
    except ValueError:
        known = []  # A built-in such as math.log does not say.
    kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p for p in known if p.kind in kinds and (p.default is p.empty or p.name == "delta")]
    rest = (delta,) * (len(needed) == 2)

    def vectorised(n: NDArray[np.float64]) -> NDArray[np.float64]:
        levels = [function(int(x), *rest) for x in n]
        for level in levels:
            if not isinstance(level, int | float | np.number):
                raise ValueError(f"thresholds must return a finite number >= 0, got {level!r}")
        return np.array(levels, np.float64)

    return vectorised


# Columns of a table, see there.
REWARD, REWARD_SHRINK, REWARD_DECAY, TRANSITION, TRANSITION_SHRINK, TRANSITION_DECAY = range(6)


class ThresholdTable:
    """Radii c = beta(n) / n for n = 1, 2, ..., tabulated as far as a search needs them.

    Row n holds, for rewards and for transitions: c itself; its *shrink*, the square root of its ratio
    to the c before, by which an interval shrinks (a good guess of the next solution); and its *decay*
    e^(-c), in which some bounds are closed. Row 0 is not used.

    `shares` keeps solutions for these radii.
    """

    def __init__(self, thresholds: Thresholds) -> None:
        self.thresholds = thresholds
        self.rows = np.zeros((1, 6))
        self.shares = no_shares()

    def extend(self, n: int) -> None:
        """Make sure that rows 1..n exist."""
        old = len(self.rows)
        if n < old:
            return
        # A user's functions are called once for every n, so fewer rows are made in advance.
        least = 1024 if self.thresholds.name in NAMED else 256
        rows = np.zeros((max(n + 1, old * 3 // 2, least), 6))
        rows[:old] = self.rows
        counts = np.arange(old, len(rows), dtype=np.float64)
        for column, function in (
            (REWARD, self.thresholds.reward),
            (TRANSITION, self.thresholds.transition),
        ):
            beta = np.asarray(function(counts), np.float64)
            if beta.shape != counts.shape or not (beta >= 0.0).all() or np.isinf(beta).any():
                raise ValueError(
                    "thresholds must return a finite number >= 0 for every n >= 1; those named "
                    f"{self.thresholds.name!r} do not"
                )
            radius = rows[:, column]
            radius[old:] = beta / counts
            before = radius[old - 1 : -1]
            ratio = np.divide(radius[old:], before, out=np.ones_like(counts), where=before > 0)
            rows[old:, column + 1] = np.sqrt(ratio)
            rows[old:, column + 2] = elementary.exp(-radius[old:])
        self.rows = rows


class _Shared(threading.local):
    """Tables of named thresholds, which depend only on their setting.

    Each thread has its own, since searches write to their `shares`.
    """

    def __init__(self) -> None:
        self.table = lru_cache(maxsize=8)(lambda name, at: ThresholdTable(NAMED[name](at)))


_shared = _Shared()
_SMALL_TABLE = 1 << 16


def table(thresholds: Any, setting: Setting) -> ThresholdTable:
    """The table of the user's `thresholds` in a setting; plans with the same share it."""
    if isinstance(thresholds, str):
        return _shared.table(thresholds, setting)
    return ThresholdTable(resolve(thresholds, setting))


def done_with(used: ThresholdTable) -> None:
    """Let go of a table that has grown large, so that it does not outlive the plan that needed it."""
    if len(used.rows) > _SMALL_TABLE:
        _shared.table.cache_clear()
