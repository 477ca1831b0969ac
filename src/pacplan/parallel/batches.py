"""Work done in parts by any executor, so many ahead of the one whose result is wanted next."""

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Executor, Future, wait
from itertools import islice
from typing import Any

from pacplan.parallel.pools import InProcess

# Seconds between two looks at whether to wait any longer.
_LOOK = 0.1


def in_order(
    executor: Executor,
    call: tuple[Any, ...],
    parts: Iterator[Any],
    ahead: int,
    given_up: Callable[[], bool] = lambda: False,
) -> Generator[Future[Any]]:
    """The results of a job's parts in their order, as futures that are done.

    The next part is asked for when there is room. Parts that were not begun when this is closed are
    never done; those that the executor refuses are done, with what it raised.

    Args:
        executor: what computes.
        call: what it is to call with each part: a function, and arguments before the part.
        parts: what there is to do.
        ahead: how many parts are handed over whose results were not given yet, by those that do not
            compute at once.
        given_up: says, now and then while nothing is done, whether to wait no longer.
    """
    most = 1 if isinstance(executor, InProcess) else ahead
    pending: deque[Future[Any]] = deque()
    try:
        while True:
            for part in islice(parts, most - len(pending)):
                pending.append(_submitted(executor, *call, part))
            if not pending:
                return
            # A future that somebody else cancels is done, but waiting for it may not end.
            while not pending[0].done():
                if given_up():
                    return
                wait([pending[0]], _LOOK)
            yield pending.popleft()
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
