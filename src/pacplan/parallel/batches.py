"""Work done in parts by any executor: in batches of about equal time, results as they come."""

from collections import deque
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from itertools import islice
from typing import Any, TypeVar

from pacplan.parallel.pools import InProcess

# Seconds between two looks at whether to wait any longer.
_LOOK = 0.1

Part = TypeVar("Part")


def as_computed(
    executor: Executor,
    call: tuple[Any, ...],
    parts: Iterator[Any],
    ahead: int,
    *,
    in_order: bool = False,
    given_up: Callable[[], bool] = lambda: False,
) -> Generator[Future[Any]]:
    """The results of a job's parts, as futures that are done: the loop of all that is done in parts.

    The next part is asked for when there is room, so that what came before may tell how large it should
    be. Parts that were not begun when this is closed are never done; those that the executor refuses
    are done, with what it raised.

    Args:
        executor: what computes.
        call: what it is to call with each part: a function, and arguments before the part.
        parts: what there is to do.
        ahead: how many parts are handed over whose results were not given yet, by those that do not
            compute at once.
        in_order: whether results are given in the order of the parts, not as they come.
        given_up: says, now and then while nothing is done, whether to wait no longer.
    """
    most = 1 if isinstance(executor, InProcess) else ahead
    pending: deque[Future[Any]] = deque()
    try:
        while True:
            for part in islice(parts, most - len(pending)):
                pending.append(_submitted(executor, *call, part))
            watched = list(islice(pending, 1 if in_order else None))
            # A future that somebody else cancels is done, but waiting for it may not end.
            while not (done := [future for future in watched if future.done()]):
                if not watched or given_up():
                    return
                wait(watched, _LOOK, FIRST_COMPLETED)
            for future in done:
                pending.remove(future)
                yield future
    finally:
        for future in pending:
            future.cancel()


def _submitted(executor: Executor, *call: Any) -> Future[Any]:
    """The future of a call; what an executor raises that takes no more is its result."""
    try:
        return executor.submit(*call)
    except Exception as error:
        refused: Future[Any] = Future()
        refused.set_exception(error)
        return refused


class Batches(Iterator[list[Part]]):
    """Groups parts into batches of about equal time, once it is known how long each kind takes.

    Args:
        parts: what there is to do; no more of it is read than the batch needs.
        seconds: that a batch should take.
        most: parts in a batch.
        kind: what the time of a part depends on.
    """

    def __init__(
        self,
        parts: Iterable[Part],
        seconds: float,
        most: int,
        kind: Callable[[Part], Hashable] = lambda part: None,
    ) -> None:
        self._parts, self._whole, self._most, self._kind = iter(parts), seconds, most, kind
        self._seconds: dict[Hashable, float] = {}

    def __next__(self) -> list[Part]:
        """The next batch."""
        batch: list[Part] = []
        total = 0.0
        for part in islice(self._parts, self._most):
            batch.append(part)
            expected = self._seconds.get(self._kind(part), self._whole)
            total += expected
            if total + expected > self._whole:  # Another one like this would be too much.
                break
        if not batch:
            raise StopIteration
        return batch

    def learn(self, kind: Hashable, seconds: float) -> None:
        """Note how long a part of a kind took."""
        self._seconds[kind] = seconds
