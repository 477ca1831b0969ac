"""Models given by a function that draws a transition: plain Python, or jitted with Numba."""

import math
import re
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core.errors import NumbaError
from numba.extending import is_jitted
from numpy.typing import NDArray

from pacplan.compiled.jit import address_of, records
from pacplan.compiled.streams import streams
from pacplan.core import checks
from pacplan.core.identity import described
from pacplan.core.keys import all_distinct, same, signs, told_apart
from pacplan.core.notes import add_note, pass_on, shown
from pacplan.models import handles, states
from pacplan.models.handles import COUNT, STEP, CompiledHandle, Handle, PythonHandle, handle_of
from pacplan.models.protocol import BrokenPromiseError, CompiledSession


class Simulator:
    """A model over a function that draws one transition.

    Args:
        step: `step(state, action, rng) -> (next_state, reward, terminated)`. A plain Python function
            takes any hashable states, and must not change them. One jitted with Numba
            (`@numba.njit`) takes integer states and runs inside the compiled search. All randomness
            must come from `rng`: a `numpy.random.Generator`, or for a jitted step a `pacplan.Stream`,
            which has its methods `random`, `integers`, `normal` and others. The reward of a transition
            that terminates counts.
        actions: how many actions every state has, K: they are 0..K-1. Or, for a Python simulator,
            the list of them (or a range, an array), any distinct objects that `step` understands. Or a
            function of the state that returns either, and always the same for the same state;
            for a jitted `step` it is jitted too and returns the number.
        successors: B, the largest number of distinct next states of any state and action (all
            transitions that terminate count as one more). 1 says nothing of rewards, which may still
            be random. None: not known; planners that need it say so, and `Bracket` does without.
        reward_range: (lowest, highest) reward. Every reward is checked against it, and may lie
            outside by no more than rounding, 1e-9 of its width.
        max_actions: K, if `actions` is a function. Not required; if it is given, it is checked.
        stationary: False: the transition depends on the number h of steps taken since the root (the
            paper's p_h and r_h), and the signature is `step(state, action, rng, h)`, h = 0, 1, ...
        may_end: False promises that `terminated` is never true, which tightens the bounds if
            `reward_range` does not contain 0.
        initial: state to plan from if none is given.
        two_player: True: a game, for planners of games (`UGapEMCTS`). The players move in turn, and
            only the move that ends the game pays.
        states: the states there are, reachable or not, such as `range(31)`; or, if you cannot list
            them, how many there can be. `Atlas` then needs fewer calls. A state beyond them ends the
            plan with an error.
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
        self._step = step
        if max_actions is not None:
            max_actions = checks.integer("max_actions", max_actions, least=1, most=checks.LARGEST)
        self._actions: int | Callable[[Any], Any]
        if _is_list(actions):
            listed = labels(actions, "any state", max_actions)
            max_actions = len(listed)
            numbers = all(type(label) is int and label == i for i, label in enumerate(listed))
            actions = len(listed) if numbers else _SameActions(listed)
        if callable(actions):
            self._actions = actions
            self.max_actions = max_actions
        else:
            try:
                self._actions = checks.integer("actions", actions, least=1, most=checks.LARGEST)
            except TypeError:
                raise TypeError(
                    "actions must be a whole number, a list, or a function of the state that returns "
                    f"one or the other; got {actions!r}"
                ) from None
            if max_actions not in (None, self._actions):
                raise ValueError(
                    f"max_actions={max_actions} contradicts actions={self._actions}; leave it out"
                )
            self.max_actions = self._actions
        self.same_actions = not callable(actions) or isinstance(actions, _SameActions)
        self.successors = successors
        if successors is not None:
            self.successors = checks.integer("successors", successors, least=1, most=checks.LARGEST)
        self.reward_range = checks.reward_range(reward_range)
        self.random_rewards: bool | None = None
        self.stationary = checks.flag("stationary", stationary)
        self.may_end = checks.flag("may_end", may_end)
        self.two_player = checks.flag("two_player", two_player)
        self.steps: int | None = None
        self._initial = initial
        self._fingerprint: str | None = None
        self.compiled = bool(is_jitted(step))
        self.anywhere = not self.compiled
        self.states, self.listed = self._counted(states)
        if initial is not None:
            self._check_state(initial, "initial")
        if self.compiled and isinstance(actions, _SameActions):
            raise TypeError(
                f"step is jitted, so its actions are numbers from 0; pass actions={self.max_actions}"
            )
        if self.compiled and callable(actions) and not is_jitted(actions):
            raise TypeError(
                "step is jitted, so the function given as actions must be jitted as well "
                "(@numba.njit) and return the number of actions of a state"
            )

    def _counted(self, given: int | Iterable[Any] | None) -> tuple[int | None, tuple[Any, ...] | None]:
        """The number of states, and the states, as far as they are given."""
        if given is None:
            return None, None
        if isinstance(given, Iterable) and not isinstance(given, str | bytes):
            listed = tuple(state.item() if isinstance(state, np.generic) else state for state in given)
            for state in listed:
                self._check_state(state, "each of states")
            if not listed or not all_distinct(listed):
                raise ValueError("states must list each state once, and at least one")
            return len(listed), listed
        try:
            return checks.integer("states", given, least=1, most=checks.LARGEST), None
        except TypeError:
            raise TypeError(
                "states must be a list of the states, such as range(31), or their number; got "
                f"{given!r}"
            ) from None

    def initial_state(self) -> Any:
        """The state given as `initial`."""
        if self._initial is None:
            raise ValueError("name a state to plan from: pass state=, or Simulator(initial=...)")
        return self._initial

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

    def actions(self, state: Any) -> tuple[Any, ...]:
        """The actions available in a state."""
        self._check_state(state, "state")
        if not callable(self._actions):
            return tuple(range(self._actions))
        try:
            given = self._actions(state)
        except Exception as error:
            add_note(error, f"raised by the model's actions in state {shown(state)}")
            raise
        return labels(given, state, self.max_actions)

    @property
    def step(self) -> Callable[..., Any]:
        """The function that draws a transition."""
        return self._step

    @property
    def offered(self) -> int | Callable[[Any], Any]:
        """The number of actions, or a function of the state that says."""
        return self._actions

    def open(self, seed: np.random.SeedSequence) -> "PythonSession | JittedSession":
        """Start a session for one plan."""
        if self.compiled:
            return JittedSession(self._step, self._actions, self.stationary, seed)
        return PythonSession(self, seed)

    def fingerprint(self) -> str:
        """What identifies this model: its promises, its functions, and what they held when first asked.

        They may keep what they have computed, say, which makes them no other model.
        """
        if self._fingerprint is None:
            promises = (self.stationary, self.may_end, self.two_player)
            functions = f"{described(self._step)} {described(self._actions)}"
            self._fingerprint = f"{self!r} {promises} {functions}"
        return self._fingerprint

    def _repr_html_(self) -> str:
        # Imported here, so that no kernel depends on how a model is shown.
        from pacplan.models.showing import model_html

        name = getattr(self._step, "__name__", repr(self._step))
        return model_html(self, f"of {name}, {'jitted' if self.compiled else 'in Python'}")

    def __repr__(self) -> str:
        name = getattr(self._step, "__name__", repr(self._step))
        kind = "jitted" if self.compiled else "python"
        return (
            f"Simulator({name} ({kind}), max_actions={self.max_actions}, "
            f"successors={self.successors}, reward_range={self.reward_range})"
        )


class _SameActions:
    """The same list of actions in every state."""

    def __init__(self, listed: tuple[Any, ...]) -> None:
        self.listed = listed

    def __call__(self, state: Any) -> tuple[Any, ...]:
        return self.listed


def labels(given: Any, state: Any, most: int | None) -> tuple[Any, ...]:
    """The actions of a state from what the user's function said: their number or their list."""
    limit = checks.LARGEST if most is None else most
    if isinstance(given, np.ndarray) and given.ndim == 0:
        given = given.item()
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        count = int(given)
    elif _is_list(given):
        count = len(given)
    else:
        raise BrokenPromiseError(
            f"{_asked(state)} must return a number of actions or a list of them, got {given!r}"
        )
    if count < 1:
        raise BrokenPromiseError(
            f"{_asked(state)} offers no action; a state in which nothing can be done must be reached "
            "by a transition that terminates"
        )
    if count > limit:
        raise BrokenPromiseError(
            f"{_asked(state)} offers {count} actions, more than max_actions={limit}"
        )
    if isinstance(given, int | np.integer):
        return tuple(range(count))
    found = tuple(a.item() if isinstance(a, np.generic) else a for a in given)
    if not all_distinct(found):
        raise BrokenPromiseError(f"{_asked(state)} lists an action twice: {given!r}")
    return found


