"""A Python simulator whose calls run in parallel, ahead of a search that takes the draws in order.

Every pair of a state and an action has a queue of draws. Each draw has a generator of its own, seeded
by the plan's seed, the pair and the draw's number. So all draws are fixed before any call is made: who
makes it, when, and how long that takes changes nothing.

A search takes the draws of a pair in order. To know which calls it will need next, it plays on with
guesses in place of draws that are not there yet (`pacplan.parallel.search`). Nothing of that stays,
except the calls that were begun.
"""

from concurrent.futures import Future
from dataclasses import dataclass, field
from hashlib import blake2b
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np

from pacplan.models.pickles import UnpicklableError, content
from pacplan.models.sessions import PythonSession
from pacplan.models.simulator import Simulator
from pacplan.parallel.pools import Submit

# Outcomes of a pair that are remembered, to guess others by.
_REMEMBERED = 8
# Calls are begun when this part of them has come back: to guess anew for each would take too long.
_SOME = 4
# A call is made ahead if the guesses that led its episode to it are right with at least this chance.
_LEAST_CHANCE = 0.5


@dataclass(eq=False, slots=True)
class DrawQueue:
    """The draws of one pair, in the order in which the search takes them.

    Attributes:
        key: seeds its draws, with the number of each, unless the search itself has given the seed.
        given: whether it has. Then all of its draws are the same.
        draws: those that were begun and are not used up, by number.
        taken: how many the search has used up.
        ahead: how many more it has taken since it last settled.
        seen: what some of the last ones came to.
    """

    key: tuple[int, ...]
    given: bool
    draws: dict[int, Future[Any]] = field(default_factory=dict)
    taken: int = 0
    ahead: int = 0
    seen: list[Any] = field(default_factory=list)


class EnoughGuessedError(Exception):
    """Nothing is left to find out by guessing on: as many calls are under way as may be."""


