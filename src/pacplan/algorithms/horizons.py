"""How far to look ahead: the horizon that an accuracy needs, or that a budget affords."""

import math

from pacplan import _checks


def default_horizon(epsilon: float, gamma: float) -> int:
    """The paper's H = ceil( log_gamma( epsilon (1-gamma) / 2 ) ), at least 1, for gamma < 1."""
    if gamma == 0.0:
        return 1
    exact = (math.log(epsilon) + math.log1p(-gamma) - math.log(2.0)) / math.log(gamma)
    if exact > _checks.LARGEST:
        raise ValueError(
            f"epsilon={epsilon} with gamma={gamma} would need a horizon of {exact:.3g} steps; "
            "pass a horizon"
        )
    return max(1, math.ceil(exact - 1e-9))


def allocation(budget: int, gamma: float) -> tuple[int, int]:
    """The paper's split of a budget n (section 5): tau episodes of H steps.

    tau is the largest number with tau H(tau) <= n, where H(tau) = ceil( log tau / (2 log 1/gamma) ),
    at least 1.
    """

    def steps(episodes: int) -> int:
        if gamma == 0.0:
            return 1
        return max(1, math.ceil(math.log(episodes) / (2.0 * math.log(1.0 / gamma)) - 1e-9))

    fits, too_many = 1, budget + 1
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if middle * steps(middle) <= budget:
            fits = middle
        else:
            too_many = middle
    return fits, steps(fits)
