"""Single calls on a Dask cluster, over a line of our own to each worker.

A task for each call would cost Dask's scheduler up to a millisecond, and tens of them until the outcome
is there. So a task is sent to each worker once, with what is to be called. After that the worker is
connected to directly, at its own port and with Dask's own encryption; calls and outcomes travel on that
line, those of the same moment in one message, and the scheduler has no part in them.

A worker that is lost takes the calls with it that it had in hand: their futures say so. What comes
later finds its way to the others, and to workers that have joined meanwhile.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import BrokenExecutor, CancelledError, Future
from contextlib import suppress
from itertools import count
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

from pacplan.engine.pipes import outcome_of, taken

# Messages on a line are at least this many milliseconds apart.
_APART = 2
# How often, in seconds, to see which workers there are.
_LOOK = 1.0
# Seconds after which a worker counts as out of reach.
_REACH = 10.0
# Calls that take longer than this, in seconds, wait here for whoever is free first; shorter ones wait
# at a worker, so that it is not idle while messages travel.
_LONG = 0.1
# How much the latest call counts in what calls take.
_LATEST = 0.05


class _Line:
    """A worker, as it is seen from here.

    Attributes:
        address: of the worker.
        threads: how many calls it makes at a time.
        comm: the connection; None: it cannot be reached, so calls are tasks of Dask.
        sender: gathers what is to be sent.
        in_hand: the calls that it was given, by number, and when.
    """

    def __init__(self, address: str, threads: int, comm: Any, sender: Any) -> None:
        self.address, self.threads, self.comm, self.sender = address, threads, comm, sender
        self.in_hand: dict[int, tuple[Future[Any], float]] = {}

    @property
    def load(self) -> float:
        """Calls in hand for each that it makes at a time."""
        return len(self.in_hand) / self.threads


class Lines:
    """The workers of a Dask cluster, as an executor of one function's calls.

    Use it in a `with` statement. `submit` may come from one thread; all else happens in the thread of
    the client's event loop.

    Args:
        client: of the cluster.
        job: what is called; it travels to each worker once.
    """

    def __init__(self, client: Any, job: Callable[..., Any]) -> None:
        from distributed.protocol.pickle import dumps

        self._client, self._job = client, dumps(job)
        self._name = f"pacplan-{uuid4().hex}"
        self._lines: dict[str, _Line] = {}
        self._opening: dict[str, asyncio.Task[None]] = {}
        self._going_on: set[asyncio.Task[None]] = set()
        self._waiting: deque[tuple[Future[Any], bytes]] = deque()
        self._numbers = count()
        self._told = False
        self._seconds = 0.0
        self._broken: BaseException | None = None
        self._recruiting: asyncio.Task[None]

    def __enter__(self) -> Self:
        self._loop = self._client.loop.asyncio_loop
        self._client.sync(self._begin)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client.status == "running":
            self._client.sync(self._end)

    def submit(self, *arguments: Any) -> Future[Any]:
        """Have a call made.

        Raises:
            BrokenExecutor: the cluster is gone, or its workers cannot do it.
        """
        from distributed.protocol.pickle import dumps

        if self._broken is not None:
            raise BrokenExecutor(str(self._broken)) from self._broken
        future: Future[Any] = Future()
        self._waiting.append((future, dumps(arguments)))
        if not self._told:
            self._told = True
            self._loop.call_soon_threadsafe(self._hand_out)
        return future

    async def _begin(self) -> None:
        self._recruiting = asyncio.create_task(self._recruit())

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        """Have something done: asyncio itself holds no reference to it."""
        task = asyncio.create_task(work)
        self._going_on.add(task)
        task.add_done_callback(self._going_on.discard)

    async def _end(self) -> None:
        for task in (self._recruiting, *self._opening.values(), *self._going_on):
            task.cancel()
        for line in tuple(self._lines.values()):
            self._lose(line)

    async def _recruit(self) -> None:
        """Open lines to workers as they join, and give up those to workers that Dask has given up."""
        try:
            while True:
                threads = await self._client.scheduler.ncores()
                for address in self._lines.keys() - threads.keys():
                    self._lose(self._lines[address])
                for address in self._opening.keys() - threads.keys():
                    self._opening.pop(address).cancel()
                for address in threads.keys() - self._lines.keys() - self._opening.keys():
                    opening = asyncio.create_task(self._open(address, threads[address]))
                    self._opening[address] = opening
                await asyncio.sleep(_LOOK)
        except Exception as error:
            self._break(error)

    async def _open(self, address: str, threads: int) -> None:
        """Connect to a worker."""
        from distributed.batched import BatchedSend
        from distributed.comm import connect

        try:
            await self._client.submit(_stand_by, self._name, self._job, workers=[address], pure=False)
            line = _Line(address, max(1, threads), None, None)
            with suppress(OSError):
                security = self._client.security.get_connection_args("client")
                line.comm = await connect(address, timeout=_REACH, **security)
                await line.comm.write({"op": self._name, "reply": False})
                line.sender = BatchedSend(interval=_APART)
                line.sender.start(line.comm)
                self._keep(self._listen(line))
            self._lines[address] = line
            self._hand_out()
        except (OSError, CancelledError, asyncio.CancelledError):
            pass  # It was lost meanwhile.
        except Exception as error:  # It does not know pacplan, or the model, for instance.
            self._break(error)
        finally:
            if self._opening.get(address) is asyncio.current_task():
                del self._opening[address]

    def _break(self, error: Exception) -> None:
        """No call will be made any more."""
        self._broken = error
        for line in tuple(self._lines.values()):
            self._lose(line)
        while self._waiting:
            _fail(self._waiting.popleft()[0], str(error))

    def _hand_out(self) -> None:
        """Give calls to those who have the least to do."""
        self._told = False
        a_thread = 1 if self._seconds > _LONG else 2
        while self._waiting and self._lines:
            line = min(self._lines.values(), key=lambda line: line.load)
            if line.load >= a_thread:
                return
            future, call = self._waiting.popleft()
            if not future.set_running_or_notify_cancel():
                continue
            number = next(self._numbers)
            line.in_hand[number] = future, time.monotonic()
            if line.comm is None:
                self._keep(self._through_the_scheduler(line, number, call))
                continue
            try:
                line.sender.send((number, call))
            except OSError:
                self._lose(line)

    async def _listen(self, line: _Line) -> None:
        """Take what a worker sends, until it is lost."""
        try:
            while True:
                for number, outcome in await line.comm.read():
                    self._take(line, number, outcome)
                self._hand_out()
        except OSError:
            self._lose(line)

    async def _through_the_scheduler(self, line: _Line, number: int, call: bytes) -> None:
        """Have a call made by a worker that cannot be reached."""
        task = self._client.submit(_made, self._job, call, workers=[line.address], pure=False)
        try:
            self._take(line, number, await task)
        except Exception:
            self._lose(line)
        self._hand_out()

    def _take(self, line: _Line, number: int, outcome: bytes) -> None:
        from distributed.protocol import pickle

        if number not in line.in_hand:  # It was lost, and has come after all: too late.
            return
        future, began = line.in_hand.pop(number)
        self._seconds += _LATEST * (time.monotonic() - began - self._seconds)
        try:
            found = taken(outcome, pickle)
        except Exception as error:
            future.set_exception(error)
        else:
            future.set_result(found)

    def _lose(self, line: _Line) -> None:
        """Give a worker up, with the calls that it has in hand."""
        self._lines.pop(line.address, None)
        if line.sender is not None:
            line.sender.abort()
        while line.in_hand:
            future, _ = line.in_hand.popitem()[1]
            _fail(future, f"the worker at {line.address} was lost")


def _fail(future: Future[Any], why: str) -> None:
    if not future.cancelled():
        future.set_exception(BrokenExecutor(why))


def _stand_by(name: str, job: bytes) -> None:
    """At a worker: take calls from whoever connects and gives the name."""
    from distributed import get_worker
    from distributed.protocol.pickle import loads

    worker = get_worker()
    threads, function = worker.state.nthreads, loads(job)

    async def serve(comm: Any, **_: Any) -> Any:
        from distributed.batched import BatchedSend
        from distributed.core import Status
        from distributed.protocol import pickle
        from distributed.threadpoolexecutor import ThreadPoolExecutor

        del worker.handlers[name]  # There is one line.
        loop, sender = asyncio.get_running_loop(), BatchedSend(interval=_APART)
        sender.start(comm)
        pool = ThreadPoolExecutor(threads)  # Dask's: a call under way keeps no worker from ending.

        def make(number: int, call: bytes) -> None:
            if comm.closed():
                return
            outcome = outcome_of(function, call, pickle)
            with suppress(RuntimeError):  # The worker may have ended meanwhile.
                loop.call_soon_threadsafe(send, number, outcome)

        def send(number: int, outcome: bytes) -> None:
            with suppress(OSError):  # Nobody wants it any more.
                sender.send((number, outcome))

        try:
            while True:
                for number, call in await comm.read():
                    pool.submit(make, number, call)
        except OSError:
            return Status.dont_reply
        finally:
            pool.shutdown(wait=False)
            sender.abort()

    worker.handlers[name] = serve


def _made(job: bytes, call: bytes) -> bytes:
    """At a worker that cannot be reached: make a call."""
    from distributed.protocol import pickle

    return outcome_of(pickle.loads(job), call, pickle)