class SpeculativeSession(PythonSession):
    """A Python simulator during one plan that has its calls made side by side.

    While all draws that a search asks for are there, it runs as it would alone: in earnest. From the
    first one that is not, `needed`, it goes on with guesses. The calls that it then asks for are begun,
    as many as may be, if the guesses that led to them are likely to be right.

    `submit(state, action, h, key)` has a call made, for the draw that has this key.

    Attributes:
        needed: the draw that the search cannot do without; None: it has had all that it asked for.
        made: calls begun so far, used up or not.
        at_once: most calls under way.
    """

    def __init__(
        self, model: Simulator, seed: np.random.SeedSequence, submit: Submit, at_once: int
    ) -> None:
        super().__init__(model, seed)
        self.needed: Future[Any] | None = None
        self.made = 0
        self.at_once = at_once
        self._submit = submit
        self._under_way: set[Future[Any]] = set()
        self._news: SimpleQueue[Future[Any] | None] = SimpleQueue()
        self._queues: dict[tuple[Any, ...], DrawQueue] = {}
        self._given: tuple[int, ...] = ()
        self._touched: dict[tuple[Any, ...], DrawQueue] = {}
        self._forms: dict[int, bytes] = {}
        self._settled = 0
        self._ending = False
        # The chance that this episode comes to where the guesses are.
        self._chance, self._last_h = 1.0, -1
        low, high = model.reward_range
        self._usual_reward = 0.5 * (low + high)

    def begin(self) -> None:
        """The search begins an episode in earnest, from where it settled."""
        self.needed, self._chance = None, 1.0

    def settle(self) -> None:
        """All that happened since the search last settled happened in earnest."""
        for pair, queue in self._touched.items():
            for number in range(queue.taken, queue.taken + queue.ahead):
                queue.seen.append(queue.draws.pop(number).result())
            del queue.seen[:-_REMEMBERED]
            queue.taken, queue.ahead = queue.taken + queue.ahead, 0
            if queue.given:
                self._queues.pop(pair, None)  # No seed is given twice, but by chance.
        self._touched.clear()
        self._settled = len(self.states)

    def unsettle(self) -> None:
        """Forget all that happened since the search last settled."""
        for queue in self._touched.values():
            queue.ahead = 0
        self._touched.clear()
        for key in reversed(range(self._settled, len(self.states))):
            self._forget()
            for kept in (self._contents, self._forms, self.labels):
                if kept is not None:
                    kept.pop(key, None)
        self.error = None

    def wait(self, timeout: float | None) -> None:
        """Wait until the draw that is needed has come back, or some have, or the search is to end."""
        self._note_news()
        enough = len(self._under_way) - max(1, len(self._under_way) // _SOME)
        while len(self._under_way) > enough and not self._ending:
            if self.needed is not None and self.needed.done():
                return
            try:
                self._under_way.discard(self._news.get(timeout=timeout))
            except Empty:
                return

    def wake(self) -> None:
        """The search is to end: wait no more. May come from any thread."""
        self._ending = True
        self._news.put(None)

    def interrupt(self) -> None:
        """Begin no further call."""
        super().interrupt()
        self.wake()

    def close(self) -> None:
        """Cancel what was not begun yet."""
        super().close()
        for future in self._under_way:
            future.cancel()

    def _note_news(self) -> None:
        while not self._news.empty():
            self._under_way.discard(self._news.get())

    def _draw(self, key: int, action: int, label: Any, h: int) -> Any:
        """The next draw of the pair's queue, or a guess."""
        if h <= self._last_h:  # Another episode has begun.
            self._chance = 1.0
        self._last_h = h
        queue = self._queue(key, action, 0 if self._stationary else h)
        number = queue.taken + queue.ahead
        queue.ahead += 1
        future = queue.draws.get(number)
        worth = self.needed is None or (self._chance >= _LEAST_CHANCE and self._has_room())
        if future is None and worth:
            seed = queue.key if queue.given else (*queue.key, number)
            future = queue.draws[number] = self._submit(self.states[key], label, h, seed)
            self.made += 1
            self._under_way.add(future)
            future.add_done_callback(self._news.put)
        if future is not None and (found := self._found(future)) is not None:
            return found[0]
        if self.needed is None:
            self.needed = future
        if not self._has_room():
            raise EnoughGuessedError
        guess, chance = self._guess(queue, key)
        self._chance *= chance
        return guess

    def _has_room(self) -> bool:
        """Whether more calls may be begun ahead."""
        self._note_news()
        return not self._ending and len(self._under_way) < self.at_once

    def _found(self, future: Future[Any]) -> tuple[Any] | None:
        """What a draw came to, in a tuple; None if it is not there, or failed and is not needed.

        If the search needs the call, it raises what the user's function raised, or that it was lost.
        """
        if not future.done():
            return None
        try:
            return (future.result(),)
        except Exception:
            if self.needed is None:
                raise
        return None

    def _guess(self, queue: DrawQueue, key: int) -> tuple[Any, float]:
        """An outcome that the pair has had, and about how likely it is; else a standstill.

        Draws that came back before their turn count: with another guess, the search might see more
        successors of the pair than there are.
        """
        early = map(self._found, queue.draws.values())
        seen = queue.seen + [found[0] for found in early if found is not None]
        if not seen:
            return (self.states[key], self._usual_reward, False), 0.0
        guess = seen[(queue.taken + queue.ahead) % len(seen)]
        alike = sum(other[0] == guess[0] for other in seen)
        return guess, alike / (len(seen) + 1)

    def _answer_reseed(self, high: int, low: int, _: int) -> None:
        self._given = high, low

    def _queue(self, key: int, action: int, h: int) -> DrawQueue:
        """The queue of a pair, from which the search takes a draw."""
        form = self._forms.get(key)
        if form is None:
            form = self._forms[key] = self._form(self.states[key])
        given, self._given = self._given, ()
        pair = form, action, h, *given
        queue = self._queues.get(pair)
        if queue is None:
            # Calls with a given seed draw the same numbers, whatever the pair.
            words = np.frombuffer(blake2b(form, digest_size=16).digest(), np.uint32).tolist()
            queue = DrawQueue(given or (*words, action, h), bool(given))
            self._queues[pair] = queue
        self._touched[pair] = queue
        return queue

    def _form(self, state: Any) -> bytes:
        try:
            return content(state)
        except UnpicklableError as error:
            raise TypeError(
                f"parallel calls need states whose content is visible, but this one holds {error}. "
                "Use tuples, strings, numbers or dataclasses, or remove workers= and executor="
            ) from error
