"""A shop that orders stock for a demand it does not know."""

from collections.abc import Sequence

import numpy as np

from pacplan.core import checks
from pacplan.models.tabular import TabularMDP


def inventory(
    capacity: int = 3,
    demand: Sequence[float] = (0.25, 0.5, 0.25),
    *,
    price: float = 8.0,
    order: float = 4.0,
    unit: float = 2.0,
    holding: float = 1.0,
) -> TabularMDP:
    """Order stock, sell what is asked for, lose the sales that stock does not cover.

    Puterman's problem ("Markov decision processes", 1994, section 3.2), by default with his numbers.
    Each month begins with s units; a more are ordered and arrive at once, at a cost of
    order + unit x a unless a = 0; storing all of them costs holding x (s + a); then customers ask for
    a random number of units, and what can be sold of it brings in `price` each. It pays to wait until
    stock falls below one level and then to fill it up to another: the (s, S) policies.

    States are the units in stock, 0..capacity; action a orders a units, up to what there is room for.
    reward_range runs from the worst to the best month that can happen.

    Args:
        capacity: most units in stock.
        demand: probabilities that 0, 1, 2, ... units are asked for.
        price: what a unit sells for.
        order: fixed cost of ordering anything.
        unit: cost of a unit ordered.
        holding: cost of storing a unit for a month.
    """
    room = checks.integer("capacity", capacity, least=1, most=10_000)
    asked = np.array([checks.within_one("a probability of demand", p) for p in demand])
    if abs(asked.sum() - 1.0) > 1e-8:
        raise ValueError(f"demand must be probabilities that sum to 1, got {demand!r}")
    earns, to_order, a_unit, to_hold = (
        checks.real(name, value)
        for name, value in (("price", price), ("order", order), ("unit", unit), ("holding", holding))
    )
    stock, ordered, left = np.ogrid[: room + 1, : room + 1, : room + 1]
    offered = stock + ordered
    sold = offered - left
    # Stock left over has the probability of the demand it implies; no stock, of all larger ones too.
    chances = np.zeros(2 * room + 1)
    chances[: len(asked)] = asked[: 2 * room + 1]
    at_least = np.append(asked[::-1].cumsum()[::-1], np.zeros(2 * room + 1))
    probabilities = np.where(left == 0, at_least[offered], chances[np.clip(sold, 0, 2 * room)])
    probabilities = np.where(sold >= 0, probabilities, 0.0)
    rewards = earns * sold - to_order * (ordered > 0) - a_unit * ordered - to_hold * offered
    available = (stock + ordered <= room)[..., 0]
    possible = available[..., np.newaxis] & (probabilities > 0.0)
    lowest, highest = float(rewards[possible].min()), float(rewards[possible].max())
    return TabularMDP(
        probabilities,
        np.where(possible, rewards, lowest),
        available=available,
        reward_range=(lowest, highest),
    )
