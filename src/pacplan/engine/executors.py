"""Where plans are computed: in this thread, in pools of threads or processes, or on a Dask cluster."""

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from pacplan.engine.interrupts import Presses, part_of

_LOGGER = logging.getLogger("pacplan")
# What a pipe takes in one piece on every system, with its length.
_LONGEST = 500


class InProcess(Executor):
    """Computes at once, in the caller: for debugging, and for sweeps that take a second."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call the function; what it raises, except Ctrl-C, is kept in the future."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


@contextmanager
def thread_pool(workers: int, presses: Presses) -> Iterator[Executor]:
    """A pool of threads that do not outlive the context, however it is left.

    Args:
        workers: how many.
        presses: end the plans of the threads.
    """
    pool = ThreadPoolExecutor(workers, "pacplan", initializer=part_of, initargs=(presses,))
    try:
        yield pool
    except BaseException:
        presses.press()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def process_pool(
    workers: int, presses: Presses | None = None, job: Callable[..., Any] | None = None
) -> Iterator[Executor]:
    """A pool of processes that do not outlive the context, however it is left.

    They are started afresh, not forked: compiled code and threads do not survive forking. What they log
    is logged here: they would write across a progress bar.

    Args:
        workers: how many.
        presses: end the plans of the processes; None: nothing does.
        job: a function that travels to each process once: what is submitted calls it by `do_job`.
    """
    context = get_context("spawn")
    # Nothing is written to either of them: all processes see when our end is closed.
    theirs, ours = context.Pipe(duplex=False)
    going, halt = context.Pipe(duplex=False)
    told, telling = context.Pipe(duplex=False)
    listener = threading.Thread(target=_relay, args=(told,), daemon=True)
    pool = ProcessPoolExecutor(
        workers, context, initializer=_begin, initargs=(theirs, going, telling, job)
    )
    listener.start()
    if presses is not None:
        presses.stops.append(halt.close)
    try:
        with _interrupts_held():
            for _ in range(workers):
                pool.submit(os.getpid)  # Starts a process, as none is idle yet.
        yield pool
    except BaseException:
        ours.close()
        pool.shutdown(cancel_futures=True)
        raise
    else:
        pool.shutdown()
    finally:
        for end in (ours, theirs, going, halt, telling):
            end.close()
        listener.join(timeout=1.0)  # It ends when the last process has.


def _relay(told: Connection) -> None:
    """Log what the processes have to say."""
    with suppress(EOFError, OSError):
        while True:
            _LOGGER.warning("%s", told.recv_bytes().decode())


class _Telling(logging.Handler):
    """Sends messages to the parent. Processes share a pipe, in which short ones stay in one piece."""

    def __init__(self, telling: Connection) -> None:
        super().__init__(logging.WARNING)
        self._telling = telling

    def emit(self, record: logging.LogRecord) -> None:
        """Send a message."""
        with suppress(OSError):
            self._telling.send_bytes(record.getMessage().encode()[:_LONGEST])


_jobs: list[Callable[..., Any]] = []


def do_job(*args: Any) -> Any:
    """Call the function that came with this process."""
    return _jobs[0](*args)


def _begin(
    lifeline: Connection, going: Connection, telling: Connection, job: Callable[..., Any] | None
) -> None:
    """End when the parent closes the lifeline or dies, and plans when it closes the other."""
    if job is not None:
        _jobs.append(job)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _LOGGER.addHandler(_Telling(telling))
    _LOGGER.propagate = False
    presses = Presses()
    part_of(presses)
    _when_closed(lifeline, lambda: os._exit(1))
    _when_closed(going, presses.press)


def _when_closed(pipe: Connection, act: Callable[[], None]) -> None:
    """Do something when the other end of a pipe is closed."""

    def wait() -> None:
        try:
            pipe.recv_bytes()
        except (EOFError, OSError):
            act()

    threading.Thread(target=wait, daemon=True).start()


def lost(what: str, error: Exception, advice: str) -> RuntimeError:
    """The error for work that nobody will finish: what an executor raises itself."""
    return RuntimeError(
        f"{what} were lost with the process that computed them ({type(error).__name__}: {error}); it "
        f"may have been killed for lack of memory. {advice}"
    )


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

    if address == "local":
        count = workers or os.cpu_count() or 1
        with _interrupts_held():
            cluster = LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None)
        with cluster, Client(cluster) as client:
            yield client.get_executor(), count
        return
    try:
        client = Client(address, timeout=10)
    except (OSError, ValueError) as error:
        raise ValueError(f"there is no Dask scheduler at {address!r}: {error}") from None
    with client:
        yield client.get_executor(), max(1, sum(client.nthreads().values()))


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Processes started meanwhile leave Ctrl-C to their parent, which gets it a little later."""
    if not hasattr(signal, "pthread_sigmask"):
        yield  # Windows: the processes ignore it once they have begun.
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
