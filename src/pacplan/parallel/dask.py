"""Single calls on a Dask cluster, by an actor at each worker.

A task for each call would cost Dask's scheduler up to a millisecond, and tens of them until the outcome
is there. An actor takes the calls of the same moment in one message.

If a worker is lost, the futures of the calls that it had in hand say so. What comes later goes to the
others, and to workers that have joined meanwhile.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import BrokenExecutor, Executor, Future
from itertools import count
from types import TracebackType
from typing import Any, Self

import cloudpickle

from pacplan.parallel.pools import outcome_of, taken

# How often, in seconds, to see which workers there are.
_LOOK = 1.0
# Seconds for which an outcome waits for others that are on their way, so that they share a message.
_APART = 0.002
# Calls that take longer than this, in seconds, wait here for whoever is free first; shorter ones wait
# at a worker, so that it is not idle while messages travel.
_LONG = 0.1
# How much the latest call counts in what calls take.
_LATEST = 0.05


class Caller:
    """At a worker: makes calls, in the threads that do its tasks."""

    def __init__(self, job: bytes) -> None:
        from distributed import get_worker

        self._job, self._threads = cloudpickle.loads(job), get_worker().executors["default"]
        self._under_way: dict[asyncio.Future[bytes], int] = {}

    async def call_many(self, calls: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        """Begin calls; returns the outcomes of some, also of those begun before, as they come."""
        loop = asyncio.get_running_loop()
        for number, call in calls:
            future = loop.run_in_executor(self._threads, outcome_of, self._job, call)
            self._under_way[future] = number
        found: list[tuple[int, bytes]] = []
        while self._under_way and not found:
            await asyncio.wait(self._under_way, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.sleep(_APART)
            done = [future for future in self._under_way if future.done()]
            found = [(self._under_way.pop(future), future.result()) for future in done]
        return found


class _Worker:
    """A worker, as it is seen from here."""

    def __init__(self, threads: int) -> None:
        self.threads = max(1, threads)  # calls that it makes at a time
        self.actor: Any = None  # its `Caller`, once it is there
        self.in_hand: dict[int, tuple[Future[Any], float]] = {}  # its calls by number, and since when
        self.asked = 0  # how often it is being asked for outcomes

    @property
    def load(self) -> float:
        """Calls in hand for each that it makes at a time."""
        return len(self.in_hand) / self.threads


class Actors(Executor):
    """The workers of a Dask cluster, as an executor of one function's calls.

    Use it in a `with` statement. `submit` may come from one thread; all else happens in the thread of
    the client's event loop. The `job`, which is called, travels to each worker once.
    """

    def __init__(self, client: Any, job: bytes) -> None:
        self._client, self._job = client, job
        self._workers: dict[str, _Worker] = {}
        self._going_on: set[asyncio.Task[None]] = set()
        self._waiting: deque[tuple[Future[Any], bytes]] = deque()
        self._numbers = count()
        self._told = False
        self._seconds = 0.0
        self._broken: Exception | None = None

    def __enter__(self) -> Self:
        self._client.loop.add_callback(self._keep, self._recruit)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client.status == "running":
            self._client.sync(self._end)

    def submit(self, *arguments: Any) -> Future[Any]:  # type: ignore[override]
        """Have a call made.

        Raises:
            BrokenExecutor: the cluster is gone, or its workers cannot do it.
        """
        if self._broken is not None:
            raise BrokenExecutor(str(self._broken)) from self._broken
        future: Future[Any] = Future()
        self._waiting.append((future, cloudpickle.dumps(arguments)))
        if not self._told:
            self._told = True
            self._client.loop.add_callback(self._hand_out)
        return future

    def _keep(self, work: Callable[..., Coroutine[Any, Any, None]], *arguments: Any) -> None:
        """Have something done: asyncio itself holds no reference to it."""
        task = asyncio.create_task(work(*arguments))
        self._going_on.add(task)
        task.add_done_callback(self._going_on.discard)

    async def _end(self) -> None:
        for task in self._going_on:
            task.cancel()
        self._workers.clear()

    async def _recruit(self) -> None:
        """Have actors at workers as they join, and give those up that Dask has given up."""
        gone: Exception = RuntimeError("the Dask client was closed")
        try:
            while True:
                threads = await self._client.nthreads()
                for address in self._workers.keys() - threads.keys():
                    self._lose(address)
                for address in threads.keys() - self._workers.keys():
                    self._workers[address] = _Worker(threads[address])
                    self._keep(self._employ, address)
                await asyncio.sleep(_LOOK)
        except Exception as error:
            if self._client.status == "running":
                gone = error
        finally:
            self._break(gone)

    async def _employ(self, address: str) -> None:
        """Make the actor of a worker."""
        worker = self._workers[address]
        try:
            with self._client.as_current():
                worker.actor = await self._client.submit(
                    Caller, self._job, actor=True, workers=[address], pure=False
                )
        except Exception as error:  # It does not know pacplan, or the model, for instance.
            if address in self._workers:
                self._break(error)
        self._hand_out()

    def _hand_out(self) -> None:
        """Give calls to those who have the least to do."""
        self._told = False
        a_thread = 1 if self._seconds > _LONG else 2
        given: dict[str, list[tuple[int, bytes]]] = {}
        ready = {address: worker for address, worker in self._workers.items() if worker.actor}
        while self._waiting and ready:
            address = min(ready, key=lambda one: ready[one].load)
            if ready[address].load >= a_thread:
                break
            future, call = self._waiting.popleft()
            if future.set_running_or_notify_cancel():
                number = next(self._numbers)
                ready[address].in_hand[number] = future, time.monotonic()
                given.setdefault(address, []).append((number, call))
        for address, worker in ready.items():
            if address in given or (worker.in_hand and not worker.asked):
                self._keep(self._ask, address, worker, given.get(address, []))

    async def _ask(self, address: str, worker: _Worker, calls: list[tuple[int, bytes]]) -> None:
        """Give a worker calls, and take outcomes that it has."""
        worker.asked += 1
        try:
            outcomes = await worker.actor.call_many(calls)
        except Exception:
            self._lose(address)
            return
        worker.asked -= 1
        for number, outcome in outcomes:
            if number not in worker.in_hand:  # It was lost, and has come after all: too late.
                continue
            future, began = worker.in_hand.pop(number)
            self._seconds += _LATEST * (time.monotonic() - began - self._seconds)
            try:
                future.set_result(taken(outcome))
            except Exception as error:
                future.set_exception(error)
        self._hand_out()

    def _lose(self, address: str) -> None:
        """Give a worker up, with the calls that it has in hand."""
        worker = self._workers.pop(address, None)
        while worker is not None and worker.in_hand:
            lost = BrokenExecutor(f"the worker at {address} was lost")
            worker.in_hand.popitem()[1][0].set_exception(lost)

    def _break(self, error: Exception) -> None:
        """No call will be made any more."""
        self._broken = error
        for address in tuple(self._workers):
            self._lose(address)
        while self._waiting:
            future, _ = self._waiting.popleft()
            if future.set_running_or_notify_cancel():
                future.set_exception(BrokenExecutor(str(error)))
