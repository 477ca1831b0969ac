"""Does a model do what it promises? Random episodes, with the checks that every search makes."""

import copy
from typing import Any, NamedTuple

import numpy as np

from pacplan.compiled.streams import streams
from pacplan.core import checks
from pacplan.core.notes import shown
from pacplan.engine.caller import Caller
from pacplan.models import states
from pacplan.models.consistency import Preflight
from pacplan.models.protocol import BrokenPromiseError, Model
from pacplan.models.protocol import check_model as check_kind
from pacplan.testing.conformance import ConformanceError

# States of which a copy is compared with the original.
_COPIED = 100


def check_model(
    model: Model, state: Any = None, *, episodes: int = 100, steps: int = 50, seed: int = 0
) -> Preflight:
    """Play random episodes, and check that the model keeps its promises.

    Seeds must reproduce; rewards lie in `reward_range`; no pair has more than `successors` successors;
    states are hashable, equal to their copies, and never changed; `actions(state)` gives the same
    answer each time; and episodes end only if `may_end` allows it. An environment of Gymnasium is
    examined by its own `check` as well. Rare successors and rewards take many episodes to see.

    Args:
        model: the model.
        state: where episodes begin; by default the model's own initial state.
        episodes: how many.
        steps: most steps of an episode.
        seed: of actions and model.

    Returns:
        What was seen, to be printed: draws, largest number of successors, rewards, and notes.

    Raises:
        ConformanceError: names every broken promise, with state, action and what to do.
    """
    check_kind(model)
    for name, number in (("episodes", episodes), ("steps", steps)):
        checks.integer(name, number, least=1)
    start = model.initial_state() if state is None else state
    most = steps if model.steps is None else min(steps, model.steps)
    first, again = (_Look(model, start, seed, most) for _ in range(2))
    first.play(episodes)
    if not first.problems:
        again.play(episodes)
        first.compare(again)
    problems, notes = list(first.problems.values()), first.notes(episodes, most)
    examine = getattr(model, "check", None)
    if examine is not None:
        found: Preflight = examine(seed=seed)
        problems += found.problems
        notes += found.notes
    if problems:
        said = f"{model!r} breaks its promises, as {len(first.log)} draws show"
        raise ConformanceError("\n- ".join([said, *problems]))
    rewards = [entry.reward for entry in first.log]
    return Preflight(len(rewards), first.most, (min(rewards), max(rewards)), (), tuple(notes))


class _Draw(NamedTuple):
    """A call to the model and its outcome; the successor is the user's, or None after an end."""

    state: int
    action: int
    reward: float
    successor: Any


class _Look:
    """Random episodes, and what was seen in them."""

    def __init__(self, model: Model, start: Any, seed: int, steps: int) -> None:
        self._model, self._start, self._steps = model, start, steps
        root = np.random.SeedSequence(checks.integer("seed", seed, least=0))
        (self._ties,) = streams(root, 1)
        self._caller = Caller(model, start, root, steps)
        self._session = self._caller.session
        self.log: list[_Draw] = []
        self.problems: dict[object, str] = {}
        self.most, self.ended = 1, 0

    def play(self, episodes: int) -> None:
        """Play episodes, until the model raises."""
        with self._caller:
            try:
                for _ in range(episodes):
                    self._episode()
                for key, known in enumerate((self._session.states or [])[:_COPIED]):
                    self._compare_copy(known)
                    if key in (self._session.labels or ()):
                        self._session.agree(known, self._model.actions(known))
                self._session.verify()
            except Exception as error:
                kind = "" if isinstance(error, BrokenPromiseError) else f"{type(error).__name__}: "
                notes = [f"({note})" for note in getattr(error, "__notes__", ())]
                self.problems["raised"] = " ".join([f"{kind}{error}", *notes])

    def _episode(self) -> None:
        at: int | None = self._caller.start()
        for h in range(self._steps):
            assert at is not None
            try:
                at = self._step(at, h)
            except BrokenPromiseError as error:
                if self._session.error is not None:
                    raise
                self.problems.setdefault(int(self._caller.report["promise"]), str(error))
                return
            if at is None:
                self.ended += 1
                return
        if self._model.two_player:
            self.problems["endless"] = (
                f"a game was not over after {self._steps} moves; let it "
                "end by `terminated`, or pass a larger steps="
            )

    def _step(self, at: int, h: int) -> int | None:
        """One call, at random; returns the next state, None after an end."""
        caller = self._caller
        action = int(self._ties.random() * caller.actions(at, h))
        successor, reward = caller.call(at, action, h)
        self.log.append(
            _Draw(at, action, reward, None if successor is None else self._shown(successor))
        )
        self.most = max(self.most, len(caller.after[caller.pair(at, action, h)]))
        return successor

    def _shown(self, key: int) -> Any:
        return key if self._session.states is None else self._session.states[key]

    def _compare_copy(self, state: Any) -> None:
        try:
            twin = copy.deepcopy(state)
        except Exception:
            return  # What cannot be copied cannot be compared with its copy.
        if twin != state or hash(twin) != hash(state):
            self.problems["copies"] = (
                f"a copy of state {shown(state)} is not equal to it; {states.advice(state)}"
            )

    def compare(self, again: "_Look") -> None:
        """Check that the same seed has led to the same episodes."""
        if again.problems:
            self.problems["seeds"] = f"the second time only, {next(iter(again.problems.values()))}"
        for one, two in zip(self.log, again.log, strict=False):
            if one != two:
                self.problems["seeds"] = (
                    f"with the same seed, state {shown(self._shown(one.state))}, action "
                    f"{shown(self._session.label(one.state, one.action))} had a different outcome the "
                    "second time; draw all randomness from rng, and keep nothing between calls"
                )
                return

    def notes(self, episodes: int, steps: int) -> list[str]:
        """What is good to know but breaks no promise."""
        notes = []
        if self._model.may_end and not self.ended:
            notes.append(
                f"none of {episodes} episodes ended within {steps} steps; may_end=False, if none ever "
                "does, makes bounds tighter if reward_range does not contain 0"
            )
        if self._model.successors is not None and self.most < self._model.successors:
            notes.append(
                f"successors={self._model.successors}, of which at most {self.most} were seen; fewer "
                "need fewer calls, if it is certain that there are no more"
            )
        return notes
