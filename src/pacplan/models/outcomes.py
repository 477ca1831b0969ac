"""Models given by their outcomes: a function that lists what can happen, and how probable it is."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from pacplan.core import checks
from pacplan.core.notes import shown
from pacplan.models.protocol import BrokenPromiseError
from pacplan.models.simulator import Simulator, name_of

# By how much probabilities may fail to add up to 1, and rewards to keep their range, for rounding.
_ROUNDING = 1e-9


class Outcome(NamedTuple):
    """What can happen after an action: with which probability, where it leads and what it pays."""

    probability: float
    successor: Any
    reward: float
    terminated: bool


class Outcomes(Simulator):
    """A model from a function that lists the outcomes of an action, with their probabilities.

    Sampling planners draw from these lists. `pacplan.plan` does not sample: it explores the states from
    yours on and computes certain bounds (`ValueIteration`), so there can be infinitely many states.

    Args:
        outcomes: `outcomes(state, action) -> [(probability, next_state, reward, terminated), ...]`.
            States are hashable, probabilities add up to 1, and the same question always has the same
            answer. An outcome may be listed twice: probabilities add up.
        actions: as for `Simulator`: a number, a list, or a function of the state that returns either.
        reward_range: (lowest, highest) reward; every listed reward is checked. None: unknown; then only
            `ValueIteration` can plan, and it has bounds when it has explored every reachable state.
        successors: B, the largest number of next states of any state and action, if you know it.
        may_end: False promises that `terminated` is never true.
        initial: state to plan from if none is given.
    """

    def __init__(
        self,
        outcomes: Callable[[Any, Any], Iterable[tuple[float, Any, float, bool]]],
        *,
        actions: int | Sequence[Any] | Callable[[Any], Any],
        reward_range: tuple[float, float] | None = None,
        successors: int | None = None,
        may_end: bool = True,
        initial: Any = None,
    ) -> None:
        if not callable(outcomes):
            raise TypeError(f"outcomes must be a function, got {outcomes!r}")
        self._outcomes = outcomes
        super().__init__(
            self._draw,
            actions=actions,
            successors=successors,
            reward_range=(0.0, 1.0) if reward_range is None else reward_range,
            may_end=may_end,
            initial=initial,
        )
        if reward_range is None:
            self.reward_range = (-math.inf, math.inf)
        self._name = name_of(outcomes)

    def outcomes(self, state: Any, action: Any) -> list[Outcome]:
        """The outcomes of an action, checked; those that cannot happen are left out.

        Raises:
            BrokenPromiseError: probabilities that do not add up to 1, a reward out of range, ...
        """
        try:
            listed = [self._checked(outcome) for outcome in self._outcomes(state, action)]
        except Exception as error:
            error.add_note(f"raised by outcomes({shown(state)}, {shown(action)})")
            raise
        total = math.fsum(outcome.probability for outcome in listed)
        if abs(total - 1.0) > _ROUNDING:
            raise BrokenPromiseError(
                f"the probabilities of outcomes({shown(state)}, {shown(action)}) add up to "
                f"{total:.12g}, not 1"
            )
        return [
            outcome._replace(probability=outcome.probability / total)
            for outcome in listed
            if outcome.probability > 0.0
        ]

    def _checked(self, given: Any) -> Outcome:
        try:
            p, successor, reward, terminated = given
            outcome = Outcome(float(p), successor, float(reward), bool(terminated))
            hash(successor)
        except (TypeError, ValueError):
            raise BrokenPromiseError(
                "an outcome must be (probability, next_state, reward, terminated) with a hashable "
                f"state, got {shown(given)}"
            ) from None
        (low, high), reward = self.reward_range, outcome.reward
        rounding = checks.REWARD_ROUNDING * (high - low) if math.isfinite(high - low) else 0.0
        wrong = ""
        if not 0.0 <= outcome.probability <= 1.0 + _ROUNDING:
            wrong = f"a probability must lie in [0, 1], got {outcome.probability}"
        elif not low - rounding <= reward <= high + rounding or math.isinf(reward):
            wrong = f"the reward {reward} lies outside reward_range=({low}, {high}); pass the right one"
        elif outcome.terminated and not self.may_end:
            wrong = "an outcome terminates, but the model promises may_end=False"
        if wrong:
            raise BrokenPromiseError(wrong)
        return outcome

    def _draw(self, state: Any, action: Any, rng: Any) -> tuple[Any, float, bool]:
        """One of the outcomes, drawn."""
        listed = self.outcomes(state, action)
        left = rng.random()
        for outcome in listed[:-1]:
            left -= outcome.probability
            if left < 0.0:
                return outcome[1:]
        return listed[-1][1:]
