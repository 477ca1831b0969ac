"""A Python simulator during one plan: states get numbers, calls are checked, errors are kept."""

import math
import time
from collections import defaultdict
from functools import partial
from typing import Any

import cloudpickle
import numpy as np
from numpy.typing import NDArray

from pacplan.core.keys import same, signs, told_apart
from pacplan.core.notes import shown
from pacplan.models import handles, states
from pacplan.models.protocol import BrokenPromiseError, Session

# At most about so many states are looked at in the end, to see whether they have changed.
_MOST_VERIFIED = 4096
# It is noted what these first states hold, and every sixteenth after them.
_CLOSELY, _NOW_AND_THEN = 64, 15
_TRUTH = int, np.bool_, np.integer


class PythonSession(Session):
    """A Python simulator during one plan.

    States are numbered in order of appearance. What the user's functions raise is kept in `error`, and
    the call reports ABORTED, so that the search ends in an orderly way.

    Args:
        model: a `Simulator`.
        seed: of the plan; the draws come from its first child.
    """

    states: list[Any]

    def __init__(self, model: Any, seed: np.random.SeedSequence) -> None:
        self._model = model
        self._step, self._stationary = model.step, model.stationary
        self._actions = model.offered
        self._rng = np.random.default_rng(seed.spawn(1)[0])
        self.states = []
        self._keys: dict[Any, int] = {}
        # Those of states that hold the number 0.0 or -0.0, which are equal, and not the same.
        self._with_zeros: set[int] = set()
        # What some of the states held when they were new, by their numbers.
        self._contents: dict[int, bytes] = {}
        self._interrupted = False
        self._seed: Any = self._rng.bit_generator.state
        self._answer = np.zeros(1, handles.ANSWER)
        self._point = np.zeros(1 + handles.MOST_COORDINATES)
        labels: dict[int, tuple[Any, ...]] | None = {}
        if isinstance(self._actions, tuple):
            # The tree of a plan keeps them, and is pickled.
            labels = defaultdict(partial(tuple, self._actions))
        elif not callable(self._actions):
            labels = None
        # Kernels know these by their addresses, so they must live as long as the session.
        asked = self._answer_call, self._answer_count, self._answer_locate, self._answer_reseed
        self._entries: tuple[Any, ...] = asked
        count = 0 if callable(self._actions) else model.max_actions
        python = handles.PythonHandle._make((*map(id, asked), self._answer, self._point))
        super().__init__(handles.Handle(python=python, actions=count), labels)

    # What kernels ask.

    def _answer_call(self, key: int, action: int, h: int) -> None:
        self._answer[0] = (*self.call(key, action, h), 0)

    def _answer_count(self, key: int, _: int, __: int) -> None:
        try:
            self._answer["actions"][0] = len(self._labels_of(key))
        except BaseException as error:
            self.error = error
            self._answer["actions"][0] = 0

    def _answer_locate(self, key: int, _: int, __: int) -> None:
        found = coordinates(self.states[key])
        self._point[0] = len(found)
        self._point[1 : 1 + len(found)] = found

    def _answer_reseed(self, high: int, low: int, _: int) -> None:
        self._seed["state"]["state"] = high << 64 | low
        self._rng.bit_generator.state = self._seed
        self._model.forget_stream()

    # States and their actions.

    def encode(self, state: Any) -> int:
        """The number of a state, a new one if it was never seen."""
        key = self._keys.get(state)
        if key is None or key in self._with_zeros:
            key = self._keys.setdefault(told_apart(state), len(self.states))
        if key == len(self.states):
            self.states.append(state)
            if signs(state):
                self._with_zeros.add(key)
            if key < _CLOSELY or not key & _NOW_AND_THEN:
                content = states.content(state)
                if content is not None:
                    self._contents[key] = content
        return key

    def _forget(self) -> None:
        """Forget the state that was seen last."""
        self._keys.pop(told_apart(self.states.pop()), None)
        self._with_zeros.discard(len(self.states))

    def _labels_of(self, key: int) -> tuple[Any, ...]:
        if callable(self._actions) and key not in self.labels:
            self.labels[key] = self._model.actions(self.states[key])
        found: tuple[Any, ...] = self.labels[key]
        return found

    def agree(self, state: Any, actions: tuple[Any, ...]) -> None:
        """Offer these actions in a state; raises if others were offered there before."""
        if callable(self._actions):
            before = self.labels.setdefault(self.encode(state), actions)
            if len(before) != len(actions) or not all(map(same, before, actions)):
                raise BrokenPromiseError(
                    f"actions({shown(state)}) returned {list(before)!r} and then {list(actions)!r}; "
                    "it must always return equal actions of a state, in the same order"
                )

    # Calls.

    def call(self, key: int, action: int, h: int) -> tuple[int, float, int]:
        """One call to the user's function: (next state, reward, how it ended)."""
        if self._interrupted or time.perf_counter() > self.deadline:
            return 0, 0.0, handles.ABORTED
        label: Any = action
        if self.saves:  # A checkpoint saves the generator, and nothing else that draws.
            self._model.forget_stream()
        try:
            try:
                if self.labels is not None:
                    label = self._labels_of(key)[action]
                drawn = self._draw(key, action, label, h)
            except BaseException as error:
                where = f"state {shown(self.states[key])}, action {shown(label)}"
                error.add_note(f"raised by the model in {where}")
                raise
            return self._checked(key, label, drawn)
        except BaseException as error:
            self.error = error
            return 0, 0.0, handles.ABORTED

    def _draw(self, key: int, action: int, label: Any, h: int) -> Any:
        """What the user's function returns."""
        if self._stationary:
            return self._step(self.states[key], label, self._rng)
        return self._step(self.states[key], label, self._rng, h)

    def _checked(self, key: int, label: Any, drawn: Any) -> tuple[int, float, int]:
        """What was drawn, checked and in numbers."""
        try:
            successor, reward, terminated = drawn
            # float("0.5") would pass silently, and so would bool("False").
            reward = float(reward + 0.0 if type(reward) is not float else reward)
            if not isinstance(terminated, _TRUTH):
                raise TypeError("terminated is no truth value")
            if terminated:
                return 0, reward, handles.ENDED
            return self.encode(successor), reward, handles.CONTINUES
        except (TypeError, ValueError, ArithmeticError) as error:
            asked = f"step({shown(self.states[key])}, {shown(label)}, rng)"
            raise BrokenPromiseError(
                f"{asked} must return (next_state, reward, terminated): something hashable, such as a "
                f"tuple, a string or a number; a number; and a truth value. It returned {shown(drawn)}"
            ) from error

    def interrupt(self) -> None:
        """Abort the call under way as soon as it returns."""
        self._interrupted = True

    # Checks.

    def verify(self) -> None:
        """Raise BrokenPromiseError if a state has changed, so that the evidence is worthless."""
        for key in range(0, len(self.states), 1 + len(self.states) // _MOST_VERIFIED):
            state = self.states[key]
            try:
                found = self._keys.get(told_apart(state))
            except TypeError:  # It can no longer be hashed.
                found = None
            held = self._contents.get(key)
            if found != key or (held is not None and held != states.content(state)):
                raise BrokenPromiseError(
                    f"a state has changed and is now {shown(state)}; step must not change states, but "
                    "return new ones, whose hash stays the same"
                )
        self._model.verify()

    # Checkpoints.

    def memory(self) -> dict[str, NDArray[Any]]:
        """For a checkpoint: all states, their actions and rng, pickled."""
        held = cloudpickle.dumps((self.states, self.labels, self._rng.bit_generator.state))
        return {"session.held": np.frombuffer(held, np.uint8)}

    def recall(self, memory: dict[str, NDArray[Any]]) -> None:
        """Know the same states again; raises ValueError if the plan began in another one."""
        known, labels, drawn = cloudpickle.loads(memory["session.held"])
        if known[0] != self.states[0]:
            raise ValueError(
                "the plan of the checkpoint began in another state than this one, "
                f"{shown(self.states[0])}; plan anew"
            )
        self._rng.bit_generator.state = drawn
        for state in known[1:]:
            self.encode(state)
        if self.labels is not None:
            self.labels.update(labels)

    def close(self) -> None:
        """Break reference cycles, so that the session is freed with its last user."""
        super().close()
        self._entries = ()


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
