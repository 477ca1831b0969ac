"""What is asked, and what a round says it will prove."""

from dataclasses import dataclass
from typing import NamedTuple

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
    """

    gamma: float
    horizon: int | None
    by_value: bool
    rewards: tuple[float, float]
    may_end: bool
    top: Values
    bottom: Values

    @property
    def steps(self) -> range:
        """The steps that functions are claimed for."""
        return range(self.horizon or 1)

    def after(self, h: int) -> int:
        """The step after a step."""
        return 0 if self.horizon is None else h + 1


class Kind(NamedTuple):
    """What designs of one problem differ in.

    Attributes:
        reference: the reference state; None: there is none.
        share: the part of the accuracy that episodes of the policy may miss, instead of claims about
            it; 0: there are no episodes.
    """

    reference: int | None = None
    share: float = 0.0


@dataclass(frozen=True)
class Walk:
    """Episodes of the policy that are to earn a value, or little less.

    Attributes:
        function: the values that it is compared with, by their number among the functions.
        short: by how much it may miss them on average.
        variance: of an episode, as estimated.
        steps: of an episode, likewise.
        barrier: where episodes end that went badly.
        worst: the least that an episode can earn beyond the values.
        need: episodes that the bet needs on average.
    """

    function: int
    short: float
    variance: float
    steps: float
    barrier: float
    worst: float
    need: float


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
        walk: the episodes to play; None: there are none.
        kind: what it differs in from others.
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
    walk: Walk | None
    kind: Kind

    @property
    def cost(self) -> float:
        """Calls that it seems to take."""
        return float(self.need.sum()) + (self.walk.need * self.walk.steps if self.walk else 0.0)
