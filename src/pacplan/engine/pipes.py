"""Processes of our own that make single calls of one function, each at the end of a pipe."""

import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from pacplan.engine.executors import Bonds, begin, bonds, interrupts_held, portable


@contextmanager
def call_pool(workers: int, job: Callable[..., Any]) -> Iterator[Executor]:
    """A pool of processes for calls of one function that are short: `submit(*arguments)` of it.

    Each has a pipe, and a thread that waits at its end, so a call costs two messages. A process that is
    lost takes one call with it, whose future says so, and is replaced. What is under way at the end is
    dropped.
    """
    with bonds() as ties:
        pool = _Calls(workers, ties, job)
        try:
            yield pool
        finally:
            ties.lifeline.close()
            pool.shutdown(cancel_futures=True)


class _Calls(Executor):
    """See `call_pool`."""

    def __init__(self, workers: int, ties: Bonds, job: Callable[..., Any]) -> None:
        self._ties, self._job = ties, job
        self._processes: list[Any] = []
        self._threads = ThreadPoolExecutor(workers, "pacplan")
        self._idle: SimpleQueue[Connection] = SimpleQueue()
        for _ in range(workers):
            self._idle.put(self._started())

    def submit(self, *arguments: Any) -> Future[Any]:  # type: ignore[override]
        """Have a call made."""
        return self._threads.submit(self._call, arguments)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Wait until all have ended."""
        self._threads.shutdown(wait, cancel_futures=cancel_futures)
        for process in self._processes:
            process.join()
        while not self._idle.empty():
            self._idle.get().close()

    def _call(self, arguments: tuple[Any, ...]) -> Any:
        """Have a process make a call. There are as many processes as threads that do this."""
        pipe = self._idle.get()
        try:
            pipe.send(arguments)
            outcome = pipe.recv_bytes()
        except (EOFError, OSError) as error:
            pipe.close()
            if not self._ties.lifeline.closed:
                pipe = self._started()
            raise BrokenExecutor("its process ended") from error
        finally:
            self._idle.put(pipe)
        return taken(outcome)

    def _started(self) -> Connection:
        """A new process, by the end of its pipe."""
        ours, theirs = get_context("spawn").Pipe()
        arguments = theirs, self._ties.theirs, self._job
        process = get_context("spawn").Process(target=_serve, args=arguments)
        with interrupts_held():
            process.start()
        theirs.close()
        self._processes.append(process)
        return ours


def _serve(
    pipe: Connection, ties: tuple[Connection, Connection, Connection], job: Callable[..., Any]
) -> None:
    """Make calls until there are no more."""
    begin(*ties, None)
    with suppress(EOFError, OSError):
        while True:
            pipe.send_bytes(outcome_of(job, pipe.recv_bytes()))


@dataclass(frozen=True)
class _Raised:
    """A call came to nothing."""

    error: Exception


def outcome_of(job: Callable[..., Any], call: bytes, pickler: Any = pickle) -> bytes:
    """Where a call was sent: what it comes to, pickled as its arguments were."""
    try:
        outcome: bytes = pickler.dumps(job(*pickler.loads(call)))
    except BaseException as error:
        raised = error if isinstance(error, Exception) else RuntimeError(f"the model raised {error!r}")
        outcome = pickler.dumps(_Raised(portable(raised)))
    return outcome


def taken(outcome: bytes, pickler: Any = pickle) -> Any:
    """What a call came to; raises what it has raised, if it was made at all."""
    found = pickler.loads(outcome)
    if isinstance(found, _Raised):
        raise found.error
    return found
