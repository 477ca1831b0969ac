"""What is asked, and what a round says it will prove."""

from dataclasses import dataclass

from pacplan.algorithms.atlas.claims import Claims, Functions
from pacplan.algorithms.atlas.estimate import Numbers, Values


@dataclass(frozen=True)
class Problem:
    """What is asked."""

    gamma: float
    horizon: int | None  # None: infinitely many steps
    by_value: bool  # whether the state's value is asked for, not an action
    rewards: tuple[float, float]  # their range
    may_end: bool
    top: Values  # what a state that was never seen is worth at most, by steps taken ...
    bottom: Values  # ... and at least
    least: float  # what every policy earns at least

    @property
    def steps(self) -> range:
        """The steps that functions are claimed for."""
        return range(self.horizon or 1)

    def after(self, h: int) -> int:
        """The step after a step."""
        return 0 if self.horizon is None else h + 1


@dataclass(frozen=True)
class Design:
    """A round before it begins: claims that are to be accepted, and what follows from them."""

    claims: Claims
    functions: Functions  # that the claims are about
    need: Values  # calls that this takes, by pair
    learn: Values  # variance over squared margin, by pair, the largest of its claims
    policy: Numbers  # the pair that is taken, [step, state]; -1 outside
    best: int  # index of our action
    losses: Values  # of each action, how much better than ours it can be at most
    highest: Values  # bounds on the values of the actions
    lower: float  # bound on the value of our policy
    reference: int | None  # the reference state

    @property
    def cost(self) -> float:
        """Calls that it seems to take."""
        return float(self.need.sum())
