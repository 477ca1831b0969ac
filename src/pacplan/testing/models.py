"""Does a model do what it promises? Random episodes, with the checks that every search makes."""

import copy
from contextlib import closing
from typing import Any

import numpy as np

from pacplan.compiled.streams import streams
from pacplan.core import checks
from pacplan.core.notes import shown
from pacplan.engine.query import Query
from pacplan.look import Caller
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
        ConformanceError: names the broken promise, with state, action and what to do.
    """
    check_kind(model)
    for name, number, least in (("episodes", episodes, 1), ("steps", steps, 1), ("seed", seed, 0)):
        checks.integer(name, number, least=least)
    start = model.initial_state() if state is None else state
    steps = steps if model.steps is None else min(steps, model.steps)
    broken = f"{model!r} breaks its promises: "
    try:
        seen, again = (_Episodes(model, start, seed, steps, episodes) for _ in range(2))
        seen.compare(again)
    except Exception as error:
        kind = "" if isinstance(error, BrokenPromiseError) else f"{type(error).__name__}: "
        notes = [f" ({note})" for note in getattr(error, "__notes__", ())]
        raise ConformanceError("".join([broken, kind, str(error), *notes])) from error
    said = seen.notes()
    if hasattr(model, "check"):
        found: Preflight = model.check(seed=seed)
        if found.problems:
            raise ConformanceError(broken + "\n- ".join(found.problems))
        said += found.notes
    rewards = [reward for _, _, reward, _ in seen.draws]
    return Preflight(len(rewards), seen.most, (min(rewards), max(rewards)), (), tuple(said))


class _Episodes:
    """Random episodes, and what was seen in them: of each call state, action, reward and outcome."""

    def __init__(self, model: Model, start: Any, seed: int, steps: int, episodes: int) -> None:
        self._model, self._start = model, start
        self._steps, self._episodes = steps, episodes
        self.draws: list[tuple[int, int, float, Any]] = []
        self.most, self.ended = 1, 0
        root = np.random.SeedSequence(seed)
        (self._ties,) = streams(root, 1)
        query = Query(model, start, root)
        with closing(model.open(root)) as self._session:
            self._caller = Caller(query, self._session, steps)
            for _ in range(episodes):
                self._play()
            self._session.verify()
            for known in (self._session.states or [])[:_COPIED]:
                _compare_copy(known)

    def _play(self) -> None:
        caller, at = self._caller, self._caller.root_state
        self._session.agree(self._start, self._model.actions(self._start))
        for h in range(self._steps):
            action = int(self._ties.random() * caller.offered(at, h))
            successor, reward = caller.call(at, action, h)
            outcome = None if successor is None else self._state(successor)
            self.draws.append((at, action, reward, outcome))
            self.most = max(self.most, len(caller.after[caller.pair(at, action, h)]))
            if successor is None:
                self.ended += 1
                return
            at = successor
        if self._model.two_player:
            raise BrokenPromiseError(
                f"a game was not over after {self._steps} moves; let it end by `terminated`, or pass a "
                "larger steps="
            )

    def _state(self, key: int) -> Any:
        """The user's state of a number."""
        return key if self._session.states is None else self._session.states[key]

    def compare(self, again: "_Episodes") -> None:
        """Check that the same seed has led to the same episodes."""
        for one, two in zip(self.draws, again.draws, strict=False):
            if one != two:
                state, action, _, _ = one
                raise BrokenPromiseError(
                    f"with the same seed, state {shown(self._state(state))}, action "
                    f"{shown(self._session.label(state, action))} had a different outcome the second "
                    "time; draw all randomness from rng, and keep nothing between calls"
                )

    def notes(self) -> list[str]:
        """What is good to know but breaks no promise."""
        notes, known = [], self._model.successors
        if self._model.may_end and not self.ended:
            notes.append(
                f"none of {self._episodes} episodes ended within {self._steps} steps; may_end=False, "
                "if none ever does, makes bounds tighter if reward_range does not contain 0"
            )
        if known is not None and self.most < known:
            notes.append(
                f"successors={known}, of which at most {self.most} were seen; fewer "
                "need fewer calls, if it is certain that there are no more"
            )
        return notes


def _compare_copy(state: Any) -> None:
    try:
        twin = copy.deepcopy(state)
    except Exception:
        return  # What cannot be copied cannot be compared with its copy.
    if twin != state or hash(twin) != hash(state):
        raise BrokenPromiseError(
            f"a copy of state {shown(state)} is not equal to it; {states.advice(state)}"
        )
