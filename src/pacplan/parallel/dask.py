"""Single calls on a Dask cluster, by an actor at each worker.

A task for each call would cost Dask's scheduler up to a millisecond, and tens of them until the outcome
is there. If a worker is lost, the futures of the calls that it had in hand say so. What comes later
goes to the others, and to workers that have joined meanwhile.
"""

import asyncio
from concurrent.futures import BrokenExecutor, Executor, Future
from types import TracebackType
from typing import Any, Self

import cloudpickle

from pacplan.parallel.pools import outcome_of, taken

# How often, in seconds, to see which workers there are.
_LOOK = 1.0


class Caller:
    """At a worker: makes calls, in the threads that do its tasks."""

    def __init__(self, job: bytes) -> None:
        from distributed import get_worker

        self._job, self._threads = cloudpickle.loads(job), get_worker().executors["default"]

    async def call(self, call: bytes) -> bytes:
        """Make a call."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, outcome_of, self._job, call)


class Actors(Executor):
    """The workers of a Dask cluster, as an executor of one function's calls.

    Use it in a `with` statement. All but `submit` happens in the thread of the client's event loop. The
    `job`, which is called, travels to each worker once.
    """

    def __init__(self, client: Any, job: bytes) -> None:
        self._client, self._job = client, job
        self._waiting: asyncio.Queue[tuple[Future[Any], bytes]] = asyncio.Queue()
        self._workers: dict[str, asyncio.Task[None]] = {}
        self._broken: Exception | None = None

    def __enter__(self) -> Self:
        self._client.loop.add_callback(self._begin)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client.status == "running":
            self._client.loop.add_callback(self._recruiting.cancel)

    def submit(self, *arguments: Any) -> Future[Any]:  # type: ignore[override]
        """Have a call made.

        Raises:
            BrokenExecutor: the cluster is gone, or its workers cannot do it.
        """
        if self._broken is not None:
            raise BrokenExecutor(str(self._broken)) from self._broken
        future: Future[Any] = Future()
        self._client.loop.add_callback(self._take, future, cloudpickle.dumps(arguments))
        return future

    def _take(self, future: Future[Any], call: bytes) -> None:
        self._waiting.put_nowait((future, call))
        if self._broken is not None:
            self._break(self._broken)

    def _begin(self) -> None:
        self._recruiting = asyncio.create_task(self._recruit())

    async def _recruit(self) -> None:
        """Have actors at workers as they join, and give those up that Dask has given up."""
        gone: Exception = RuntimeError("the Dask client was closed")
        try:
            while True:
                threads = await self._client.nthreads()
                for address in self._workers.keys() - threads.keys():
                    self._workers.pop(address).cancel()
                for address in threads.keys() - self._workers.keys():
                    work = self._employ(address, threads[address])
                    self._workers[address] = asyncio.create_task(work)
                await asyncio.sleep(_LOOK)
        except Exception as error:
            if self._client.status == "running":
                gone = error
        finally:
            self._break(gone)

    async def _employ(self, address: str, threads: int) -> None:
        """Have a worker make calls, one more at a time than it has threads, until it is lost."""
        try:
            with self._client.as_current():
                actor = await self._client.submit(
                    Caller, self._job, actor=True, workers=[address], pure=False
                )
        except Exception as error:  # It does not know pacplan, or the model, for instance.
            if address in self._workers:
                self._break(error)
            return
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(threads + 1):
                    group.create_task(self._have_made(actor, address))
        except ExceptionGroup:
            self._workers.pop(address, None)

    async def _have_made(self, actor: Any, address: str) -> None:
        """Have calls made, one after the other."""
        while True:
            future, call = await self._waiting.get()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                outcome = await actor.call(call)
            except BaseException:
                future.set_exception(BrokenExecutor(f"the worker at {address} was lost"))
                raise
            try:
                future.set_result(taken(outcome))
            except Exception as error:
                future.set_exception(error)

    def _break(self, error: Exception) -> None:
        """No call will be made any more."""
        self._broken = error
        while self._workers:
            self._workers.popitem()[1].cancel()
        while not self._waiting.empty():
            future, _ = self._waiting.get_nowait()
            if future.set_running_or_notify_cancel():
                future.set_exception(BrokenExecutor(str(error)))
