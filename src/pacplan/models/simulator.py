"""Models given by a function that draws a transition: plain Python, or jitted with Numba."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numba.extending import is_jitted

from pacplan.core import checks
from pacplan.core.identity import described
from pacplan.core.keys import all_distinct
from pacplan.core.notes import shown
from pacplan.models.jitted import JittedSession
from pacplan.models.protocol import BrokenPromiseError, Model, Session
from pacplan.models.sessions import PythonSession

# The number of actions of all states, the actions, or a function of the state that says either.
Offered = int | tuple[Any, ...] | Callable[[Any], Any]


class Simulator(Model):
    """A model from a function that draws one transition.

    Args:
        step: `step(state, action, rng) -> (next_state, reward, terminated)`. A plain Python function
            takes any hashable states, and must not change them; equal states are one. A function
            compiled with Numba (`@numba.njit`) takes integer states and runs inside the search. All
            randomness must come from `rng`: a `numpy.random.Generator`, or for a jitted step a
            `pacplan.Stream`, which has its methods `random`, `integers`, `normal` and others. The
            reward of a transition that terminates counts.
        actions: the number K of actions of every state; they are 0..K-1. Or, for a Python simulator, a
            list of actions (or a range, an array), any distinct objects that `step` takes. Or a
            function of the state that returns either, and always the same for the same state; for a
            jitted `step` it is jitted too and returns the number.
        successors: B, the largest number of distinct next states of any state and action (all
            transitions that terminate count as one more). With 1, rewards may still be random. None:
            unknown; planners that need it say so, and `Bracket` does not need it.
        reward_range: (lowest, highest) reward. Every reward is checked; it may lie outside by rounding
            only, 1e-9 of the width.
        max_actions: K, if `actions` is a function. Only some planners, such as `MDPGapE`, need it.
        stationary: False: the transition depends on the number h of steps taken since the root (the
            paper's p_h and r_h), and the signature is `step(state, action, rng, h)`, h = 0, 1, ...
        may_end: False promises that `terminated` is never true, which tightens the bounds if
            `reward_range` does not contain 0.
        initial: state to plan from if none is given.
        two_player: True: a game, for planners of games (`UGapEMCTS`). The players move in turn, and
            only the move that ends the game pays.
        states: all states, reachable or not, such as `range(31)`; or their maximum number. `Atlas` then
            often needs fewer calls. Any other state ends the plan with an error.
    """

    def __init__(
        self,
        step: Callable[..., Any],
        *,
        actions: int | Sequence[Any] | Callable[[Any], Any],
        successors: int | None = None,
        reward_range: tuple[float, float] = (0.0, 1.0),
        max_actions: int | None = None,
        stationary: bool = True,
        may_end: bool = True,
        initial: Any = None,
        two_player: bool = False,
        states: int | Iterable[Any] | None = None,
    ) -> None:
        if not callable(step):
            raise TypeError(f"step must be a function, got {step!r}")
        self.step = step
        self.compiled = bool(is_jitted(step))
        self.anywhere = not self.compiled
        self.offered, self.max_actions = self._offer(actions, max_actions)
        self.same_actions = not callable(self.offered)
        if successors is not None:
            successors = checks.integer("successors", successors, least=1, most=checks.LARGEST)
        self.successors = successors
        self.reward_range = checks.interval("reward_range", reward_range, "reward")
        self.stationary = checks.flag("stationary", stationary)
        self.may_end = checks.flag("may_end", may_end)
        self.two_player = checks.flag("two_player", two_player)
        self.states, self.listed = self._counted(states)
        if initial is not None:
            self._check_state(initial, "initial")
        self._initial = initial
        self._name = f"{name_of(step)} ({'jitted' if self.compiled else 'python'})"

    def _offer(self, given: Any, most: int | None) -> tuple[Offered, int | None]:
        """The actions of all states, their number, or the function that lists them; and K."""
        if most is not None:
            most = checks.integer("max_actions", most, least=1, most=checks.LARGEST)
        if callable(given):
            if self.compiled and not is_jitted(given):
                raise TypeError(
                    "step is jitted, so the function given as actions must be jitted as well "
                    "(@numba.njit) and return the number of actions of a state"
                )
            return given, most
        try:
            listed = labels_of(given, "actions", None)
        except BrokenPromiseError as error:
            raise ValueError(str(error)) from None
        count = len(listed)
        if most not in (None, count):
            raise ValueError(f"max_actions={most} contradicts actions={count}; leave it out")
        if numbered(listed):
            return count, count
        if self.compiled:
            raise TypeError(f"step is jitted, so its actions are numbers from 0; pass actions={count}")
        return listed, count

    def _counted(self, given: int | Iterable[Any] | None) -> tuple[int | None, tuple[Any, ...] | None]:
        """The number of states, and the states, as far as they are given."""
        if given is None:
            return None, None
        if not isinstance(given, Iterable):
            name = "states (a list of the states, such as range(31), or their number)"
            return checks.integer(name, given, least=1, most=checks.LARGEST), None
        listed = plain(given)
        for state in listed:
            self._check_state(state, "each of states")
        if not listed or not all_distinct(listed):
            raise ValueError("states must list each state once, and at least one")
        return len(listed), listed

    def _check_state(self, state: Any, name: str) -> None:
        if self.compiled:
            checks.integer(name, state, least=-(2**63), most=2**63 - 1)
            return
        try:
            hash(state)
        except TypeError:
            raise TypeError(
                f"{name} must be hashable, so that equal states are recognised; got {state!r} "
                f"({type(state).__name__}). Use tuples, strings or numbers"
            ) from None

    def initial_state(self) -> Any:
        """The state given as `initial`."""
        if self._initial is None:
            raise ValueError("name a state to plan from: pass state=, or Simulator(initial=...)")
        return self._initial

    def actions(self, state: Any) -> tuple[Any, ...]:
        """The actions available in a state."""
        self._check_state(state, "state")
        if not callable(self.offered):
            return self.offered if isinstance(self.offered, tuple) else tuple(range(self.offered))
        try:
            given = self.offered(state)
        except BaseException as error:
            error.add_note(f"raised by the model's actions in state {shown(state)}")
            raise
        return labels_of(given, f"actions({shown(state)})", self.max_actions)

    def open(self, seed: np.random.SeedSequence) -> Session:
        """Start a session for one plan."""
        return JittedSession(self, seed) if self.compiled else PythonSession(self, seed)

    # What environments do, and functions need not.

    def verify(self) -> None:
        """Raise BrokenPromiseError if calls were seen to share what they must not."""

    def forget_stream(self) -> None:
        """Let the next draw depend on its generator alone, not on draws before."""

    def fingerprint(self) -> str:
        """What identifies this model: its promises, its functions, and what they held when first asked.

        They may keep what they have computed, say, which makes them no other model.
        """
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        promises = (self.stationary, self.may_end, self.two_player)
        return f"{self!r} {promises} {described(self.step)} {described(self.offered)}"

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self._name}, max_actions={self.max_actions}, "
            f"successors={self.successors}, reward_range={self.reward_range})"
        )


def name_of(function: Any) -> str:
    """The name of a user's function."""
    return getattr(function, "__name__", None) or repr(function)


def labels_of(given: Any, asked: str, most: int | None) -> tuple[Any, ...]:
    """The actions of a state from their number or their list, which were given for what is asked."""
    counted = isinstance(given, int | np.integer) and not isinstance(given, bool)
    listed = isinstance(given, Sequence | np.ndarray) and not isinstance(given, str | bytes)
    if not (counted or listed):
        raise BrokenPromiseError(
            f"{asked} must be a number of actions or a list of them, got {given!r}"
        )
    count, most = int(given) if counted else len(given), most or checks.LARGEST
    if count < 1:
        raise BrokenPromiseError(
            f"{asked} offers no action; a transition to a state without actions must terminate"
        )
    if count > most:
        raise BrokenPromiseError(f"{asked} offers {count} actions, more than max_actions={most}")
    found = tuple(range(count)) if counted else plain(given)
    if listed and not all_distinct(found):
        raise BrokenPromiseError(f"{asked} lists an action twice: {given!r}")
    return found


def plain(listed: Any) -> tuple[Any, ...]:
    """What is listed, numbers of NumPy as Python's."""
    return tuple(one.item() if isinstance(one, np.generic) else one for one in listed)


def numbered(labels: Sequence[Any]) -> bool:
    """Whether actions are the numbers 0, 1, ..."""
    return all(type(label) is int and label == i for i, label in enumerate(labels))
