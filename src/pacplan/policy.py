"""Policy: what to do in the other states, and what that is worth."""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacplan.core.keys import key_of

# Instead of the number of a pair: the policy says nothing of this state.
NONE = -1


@dataclass(frozen=True, eq=False, repr=False)
class Charted(Mapping[Any, Any]):
    """Something of each charted state: a mapping from states, or from (state, steps taken).

    Attributes:
        states: the user's states, the one planned from first.
        horizon: steps of the problem; None: infinitely many, and nothing depends on the steps taken.
        chosen: the pair that is taken, [step, state], or `NONE`.
        content: what there is to tell, [step, state].
    """

    states: tuple[Any, ...]
    horizon: int | None
    chosen: NDArray[np.int64]
    content: Any

    def __post_init__(self) -> None:
        for array in (self.chosen, self.content):
            if isinstance(array, np.ndarray):
                array.setflags(write=False)

    @cached_property
    def _numbers(self) -> dict[Hashable, int]:
        return {key_of(state): number for number, state in enumerate(self.states)}

    def __getitem__(self, key: Any) -> Any:
        state, h = key, 0
        if self.horizon is not None:
            if not (isinstance(key, tuple) and len(key) == 2 and key[1] in range(len(self.chosen))):
                raise KeyError(
                    f"{key!r}: with a horizon the action depends on the steps taken; ask for (state, "
                    f"steps), with steps in 0, ..., {len(self.chosen) - 1}"
                )
            state, h = key
        number = self._numbers.get(key_of(state), NONE)
        if number == NONE or self.chosen[h, number] == NONE:
            after = "" if self.horizon is None else f" after {h} steps (keys are: state, steps)"
            raise KeyError(f"the policy does not know the state {state!r}{after}; plan from there")
        return self._told(h, number)

    def _told(self, h: int, number: int) -> Any:
        return float(self.content[h, number])

    def __iter__(self) -> Iterator[Any]:
        for h, number in np.argwhere(self.chosen != NONE).tolist():
            state = self.states[number]
            yield state if self.horizon is None else (state, h)

    def __len__(self) -> int:
        return int((self.chosen != NONE).sum())


@dataclass(frozen=True, eq=False, repr=False)
class Policy(Charted):
    """A policy for all charted states: a mapping from states to actions.

    `plan.policy[state]` is the action; with a horizon `plan.policy[state, h]`, after h steps. For a
    state that the proof does not cover it raises KeyError, and `plan.policy.get(state)` is None.

    With the probability of the plan's guarantee, all of this holds together. If you start in the state
    planned from and follow the policy as long as it covers the state, you earn at least `value`,
    discounted and on average, whatever you do afterwards. And the optimal value of every charted state
    lies between `lower` and `upper`. If you passed `value_bounds`, which bound optimal values only,
    there is one condition more: see `given`. (docs/atlas.md, Lemma 3.)

    Attributes:
        content: the action of each pair.
        value: lower bound on the policy's return from the state planned from.
        given: condition of this bound, besides those of the plan; mostly "", none.
        lower: lower bounds on the policy's return from each state on, and so on the optimal value
            there, under the same condition.
        upper: upper bounds on the optimal value of each state.
        calls: calls to the model of each pair.
        spent: calls of all actions of each state.
        transitions: estimated probabilities of the states after each pair, as a sparse matrix.
    """

    value: float
    given: str
    lower: Charted
    upper: Charted
    calls: NDArray[np.int64]
    spent: NDArray[np.int64]
    transitions: Any

    def _told(self, h: int, number: int) -> Any:
        return self.content[self.chosen[h, number]]

    def __repr__(self) -> str:
        return f"<Policy: {len(self):,} actions>"
