"""How far to look ahead: the horizon that an accuracy needs, or that a budget affords."""

import math
from functools import lru_cache
from typing import Any

from pacplan.core import checks
from pacplan.models.protocol import Model

# Without an accuracy or a budget, plan as for so many episodes: then gamma^H is at most 1/100.
_EPISODES = 10_000


def check_gamma_and_horizon(gamma: Any, horizon: Any) -> tuple[float, int | None]:
    """Both, checked: gamma in [0, 1], and a horizon of at least 1, or None unless gamma = 1."""
    discount = checks.real("gamma", gamma)
    if not 0.0 <= discount <= 1.0:
        raise ValueError(f"gamma must lie in [0, 1], got {gamma}")
    if horizon is None:
        if discount == 1.0:
            raise ValueError("gamma=1 needs an explicit horizon: pass horizon=")
        return discount, None
    return discount, checks.integer("horizon", horizon, least=1, most=checks.LARGEST)


def horizon_for(given: int | None, gamma: float, budget: int | None) -> int:
    """The horizon of a planner without an accuracy: its own, or as for `split`."""
    return split(given, gamma, budget)[1]


def split(given: int | None, gamma: float, budget: int | None) -> tuple[int, int]:
    """A number of episodes, and their horizon: the given one, or what the paper gives the budget.

    A time limit does not say how many episodes there will be. It is planned as for 10,000.
    """
    if given is not None:
        return (_EPISODES if budget is None else max(1, budget // given)), given
    return _within_reach(_EPISODES, gamma) if budget is None else allocation(budget, gamma)


def check_steps(model: Model, horizon: int | None) -> None:
    """Refuse a horizon beyond the steps that a non-stationary model is defined for; None: endless."""
    if model.steps is not None and (horizon is None or horizon > model.steps):
        planned = "has no horizon" if horizon is None else f"looks {horizon} steps ahead"
        raise ValueError(
            f"the model is defined for {model.steps} steps, but the planner {planned}; pass "
            f"horizon={model.steps} or fewer to it, or to one that takes a horizon, such as MDPGapE"
        )


@lru_cache(maxsize=64)  # A plan asks for it several times.
def default_horizon(epsilon: float, gamma: float) -> int:
    """The paper's H = ceil( log_gamma( epsilon (1-gamma) / 2 ) ), at least 1, for gamma < 1."""
    if gamma == 0.0:
        return 1
    if epsilon == 0.0:
        raise ValueError("epsilon is too small for the width of the rewards; pass horizon=")
    exact = (math.log(epsilon) + math.log1p(-gamma) - math.log(2.0)) / math.log(gamma)
    if exact > checks.LARGEST:
        raise ValueError(
            f"epsilon={epsilon} with gamma={gamma} would need a horizon of {exact:.3g} steps; "
            "pass a horizon"
        )
    return max(1, math.ceil(exact - 1e-9))


@lru_cache(maxsize=64)
def allocation(budget: int, gamma: float) -> tuple[int, int]:
    """The paper's split of a budget n (section 5): tau episodes of H steps.

    tau is the largest number with tau H(tau) <= n, where H(tau) = ceil( log tau / (2 log 1/gamma) ),
    at least 1.

    Raises:
        ValueError: H would be out of reach.
    """
    fits, too_many = 1, budget + 1
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if middle * _steps(middle, gamma) <= budget:
            fits = middle
        else:
            too_many = middle
    return _within_reach(fits, gamma)


def _steps(episodes: int, gamma: float) -> int:
    if gamma == 0.0:
        return 1
    return max(1, math.ceil(math.log(episodes) / (2.0 * math.log(1.0 / gamma)) - 1e-9))


def _within_reach(episodes: int, gamma: float) -> tuple[int, int]:
    horizon = _steps(episodes, gamma)
    if horizon > checks.LARGEST:
        raise ValueError(
            f"{episodes} episodes with gamma={gamma} would have {horizon:.3g} steps each; pass horizon="
        )
    return episodes, horizon


def most_actions(planner: Any, model: Model) -> int:
    """K, for planners that cannot do without it."""
    if model.max_actions is None:
        raise ValueError(
            f"{type(planner).__name__} needs K, the largest number of actions of a state: pass "
            "max_actions= to the model"
        )
    return model.max_actions


def most_successors(planner: Any, model: Model) -> int:
    """B, for planners that cannot do without it."""
    if model.successors is None:
        raise ValueError(
            f"{type(planner).__name__} needs B, the largest number of successors of a state and "
            "action: pass successors= to the model, or use Bracket, which needs none. For a Gymnasium "
            "environment, model.check() tells how many were seen"
        )
    return model.successors
