"""Where work is done: in this thread, in pools of threads or processes, or on a Dask cluster."""

import os
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from itertools import islice
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import cloudpickle
import numpy as np
from loky import ProcessPoolExecutor

from pacplan.core import checks
from pacplan.engine.driver import Interrupt, ctrl_c

# Bytes of freed memory that a process of many plans may keep, half of it in one piece.
_KEPT = 1 << 25
# Seconds between two looks at whether to wait any longer.
_LOOK = 0.1

Submit = Callable[..., Future[Any]]
"""Has a job done with some arguments."""


class Workers(NamedTuple):
    """Who does the work.

    Attributes:
        at_once: how much at a time; None: what the executor has workers for, or one per core.
        executor: the user's own executor, or Dask client; None: threads or processes of ours.
    """

    at_once: int | None
    executor: Any

    def check(self) -> None:
        """Raise ValueError or TypeError for what cannot work."""
        if self.at_once is not None:
            checks.integer("workers", self.at_once, least=1)
        if not (self.executor is None or hasattr(self.executor, "submit")):
            raise TypeError(
                "executor must be a concurrent.futures.Executor or a Dask client, got "
                f"{type(self.executor).__name__}"
            )

    @property
    def on_dask(self) -> bool:
        """Whether a Dask cluster does it."""
        return hasattr(self.executor, "get_executor")

    @property
    def number(self) -> int:
        """How much is done at a time."""
        return int(self.at_once or self._size or os.cpu_count() or 1)

    @property
    def handed_over(self) -> int:
        """How much is handed over at a time: twice as much, if the rest waits until it is its turn.

        So whoever is done has the next call at hand, and need not wait for the search to think.
        """
        size = self.number if self.executor is None else self._size
        return 2 * self.number if size == self.number else self.number

    @property
    def _size(self) -> int | None:
        """How much the executor does at a time, if it says so."""
        if self.on_dask:
            return max(1, int(sum(self.executor.nthreads().values())))
        # Python's own executors know it by this name.
        return getattr(self.executor, "_max_workers", None)

    @contextmanager
    def at_work(
        self, job: Callable[..., Any], *, threads: bool = False, interrupt: Interrupt | None = None
    ) -> Iterator[Submit]:
        """Have a job done by the user's executor, this thread, or threads or processes of our own.

        Processes and Dask workers get the job once. `threads` says whether threads of our own will do,
        and `interrupt` ends the plans that are made by threads or processes of our own.
        """
        if self.on_dask:
            from pacplan.parallel.dask import installed

            with installed(self.executor, job) as submit:
                yield submit
        elif self.executor is not None:
            yield partial(self.executor.submit, job)
        elif self.number == 1:
            yield partial(_done_here, job)
        elif threads:
            with _thread_pool(self.number, interrupt or Interrupt()) as pool:
                yield partial(pool.submit, job)
        else:
            other = "executor=concurrent.futures.ThreadPoolExecutor() if it mostly waits"
            sent = sendable(job, "a Python model", f", or {other}")
            with process_pool(self.number, interrupt, sent) as pool:
                yield partial(pool.submit, _run_installed)


def in_order(
    submit: Submit, parts: Iterator[Any], ahead: int, given_up: Callable[[], bool] = lambda: False
) -> Generator[Future[Any]]:
    """The results of a job's parts in their order, as futures that are done.

    The next part is asked for when fewer than `ahead` are handed over whose results were not given yet.
    Parts that were not begun when this is closed are never done; those that the executor refuses are
    done, with what it raised. `given_up` says, while nothing is done, whether to wait no longer.
    """
    pending: deque[Future[Any]] = deque()
    try:
        while True:
            for part in islice(parts, ahead - len(pending)):
                try:
                    pending.append(submit(part))
                except Exception as error:
                    refused: Future[Any] = Future()
                    refused.set_exception(error)
                    pending.append(refused)
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


def _done_here(job: Callable[..., Any], *arguments: Any) -> Future[Any]:
    """Do a job at once; what it raises, except Ctrl-C, is kept in the future."""
    future: Future[Any] = Future()
    try:
        future.set_result(job(*arguments))
    except Exception as error:
        future.set_exception(error)
    return future


