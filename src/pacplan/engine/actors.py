"""Single calls on a Dask cluster, by an actor at each worker.

A task for each call would cost Dask's scheduler up to a millisecond, and tens of them until the outcome
is there. An actor takes the calls of the same moment in one message, and its scheduler but passes them
on; not even that if the client was made with `direct_to_workers=True`.

A worker that is lost takes the calls with it that it had in hand: their futures say so. What comes
later finds its way to the others, and to workers that have joined meanwhile.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import BrokenExecutor, Executor, Future
from types import TracebackType
from typing import Any, Self

import cloudpickle

from pacplan.engine.executors import outcome_of, taken

# How often, in seconds, to see which workers there are.
_LOOK = 1.0
# Calls that take longer than this, in seconds, wait here for whoever is free first, and travel alone;
# shorter ones wait at a worker, so that it is not idle while messages travel.
_LONG = 0.1
# How much the latest calls count in what calls take.
_LATEST = 0.1


class Caller:
    """At a worker: makes calls, as many at a time as it has threads."""

    def __init__(self, job: bytes, threads: int) -> None:
        from distributed.threadpoolexecutor import ThreadPoolExecutor

        self._job = cloudpickle.loads(job)
        self._pool = ThreadPoolExecutor(threads)  # A call under way keeps no worker from ending.

    async def call_many(self, calls: list[bytes]) -> list[bytes]:
        """What calls come to."""
        loop = asyncio.get_running_loop()
        made = (loop.run_in_executor(self._pool, outcome_of, self._job, call) for call in calls)
        return await asyncio.gather(*made)


class _Worker:
    """A worker, as it is seen from here.

    Attributes:
        threads: how many calls it makes at a time.
        actor: its `Caller`, once it is there.
        in_hand: the calls that it was given.
    """

    def __init__(self, threads: int) -> None:
        self.threads = max(1, threads)
        self.actor: Any = None
        self.in_hand: set[Future[Any]] = set()

    @property
    def load(self) -> float:
        """Calls in hand for each that it makes at a time."""
        return len(self.in_hand) / self.threads


class Actors(Executor):
    """The workers of a Dask cluster, as an executor of one function's calls.

    Use it in a `with` statement. `submit` may come from one thread; all else happens in the thread of
    the client's event loop.

    Args:
        client: of the cluster.
        job: what is called; it travels to each worker once.
    """

    def __init__(self, client: Any, job: bytes) -> None:
        self._client, self._job = client, job
        self._workers: dict[str, _Worker] = {}
        self._going_on: set[asyncio.Task[None]] = set()
        self._waiting: deque[tuple[Future[Any], bytes]] = deque()
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
            gone = error
        finally:
            self._break(gone)

    async def _employ(self, address: str) -> None:
        """Make the actor of a worker."""
        worker = self._workers[address]
        try:
            with self._client.as_current():
                worker.actor = await self._client.submit(
                    Caller, self._job, worker.threads, actor=True, workers=[address], pure=False
                )
        except Exception as error:  # It does not know pacplan, or the model, for instance.
            if address in self._workers:
                self._break(error)
        self._hand_out()

    def _hand_out(self) -> None:
        """Give calls to those who have the least to do."""
        self._told = False
        long = self._seconds > _LONG
        batches: dict[str, list[tuple[Future[Any], bytes]]] = {}
        ready = {address: worker for address, worker in self._workers.items() if worker.actor}
        while self._waiting and ready:
            address = min(ready, key=lambda one: ready[one].load)
            worker = ready[address]
            if worker.load >= (1 if long else 2):
                break
            future, call = self._waiting.popleft()
            if future.set_running_or_notify_cancel():
                worker.in_hand.add(future)
                batches.setdefault(address, []).append((future, call))
        for address, batch in batches.items():
            for part in [[one] for one in batch] if long else [batch]:
                self._keep(self._have_made, address, part)

    async def _have_made(self, address: str, batch: list[tuple[Future[Any], bytes]]) -> None:
        """Have a worker make calls."""
        worker, began = self._workers[address], time.monotonic()
        try:
            outcomes = await worker.actor.call_many([call for _, call in batch])
        except Exception:
            self._lose(address)
            return
        self._seconds += _LATEST * (time.monotonic() - began - self._seconds)
        for (future, _), outcome in zip(batch, outcomes, strict=True):
            if future not in worker.in_hand:  # It was lost, and has come after all: too late.
                continue
            worker.in_hand.remove(future)
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
            worker.in_hand.pop().set_exception(lost)

    def _break(self, error: Exception) -> None:
        """No call will be made any more."""
        self._broken = error
        for address in tuple(self._workers):
            self._lose(address)
        while self._waiting:
            future, _ = self._waiting.popleft()
            if future.set_running_or_notify_cancel():
                future.set_exception(BrokenExecutor(str(error)))
