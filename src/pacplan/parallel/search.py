"""A search whose calls run in parallel: while it waits for one, it guesses which it will need next.

An episode is played in earnest once all its draws are there (`pacplan.parallel.session`). Until then,
the search goes on with guesses, to find out which calls the next episodes will need, and is put back to
where the episode began. So what is learnt, and in which order, is what it would be with one call at a
time.
"""

import math
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

import numpy as np

from pacplan.engine.calls import CHUNK_DONE
from pacplan.engine.search import KernelSearch
from pacplan.models.simulator import Simulator
from pacplan.parallel.pools import Workers
from pacplan.parallel.session import SpeculativeSession

# Episodes that are guessed, for each call that may be under way.
_EPISODES_A_CALL = 4


class SpeculativeSearch:
    """A search, as the driver sees it, of which the calls are made side by side."""

    waits = False

    def __init__(self, search: KernelSearch, session: SpeculativeSession) -> None:
        self._search = search
        # How much chance an episode uses up differs between guesses and the episode in earnest. If
        # all drew from one stream, the choices of those after it would be others altogether.
        search.problem["ties_by_episode"] = True
        self.session = session
        self._halted = False

    def __getattr__(self, name: str) -> Any:
        """All else is the search's own."""
        return getattr(self._search, name)

    def halt(self) -> None:
        """Use no further call to the model. May come from another thread."""
        self._halted = True
        self._search.halt()
        self.session.wake()

    def advance(self, episodes: int, calls: int) -> int:
        """Play at most `episodes` more, until `calls` in all; returns how it ended."""
        if episodes == 0:
            return self._search.advance(0, calls)
        last = int(self._search.report["episodes"]) + episodes
        while True:
            status = self._play(calls)
            if status != CHUNK_DONE or int(self._search.report["episodes"]) >= last:
                return status

    def _play(self, calls: int) -> int:
        """Play an episode in earnest, as soon as all its draws are there."""
        search, session = self._search, self.session
        session.settle()
        memory = search.memory.used
        kept = {
            name: np.frombuffer(array.tobytes(), array.dtype).reshape(array.shape)
            for name, array in search.state_arrays().items()
        }
        while True:
            session.begin()
            status = search.advance(1, calls)
            if session.needed is None:
                return status
            if status == CHUNK_DONE:
                search.advance(_EPISODES_A_CALL * session.at_once, calls)
            search.put_back(kept, memory)
            session.unsettle()
            if self._halted:
                search.halt()  # Which was put back as well.
            left = session.deadline - time.perf_counter()
            session.wait(None if math.isinf(left) else max(0.0, left))


@contextmanager
def parallel_session(
    model: Simulator, seed: np.random.SeedSequence, workers: Workers
) -> Iterator[SpeculativeSession]:
    """A session of a model that may be called anywhere, whose calls workers make in parallel."""
    with (
        workers.at_work(partial(_call, model.step, model.stationary, seed)) as submit,
        closing(SpeculativeSession(model, seed, submit, workers.handed_over)) as session,
    ):
        yield session


def _call(
    step: Any,
    stationary: bool,
    seed: np.random.SeedSequence,
    state: Any,
    action: Any,
    h: int,
    key: tuple[int, ...],
) -> Any:
    """Draw from a pair, wherever this was sent, with the generator of the draw that has this key."""
    own = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, *key))
    rng = np.random.default_rng(own)
    return step(state, action, rng) if stationary else step(state, action, rng, h)
