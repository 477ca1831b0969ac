"""Discounted values in units in which every step pays between 0 and 1."""

from typing import NamedTuple

from pacplan.engine.values import step_range
from pacplan.models.protocol import Model


class Units(NamedTuple):
    """How to get there and back, for planners of the infinite-horizon problem.

    A reward that was scaled from `reward_range` to [0, 1], x, becomes offset + slope x. (The two
    differ where an episode may end and 0 is not a reward.) A value v is low / (1 - gamma) + width v in
    the user's units.
    """

    low: float
    width: float
    offset: float
    slope: float
    ended: float  # the value of having ended
    rest: float  # 1 / (1 - gamma), the largest value

    def value(self, scaled: float) -> float:
        """A value in the user's units."""
        return self.low * self.rest + self.width * scaled


def units(model: Model, gamma: float) -> Units:
    """The units of a model's discounted values."""
    low, high = step_range(model.reward_range, model.may_end)
    lowest, highest = model.reward_range
    width, rest = high - low, 1.0 / (1.0 - gamma)
    offset, slope = (lowest - low) / width, (highest - lowest) / width
    return Units(low, width, offset, slope, -low / width * rest, rest)
