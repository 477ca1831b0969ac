"""What is asked, and what a round says it will prove."""

from dataclasses import dataclass

from pacplan.algorithms.atlas.claims import Claims, Functions
from pacplan.algorithms.atlas.estimate import Numbers, Values


@dataclass(frozen=True)
class Problem:
    """What is asked.

    Attributes:
        gamma: discount.
        horizon: steps; None: infinitely many.
        by_value: whether the state's value is asked for, not an action.
        rewards: their range.
        may_end: whether episodes may end.
        top: what a state that was never seen is worth at most, by steps taken.
        bottom: what it is worth at least.
        least: what every policy earns at least.
    """

    gamma: float
    horizon: int | None
    by_value: bool
    rewards: tuple[float, float]
    may_end: bool
    top: Values
    bottom: Values
    least: float

    @property
    def steps(self) -> range:
        """The steps that functions are claimed for."""
        return range(self.horizon or 1)

    def after(self, h: int) -> int:
        """The step after a step."""
        return 0 if self.horizon is None else h + 1


@dataclass(frozen=True)
class Design:
    """A round before it begins.

    Attributes:
        claims: what is to be accepted.
        functions: that the claims are about.
        need: calls that this takes, by pair.
        learn: variance over squared margin, by pair, the largest of its claims.
        policy: the pair that is taken, [step, state]; -1 outside.
        best: index of our action.
        losses: of each action, how much better than ours it can be at most.
        highest: bounds on the values of the actions.
        lower: bound on the value of our policy.
        reference: the reference state; None: there is none.
    """

    claims: Claims
    functions: Functions
    need: Values
    learn: Values
    policy: Numbers
    best: int
    losses: Values
    highest: Values
    lower: float
    reference: int | None

    @property
    def cost(self) -> float:
        """Calls that it seems to take."""
        return float(self.need.sum())