@contextmanager
def _thread_pool(workers: int, interrupt: Interrupt) -> Iterator[Executor]:
    """A pool of threads that do not outlive the context. `interrupt` ends their plans."""
    pool = ThreadPoolExecutor(workers, "pacplan", setattr, (ctrl_c, "enclosing", interrupt))
    # The C library then keeps the memory that a plan gives back for the next one. Otherwise the system
    # clears every page anew: a fifth of the time of a plan with a tree of some megabytes.
    np.empty(_KEPT // 2, np.uint8)
    try:
        yield pool
    except BaseException:
        interrupt.request()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def process_pool(
    workers: int, interrupt: Interrupt | None = None, job: bytes | None = None
) -> Iterator[Executor]:
    """A pool of processes that do not outlive the context, nor this process, however that is left.

    What is under way at the end is dropped. Nothing runs the user's script again, and functions that
    cannot be imported travel by value. If a process is lost, all futures raise BrokenExecutor.
    `interrupt` ends their plans; each process gets the `job`, made by `sendable`, once.
    """
    # Nothing is written to either of them: all processes see when our end is closed.
    lifeline, ours = Pipe(duplex=False)
    going, halt = Pipe(duplex=False)
    if interrupt is not None:
        interrupt.callbacks.append(halt.close)
    pool = _Processes(
        workers,
        initializer=_begin,
        initargs=(lifeline, going, job),
        env={"LOKY_MAX_MEMORY_LEAK_SIZE": "1e18"},  # Large trees are no leaks.
    )
    try:
        with interrupts_held():
            pool.submit(os.getpid)  # Starts all of them.
        yield pool
    finally:
        pool.shutdown(kill_workers=True)
        for end in (lifeline, ours, going, halt):
            end.close()


class _Processes(ProcessPoolExecutor):  # type: ignore[misc]
    """See `process_pool`."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have a function called."""
        sent = super().submit(_called, partial(fn, *args, **kwargs))
        # A future that is cancelled would confuse loky, so none of its own is given out.
        future: Future[Any] = Future()
        sent.add_done_callback(partial(_hand_on, future))
        return future


def _called(function: Callable[[], Any]) -> Any:
    """In another process: a call, whose errors can be sent."""
    try:
        return function()
    except BaseException as error:
        raise portable(error) from None


def _hand_on(future: Future[Any], sent: Future[Any]) -> None:
    """What a process has sent, to whoever waits for it."""
    if future.set_running_or_notify_cancel():
        try:
            future.set_result(sent.result())
        except Exception as error:
            future.set_exception(error)


_sent: list[bytes] = []


@cache
def _job() -> Any:
    return cloudpickle.loads(_sent[0])


def _run_installed(*args: Any) -> Any:
    """Call the function that came with this process."""
    return _job()(*args)


def _begin(lifeline: Connection, going: Connection, job: bytes | None) -> None:
    """End when the parent ends, and plans when it closes the other pipe."""
    if job is not None:
        _sent.append(job)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    interrupt = ctrl_c.enclosing = Interrupt()
    _when_closed(lifeline, lambda: os._exit(1))
    _when_closed(going, interrupt.request)


def _when_closed(pipe: Connection, act: Callable[[], None]) -> None:
    """Do something when the other end of a pipe is closed."""

    def wait_and_act() -> None:
        try:
            pipe.recv_bytes()
        except (EOFError, OSError):
            act()

    threading.Thread(target=wait_and_act, daemon=True).start()


def sendable(job: Any, what: str, other: str = "") -> bytes:
    """What can be sent to other processes: functions that cannot be imported there go by value.

    Raises:
        TypeError: it cannot; `what` it consists of, and what `other` way there is, are in words.
    """
    try:
        sent: bytes = cloudpickle.dumps(job)
    except Exception as error:
        raise TypeError(
            f"{what} cannot be sent to other processes: {error}. Create locks, connections and open "
            f"files in your function when it is first called, or pass workers=1{other}"
        ) from None
    return sent


def portable(error: BaseException) -> Exception:
    """An error that another process can read, with where it was raised."""
    told = "".join(traceback.format_exception(error))
    try:
        assert isinstance(error, Exception)
        error.add_note(f"in another process:\n{told}")
        cloudpickle.loads(cloudpickle.dumps(error))
    except Exception:
        return RuntimeError(f"the model raised what cannot be sent from its process:\n{told}")
    return error


@contextmanager
def dask_cluster(address: str, workers: int | None = None) -> Iterator[tuple[Executor, int]]:
    """An executor on a Dask cluster, and how many runs it computes at a time.

    Args:
        address: of the scheduler, such as tcp://host:8786, or "local" to start a cluster here.
        workers: processes of a local cluster, by default one per core.
    """
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise ImportError("a Dask cluster needs distributed: pip install pacplan[cluster]") from None

    with ExitStack() as stack:
        try:
            cluster: Any = address
            if address == "local":
                count = workers or os.cpu_count()
                with interrupts_held():  # Any free port: there may be other clusters on this host.
                    cluster = stack.enter_context(
                        LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=":0")
                    )
            client = stack.enter_context(Client(cluster, timeout=10))
        except (OSError, ValueError) as error:
            raise ValueError(f"cannot reach a Dask scheduler at {address!r}: {error}") from None
        yield client.get_executor(), Workers(None, client).number


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Processes started meanwhile leave Ctrl-C to their parent, which gets it a little later."""
    if not hasattr(signal, "pthread_sigmask"):
        yield  # Windows: the processes ignore it once they have begun.
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # To start it lets Ctrl-C through.
    # Processes inherit the mask. But a signal may reach another thread of ours, for which Python then
    # acts in the main one: that waits as well.
    pressed: list[int] = []
    handler = signal.getsignal(signal.SIGINT)
    waits = threading.current_thread() is threading.main_thread() and handler is not None
    if waits:
        signal.signal(signal.SIGINT, lambda number, frame: pressed.append(number))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if waits:
            signal.signal(signal.SIGINT, handler)
        if pressed:
            signal.raise_signal(signal.SIGINT)
