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
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from threading import get_ident
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan.bounds import elementary
from pacplan.bounds.bernoulli import MOST_SHARES
from pacplan.core import checks

Threshold = Callable[[NDArray[np.float64]], NDArray[np.float64]]

# Multiples of log tau, for rewards and for transitions.
_FIXED_BUDGET = {"budget": (1.0, 1.0), "published": (1.0, 0.1), "sharp": (0.2, 0.2)}
NAMED = ("lemma", "paper", *_FIXED_BUDGET)


class Setting(NamedTuple):
    """What thresholds may depend on, besides the number n of visits to a pair."""

    delta: float
    successors: int
    actions: int | None
    horizon: int
    episodes: int | None
    pairs: int | None = None  # most that a search can have, if that is known to be less than (BK)^H


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


def for_a_budget(thresholds: Any) -> bool:
    """Whether these are defined only for a fixed budget."""
    return isinstance(thresholds, str) and thresholds in _FIXED_BUDGET


def check(thresholds: Any) -> None:
    """Raise unless `thresholds` is a name or a `Thresholds`."""
    if not isinstance(thresholds, Thresholds):
        checks.choice("thresholds (or a pacplan.bounds.Thresholds)", thresholds, NAMED)


def resolve(thresholds: Any, setting: Setting) -> Thresholds:
    """The exploration functions that the user asked for, in one setting."""
    if isinstance(thresholds, Thresholds):
        return thresholds
    if thresholds == "lemma":
        return _lemma(setting)
    if thresholds == "paper":
        price = -math.log(setting.delta)
        return Thresholds(
            # It is undefined at n = 1, and read as log(max(log n, 1)).
            lambda n: price + elementary.log(np.maximum(elementary.log(n), 1.0)),
            lambda n: price + elementary.log(n),
            proven=False,
            name="paper",
        )
    if setting.episodes is None:
        raise ValueError(f"thresholds={thresholds!r} needs a budget: plan(..., budget=n)")
    for_rewards, rest = (part * math.log(setting.episodes) for part in _FIXED_BUDGET[thresholds])
    return Thresholds(
        lambda n: np.full_like(n, for_rewards),
        lambda n: np.full_like(n, rest),
        proven=False,
        name=thresholds,
    )


def _lemma(setting: Setting) -> Thresholds:
    """The paper's Lemma 2.

    It counts (BK)^H pairs, or fewer if the setting knows so. At B = 1 there are more, but two of its
    three events are sure, so the factor 3 makes up for that; at B = K = 1 there are H.
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
        return np.asarray(price + (b - 1) * (1.0 + elementary.log1p(n / (b - 1))))

    return Thresholds(lambda n: price + 1.0 + elementary.log1p(n), transition, True, "lemma")


# Columns of a table of radii. After each there is one for e^(-c), which is 0 until a search fills it.
REWARD, TRANSITION = 0, 2
_SMALL_TABLE = 1 << 16


class Radii:
    """Radii c = beta(n) / n as far as searches need them, and what these keep beside them."""

    def __init__(self, thresholds: Thresholds) -> None:
        self.thresholds = thresholds
        self.rows = np.zeros((1, 4))  # for n = 1, 2, ...; row 0 is not used
        self.shares = np.zeros(MOST_SHARES)  # see `share_upper`

    def extend(self, most: int) -> None:
        """Make sure that rows 1..most exist."""
        old = len(self.rows)
        if most < old:
            return
        if most > _SMALL_TABLE:  # It is not to outlive the plan.
            _shared.cache_clear()
        rows = np.zeros((max(most + 1, old * 3 // 2, 256), 4))
        rows[:old] = self.rows
        counts = np.arange(old, len(rows), dtype=np.float64)
        chosen = self.thresholds
        for column, function in ((REWARD, chosen.reward), (TRANSITION, chosen.transition)):
            beta = np.asarray(function(counts), np.float64)
            if beta.shape != counts.shape or not (beta >= 0.0).all() or np.isinf(beta).any():
                rule = "thresholds must return a finite number >= 0 for every n >= 1"
                raise ValueError(f"{rule}; those named {chosen.name!r} do not")
            rows[old:, column] = beta / counts
        self.rows = rows


@lru_cache(maxsize=8)
def _shared(thread: int, name: str, setting: Setting) -> Radii:
    # Searches write to it, so each thread has its own.
    return Radii(resolve(name, setting))


def radii_of(thresholds: Any, setting: Setting) -> Radii:
    """The radii of the user's `thresholds` in a setting; plans with the same share them."""
    if isinstance(thresholds, str):
        return _shared(get_ident(), thresholds, setting)
    return Radii(resolve(thresholds, setting))