def _asked(state: Any) -> str:
    return f"actions({shown(state)})"


def _is_list(given: Any) -> bool:
    if isinstance(given, np.ndarray):
        return given.ndim > 0
    return isinstance(given, Sequence) and not isinstance(given, str | bytes)


def _contradict(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Whether two answers differ. Actions that are equal only to themselves may be made anew."""
    return len(one) != len(other) or any(
        not same(a, b) and not (states.by_identity(a) and states.by_identity(b))
        for a, b in zip(one, other, strict=True)
    )


# The first calls are looked at closely, and then every sixteenth.
_CLOSELY = 64
_NOW_AND_THEN = 15
_MOST_VERIFIED = 4096


def coordinates(state: Any) -> tuple[float, ...]:
    """The numbers that a state consists of: a number or a tuple of numbers; of others none."""
    parts = state if type(state) is tuple else (state,)
    if not all(isinstance(part, float | int | np.integer | np.floating) for part in parts):
        return ()
    try:
        found = tuple(map(float, parts[: handles.MOST_COORDINATES]))
    except OverflowError:
        return ()
    return found if all(map(math.isfinite, found)) else ()


# The state of NumPy's default generator, and how a state was reached: by which call.
_GENERATOR = np.dtype([(name, np.uint64) for name in ("high", "low", "half", "spare")])
_REACHED = np.dtype(
    [
        ("state", np.int64),
        ("action", np.int64),
        ("h", np.int64),
        ("reward", np.float64),
        ("rng", _GENERATOR),
    ]
)


def _words(rng: np.random.Generator) -> tuple[int, ...]:
    """The part of a generator's state that changes."""
    state: Any = rng.bit_generator.state
    word = state["state"]["state"]
    return word >> 64, word & (2**64 - 1), state["has_uint32"], state["uinteger"]


def _set_words(rng: np.random.Generator, words: Any) -> None:
    if words["half"] > 1 or words["spare"] >= 1 << 32:
        raise ValueError("the checkpoint has a generator in a state in which none can be")
    state: Any = rng.bit_generator.state
    state["state"]["state"] = (int(words["high"]) << 64) | int(words["low"])
    state["has_uint32"], state["uinteger"] = int(words["half"]), int(words["spare"])
    rng.bit_generator.state = state


class PythonSession:
    """A Python simulator during one plan.

    States are numbered in order of appearance. What the user's functions raise is kept in `error`, and
    the call reports ABORTED, so that the search ends in an orderly way.

    Now and then it checks that the state just called is still what it was, and offers the same actions.
    """

    slow = True

    def __init__(self, model: Simulator, seed: np.random.SeedSequence) -> None:
        actions = model.offered
        self.error: BaseException | None = None
        self._max_actions = model.max_actions
        self._step = model.step
        self._actions = actions if callable(actions) else None
        self._count = 0 if callable(actions) else actions
        self._stationary = model.stationary
        self._rng = np.random.default_rng(seed.spawn(1)[0])
        self.states: list[Any] = []
        self._keys: dict[Any, int] = {}
        # Those of states that hold the number 0.0 or -0.0, and whether any holds -0.0.
        self._with_zeros: set[int] = set()
        self._minus_zero = False
        # Filled state by state.
        self.labels: dict[int, tuple[Any, ...]] | None = {} if callable(actions) else None
        # What some of the states held when they were new, by their numbers.
        self._contents: dict[int, bytes] = {}
        self._calls = 0
        self._log: list[tuple[Any, ...]] | None = None
        self._deadline = float("inf")
        self._interrupted = False
        self._answer = records(np.zeros(1, handles.ANSWER))
        self._point = np.zeros(1 + handles.MOST_COORDINATES)
        self._seed: Any = self._rng.bit_generator.state
        # Kernels know these by their addresses, so they must live as long as the session.
        self._entries: tuple[Any, ...] = (
            self._answer_call,
            self._answer_count,
            self._answer_locate,
            self._answer_reseed,
        )
        step_at, counter, locator, seeder = map(id, self._entries)
        self.handle: Any = handle_of(
            python=PythonHandle(
                step_at, counter, locator, seeder, self._count, self._answer, self._point
            )
        )

    def encode(self, state: Any) -> int:
        """The number of a state, a new one if it was never seen."""
        key = self._keys.get(state)
        # 0.0 and -0.0 are equal, and not the same; few searches see both.
        if key in self._with_zeros or (key is None and self._minus_zero):
            key = self._keys.get(told_apart(state))
        if key is None:
            key = len(self.states)
            found = signs(state)
            if found:
                self._with_zeros.add(key)
                self._minus_zero = self._minus_zero or -1.0 in found
            self._keys[told_apart(state) if found else state] = key
            self.states.append(state)
            if key < _CLOSELY or not key & _NOW_AND_THEN:
                content = states.content(state)
                if content is not None:
                    self._contents[key] = content
        return key

    def _forget(self, key: int) -> None:
        """Forget the state that was seen last."""
        del self._keys[told_apart(self.states.pop())]
        self._with_zeros.discard(key)

    def label(self, key: int, action: int) -> Any:
        """The action behind an index."""
        return action if self.labels is None else self.labels[key][action]

    def stop_at(self, deadline: float | None) -> None:
        """Abort calls after this reading of `time.perf_counter`."""
        self._deadline = float("inf") if deadline is None else deadline

    def interrupt(self) -> None:
        """Abort the call under way as soon as it returns."""
        self._interrupted = True

    def diagnose(self, key: int, action: int | None, h: int) -> None:
        """Nothing to find out: errors are kept as they are raised."""

    def agree(self, state: Any, actions: tuple[Any, ...]) -> None:
        """Offer these actions in a state, and check that the user's function still says the same."""
        if self.labels is not None:
            key = self.encode(state)
            self._compare(key, self.labels.setdefault(key, actions), actions)
            self._ask_again(key)

    def _ask_again(self, key: int) -> None:
        if self._actions is None or isinstance(self._actions, _SameActions):
            return
        assert self.labels is not None
        state = self.states[key]
        try:
            again = labels(self._actions(state), state, self._max_actions)
        except BaseException as error:
            add_note(error, f"raised by the model's actions in state {shown(state)}")
            raise
        self._compare(key, self.labels.get(key, again), again)

    def _compare(self, key: int, before: tuple[Any, ...], now: tuple[Any, ...]) -> None:
        if _contradict(before, now):
            raise BrokenPromiseError(
                f"actions({shown(self.states[key])}) has answered {list(before)!r} and then "
                f"{list(now)!r}; the actions of a state must be the same, in the same order, whenever "
                "they are asked for"
            )

    def verify(self) -> None:
        """Raise BrokenPromiseError if something was seen that makes the plan's evidence worthless."""
        for key in range(0, len(self.states), 1 + len(self.states) // _MOST_VERIFIED):
            self._see_unchanged(key)

    def _inspect(self, key: int) -> None:
        """A closer look at a state that was just called."""
        self._see_unchanged(key)
        self._ask_again(key)

    def _see_unchanged(self, key: int) -> None:
        state = self.states[key]
        try:
            found = self._keys.get(told_apart(state))
        except TypeError:  # It can no longer be hashed. (What a signal handler raises comes through.)
            found = None
        held = self._contents.get(key)
        if found == key and (held is None or held == states.content(state)):
            return
        raise BrokenPromiseError(
            f"a state has changed since it was first seen, and is now {shown(state)}: the model must "
            "leave states as they are and return new ones, whose hash stays the same"
        )

    def remember(self) -> None:
        """From now on, record how each state was reached, for checkpoints."""
        self._log = []

    def memory(self) -> dict[str, NDArray[Any]]:
        """What a checkpoint needs: how each state except the first was reached, and the generator."""
        log = np.array(self._log or [], _REACHED)
        return {"session.log": log, "session.rng": np.array([_words(self._rng)], _GENERATOR)}

    def recall(self, memory: dict[str, NDArray[Any]]) -> None:
        """Reach the same states again, by one call for each.

        Raises:
            ValueError: the simulator does not do what it did, or no simulator can have done it.
        """
        for row in memory["session.log"]:
            key, action, h = int(row["state"]), int(row["action"]), int(row["h"])
            if not 0 <= action < self.offered(np.array([key]))[0]:
                raise ValueError("the checkpoint names states or actions that there are not")
            _set_words(self._rng, row["rng"])
            found, reward, flag = self.call(key, action, h)
            if self.error is not None:
                raise self.error
            if (found, flag) != (len(self.states) - 1, handles.CONTINUES) or reward != row["reward"]:
                raise ValueError(
                    f"the model is not that of the checkpoint, or does not draw from rng alone: "
                    f"state {shown(self.states[key])}, action {shown(self.label(key, action))} gave "
                    "a different result then"
                )
        _set_words(self._rng, memory["session.rng"][0])

    def close(self) -> None:
        """Break reference cycles, so that the session is freed with its last user."""
        self._entries = ()

    def _answer_call(self, key: int, action: int, h: int) -> None:
        self._answer[0] = (*self.call(key, action, h), 0)

    def _answer_count(self, key: int, _: int, __: int) -> None:
        self._answer["actions"][0] = self.count_actions(key)

    def _answer_locate(self, key: int, _: int, __: int) -> None:
        found = coordinates(self.states[key])
        self._point[0] = len(found)
        self._point[1 : 1 + len(found)] = found

    def _answer_reseed(self, high: int, low: int, _: int) -> None:
        self._seed["state"]["state"] = high << 64 | low
        self._rng.bit_generator.state = self._seed

    def offered(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """By the user's function, which is asked about states that were not called yet."""
        known = (keys >= 0) & (keys < len(self.states))
        if self._actions is None:
            return np.where(known, self._count, 0)
        counts = np.zeros(len(keys), np.int64)
        counts[known] = [self.count_actions(key) for key in keys[known].tolist()]
        if self.error is not None:
            raise self.error
        return counts

    def count_actions(self, key: int) -> int:
        """Number of actions of a state, from one call to the user's function; 0 after an error."""
        try:
            return len(self._labels_of(key))
        except BaseException as error:
            add_note(error, f"raised by the model's actions in state {shown(self.states[key])}")
            self.error = error
            return 0

    def _labels_of(self, key: int) -> tuple[Any, ...]:
        assert self._actions is not None and self.labels is not None
        found = self.labels.get(key)
        if found is None:
            state = self.states[key]
            found = self.labels[key] = labels(self._actions(state), state, self._max_actions)
        return found

    def call(self, key: int, action: int, h: int) -> tuple[int, float, int]:
        """One call to the user's function."""
        if self._interrupted or time.perf_counter() > self._deadline:
            return 0, 0.0, handles.ABORTED
        state = self.states[key]
        label: Any = action
        before = None if self._log is None else _words(self._rng)
        try:
            if self._actions is not None:
                label = self._labels_of(key)[action]
            drawn = self._draw(key, action, label, h)
        except BaseException as error:
            add_note(error, f"raised by the model in state {shown(state)}, action {shown(label)}")
            self.error = error
            return 0, 0.0, handles.ABORTED
        self._calls += 1
        if self._calls <= _CLOSELY or not self._calls & _NOW_AND_THEN:
            try:
                self._inspect(key)
            except BaseException as error:
                self.error = error
                return 0, 0.0, handles.ABORTED
        try:
            successor, reward, terminated = drawn
            # float("0.5") would pass silently, and so would bool("False").
            reward = float(reward + 0.0 if type(reward) is not float else reward)
            ended = terminated is not False and _is_true(terminated)
        except (TypeError, ValueError, ArithmeticError):
            self.error = _broken_step(state, label, drawn)
            return 0, 0.0, handles.ABORTED
        if ended:
            return 0, reward, handles.ENDED
        try:
            known = len(self.states)
            number = self.encode(successor)
            if self._log is not None and number == known:
                self._log.append((key, action, h, reward, before))
            return number, reward, handles.CONTINUES
        except BaseException as error:
            unhashable = isinstance(error, TypeError) and "unhashable" in str(error)
            self.error = _broken_step(state, label, drawn) if unhashable else error
            return 0, 0.0, handles.ABORTED

    def _draw(self, key: int, action: int, label: Any, h: int) -> Any:
        """What the user's function returns."""
        if self._stationary:
            return self._step(self.states[key], label, self._rng)
        return self._step(self.states[key], label, self._rng, h)


def _is_true(terminated: Any) -> bool:
    if isinstance(terminated, bool | np.bool_ | int | np.integer):
        return bool(terminated)
    raise TypeError


def _broken_step(state: Any, action: Any, drawn: Any) -> BrokenPromiseError:
    """Say what is wrong with what a step returned."""
    where = f"step({shown(state)}, {shown(action)}, rng)"
    if not isinstance(drawn, tuple) or len(drawn) != 3:
        return BrokenPromiseError(
            f"{where} must return (next_state, reward, terminated), got {shown(drawn)}"
        )
    successor = drawn[0]
    try:
        hash(successor)
    except Exception as error:
        pass_on(error)
        return BrokenPromiseError(
            f"{where} returned the state {shown(successor)} ({type(successor).__name__}), which is "
            "not hashable; equal states must be recognised, so return a tuple, a string or a number"
        )
    return BrokenPromiseError(
        f"{where} must return (next_state, reward, terminated) with a number as reward and a truth "
        f"value as terminated, got {shown(drawn)}"
    )


@cache
def _jitted_handle(step: Any, actions: int | Callable[[Any], Any], stationary: bool) -> Handle:
    addresses = address_of(_jitted_step(step, stationary)), address_of(_jitted_count(actions))
    return handle_of(compiled=CompiledHandle(*addresses))


@cache
def _jitted_step(step: Any, stationary: bool) -> Any:
    """The user's jitted function with one signature, whatever its own; compiled, with an address."""
    wanted = STEP.args[:3] if stationary else STEP.args
    arguments = "state, action, rng" if stationary else "state, action, rng, h"
    promise = (
        f"the jitted step must take ({arguments}), integers and a pacplan.Stream, and return "
        "(integer state, reward, truth value)"
    )
    try:
        step.compile(wanted)
        returned = step.overloads[wanted].signature.return_type
    except (NumbaError, TypeError) as error:
        raise TypeError(f"{promise}; Numba says: {_plain_text(error)}") from error
    parts: tuple[Any, ...] = getattr(returned, "types", ())
    if not (
        len(parts) == 3
        and isinstance(parts[0], types.Integer)
        and isinstance(parts[1], types.Float | types.Integer)
        and isinstance(parts[2], types.Boolean | types.Integer)
    ):
        raise TypeError(f"{promise}; it returns {returned}")
    # An exception would leak what the kernel holds, so it becomes a flag; see JittedSession.diagnose.
    # Written out twice: an adapter between the two would itself leak the generator it passes on.
    if stationary:

        @numba.cfunc(STEP)
        def adapted(state, action, rng, h):  # type: ignore[no-untyped-def]
            successor, reward, flag = np.int64(0), 0.0, handles.ABORTED
            try:
                found, paid, terminated = step(state, action, rng)
                # Cast here: an unsigned and a signed state would meet as floating-point numbers.
                successor, reward = np.int64(found), np.float64(paid)
                flag = handles.ENDED if terminated else handles.CONTINUES
            except Exception:
                flag = handles.ABORTED
            return successor, reward, np.int64(flag)

    else:

        @numba.cfunc(STEP)
        def adapted(state, action, rng, h):  # type: ignore[no-untyped-def]
            successor, reward, flag = np.int64(0), 0.0, handles.ABORTED
            try:
                found, paid, terminated = step(state, action, rng, h)
                # Cast here: an unsigned and a signed state would meet as floating-point numbers.
                successor, reward = np.int64(found), np.float64(paid)
                flag = handles.ENDED if terminated else handles.CONTINUES
            except Exception:
                flag = handles.ABORTED
            return successor, reward, np.int64(flag)

    return adapted


@cache
def _jitted_count(actions: int | Callable[[Any], Any]) -> Any:
    """The number of actions as a compiled function of the state.

    It is 0 if the user's function raised, or gave two different answers.
    """

    def asked(state):  # type: ignore[no-untyped-def]
        count = np.int64(0)
        try:
            count = np.int64(actions(state))  # type: ignore[operator]
            if np.int64(actions(state)) != count:  # type: ignore[operator]
                count = np.int64(0)  # See JittedSession.diagnose.
        except Exception:
            count = np.int64(0)
        return count

    def same(state):  # type: ignore[no-untyped-def]
        return np.int64(actions)  # type: ignore[arg-type]

    try:
        return numba.cfunc(COUNT)(asked if callable(actions) else same)
    except (NumbaError, TypeError) as error:
        raise TypeError(
            f"the jitted function given as actions must take an integer state and return the number "
            f"of its actions; Numba says: {_plain_text(error)}"
        ) from error


def _plain_text(error: Exception) -> str:
    """What Numba says, without the colours of a terminal."""
    return re.sub(r"\x1b\[[0-9;]*m", "", str(error))


def _compare_counts(state: Any, before: int, now: Any) -> None:
    if before != now:
        raise BrokenPromiseError(
            f"actions({state!r}) has answered {before} and then {now}; a state must offer the same "
            "number of actions whenever it is asked"
        )


class JittedSession(CompiledSession):
    """A jitted simulator during one plan."""

    labels = None
    error: BaseException | None

    def __init__(
        self,
        step: Callable[..., Any],
        actions: int | Callable[[Any], Any],
        stationary: bool,
        seed: np.random.SeedSequence,
    ) -> None:
        super().__init__(_jitted_handle(step, actions, stationary))
        self._step, self._actions = step, actions
        self._stationary, self._seed = stationary, seed

    def label(self, key: int, action: int) -> int:
        """The index itself."""
        return action

    def offered(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """By the user's function: any number may be a state."""
        actions = self._actions
        counts = (actions(int(key)) if callable(actions) else actions for key in keys)
        return np.fromiter(counts, np.int64, len(keys))

    def agree(self, state: Any, actions: tuple[Any, ...]) -> None:
        """Check that the user's function still says that the state offers as many actions."""
        if callable(self._actions):
            _compare_counts(state, len(actions), self._actions(int(state)))

    def diagnose(self, key: int, action: int | None, h: int) -> None:
        """Find out what was wrong with the user's function, by calling it again from here."""
        (rng,) = streams(self._seed.spawn(1)[0], 1)
        arguments = (key, action, rng) if self._stationary else (key, action, rng, h)
        count: int | None = None
        for _ in range(1000):
            try:
                if action is not None:
                    self._step(*arguments)
                elif callable(self._actions):
                    again = int(self._actions(key))
                    _compare_counts(key, again if count is None else count, again)
                    count = again
            except BrokenPromiseError as error:
                self.error = error
                return
            except Exception as error:
                who = "the model's actions" if action is None else "the model"
                where = f"state {key}" if action is None else f"state {key}, action {action}"
                add_note(error, f"raised by {who} in {where}")
                self.error = error
                return
        if action is not None:
            self.error = RuntimeError(
                f"the jitted step raised in state {key}, action {action}, but not again when it was "
                "called 1000 times to find out what"
            )
