"""Exploit episodes that end early, by chance, for a return of the same mean (docs/bracket.md, "Below").

Late steps are as dear as early ones, but discounted. Before such a step the search goes on with
probability q only; if it does, what is still to come counts 1/q times. What it is expected to be is
taken into account either way, so only the error of that estimate is magnified.
"""

from typing import Any

from pacplan.algorithms.bracket.constants import ROULETTE_DEPTH
from pacplan.algorithms.bracket.records import EXPLOIT
from pacplan.compiled.jit import inlined


@inlined
def begin(search: Any) -> None:
    """Nothing was earned yet."""
    decision = search.decision[0]
    decision.paid = 0.0
    decision.earned = 0.0
    decision.discount = 1.0


@inlined
def earn(search: Any, paid: float, h: int) -> None:
    """The step at depth h paid a reward, or one of the same mean counts for it."""
    settings, decision = search.settings[0], search.decision[0]
    decision.paid += settings.gamma**h * paid
    decision.earned += decision.discount * paid
    decision.discount *= settings.gamma


@inlined
def earn_last(search: Any, counted: float) -> None:
    """Count the reward of the last step, which was not taken."""
    settings, decision = search.settings[0], search.decision[0]
    decision.paid += settings.gamma ** (settings.horizon - 1) * counted
    decision.earned += decision.discount * counted
    decision.discount = 0.0


@inlined
def concluded(search: Any, h: int, estimate: float, ties: Any) -> bool:
    """Whether the episode ends before its step at depth h, for what the rest is expected to be worth.

    With A earned and D the weight of what is to come, it ends for A + D v with probability 1 - q;
    otherwise A falls by D v (1/q - 1), and D becomes D/q. For any v and q the mean stays the same; q is
    at least so large that A + D rest, at the least rest that is possible, stays above the floor.
    """
    settings, decision = search.settings[0], search.decision[0]
    if decision.kind != EXPLOIT or h < ROULETTE_DEPTH:
        return False
    weight, floor = decision.discount, search.root[decision.play].floor
    # Whatever is done, the whole episode is paid at least the floor.
    least = max(floor - decision.paid, 0.0) / settings.gamma**h
    value = max(estimate, least)
    room = max(decision.earned + weight * least - floor, 0.0)
    risk = weight * (value - least)
    go_on = settings.go_on if risk == 0.0 else max(settings.go_on, risk / (room + risk))
    if go_on >= 1.0:
        return False
    if ties.random() < go_on:
        decision.earned -= weight * value * (1.0 / go_on - 1.0)
        decision.discount /= go_on
        return False
    decision.earned += weight * value
    decision.discount = 0.0
    return True
