"""How far one plan scales on a cluster: the real search against workers that exist in virtual time.

    python3 dev.py python benchmarks/cluster.py

The search runs as it does on a cluster, guesses and all. Its calls take no time but that of a clock
of their own: the process that plans takes its share for every call that it begins; a scheduler, if
calls go through one, takes them one after the other; then a call is under way for a while, is made by
the first worker that is free, and its outcome is under way for as long. What limits the rate is what is
busy nearly all of the time; if nothing is, it is the plan, which does not know enough calls to make at
once.

    python3 dev.py python benchmarks/cluster.py --measure

measures, on this machine, what goes into that: time of the search, of what sends and receives, with
the scheduler, and at the workers; and how long a lone call takes to come back.
"""

import argparse
import heapq
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from itertools import count
from queue import SimpleQueue
from typing import Any

import psutil

import pacplan
from pacplan.parallel import session as parallel
from pacplan.parallel.dask import installed

REWARDS, PROBABILITIES, SUCCESSORS = pacplan.envs.garnet(seed=0).sparse()
PLANNERS: dict[str, tuple[Any, dict[str, int]]] = {
    "mdp-gape": (pacplan.MDPGapE(epsilon=0.5, delta=0.1, gamma=0.7), {"budget": 12_000}),
    "bracket": (pacplan.Bracket(epsilon=0.5, delta=0.1, gamma=0.7), {}),
}


def step(state: int, action: int, rng: Any) -> tuple[int, float, bool]:
    """A transition of the garnet."""
    which = 0 if rng.random() < PROBABILITIES[state, action, 0] else 1
    return int(SUCCESSORS[state, action, which]), float(REWARDS[state, action]), False


def slow_step(state: int, action: int, rng: Any) -> tuple[int, float, bool]:
    """The same, in 5 ms."""
    time.sleep(0.005)
    return step(state, action, rng)


MODEL = pacplan.Simulator(step, actions=5, successors=2, initial=0)
SLOW = pacplan.Simulator(slow_step, actions=5, successors=2, initial=0)


class Virtual(Executor):
    """A cluster in virtual time.

    Args:
        workers: how many.
        call: seconds that a call takes.
        planner: seconds of the process that plans, for each call.
        scheduler: seconds of the scheduler, for each call.
        latency: seconds of a call on its way, and of its outcome.
    """

    def __init__(
        self, workers: int, call: float, planner: float, scheduler: float, latency: float
    ) -> None:
        self._max_workers = workers
        self.call, self.planner, self.scheduler, self.latency = call, planner, scheduler, latency
        self.now = 0.0
        self.calls = 0
        self._scheduler_free = 0.0
        self._free = [0.0] * workers
        self._coming: list[tuple[float, int, Future[Any], Any]] = []
        self._numbers = count()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Take a call; its outcome is known, but not there yet."""
        self.calls += 1
        self.now += self.planner
        # Part of this is for the outcome. To keep one clock, it is paid for here.
        self._scheduler_free = max(self.now, self._scheduler_free) + self.scheduler
        begun = max(self._scheduler_free + self.latency, heapq.heappop(self._free))
        heapq.heappush(self._free, begun + self.call)
        future: Future[Any] = Future()
        there = begun + self.call + self.latency
        heapq.heappush(self._coming, (there, next(self._numbers), future, fn(*args)))
        while self._coming[0][0] <= self.now:
            self.come()
        return future

    def come(self) -> None:
        """Let the next outcome come, and the clock wait for it."""
        there, _, future, outcome = heapq.heappop(self._coming)
        self.now = max(self.now, there)
        future.set_result(outcome)


def planned(planner: Any, cluster: Virtual, limits: dict[str, int]) -> Any:
    """A plan whose calls the cluster makes: to wait for one moves the clock."""

    class News:
        """What has come back."""

        def __init__(self) -> None:
            self._come: SimpleQueue[Any] = SimpleQueue()
            self.put, self.empty = self._come.put, self._come.empty

        def get(self, timeout: float | None = None) -> Any:
            """The next one."""
            while self._come.empty():
                cluster.come()
            return self._come.get()

    usual, parallel.SimpleQueue = parallel.SimpleQueue, News  # type: ignore[misc,assignment,attr-defined]
    try:
        return planner.plan(MODEL, seed=0, executor=cluster, **limits)
    finally:
        parallel.SimpleQueue = usual  # type: ignore[misc,attr-defined]


def show(given: argparse.Namespace) -> None:
    """Print a row for each call time and number of workers."""
    costs = [1e-3 * given.planner, 1e-3 * given.scheduler, 1e-3 * given.latency]
    heads = ("a call", "workers", "used/s", "made/s", "sooner", "workers", "planner", "scheduler")
    print(f"{'':9}" + " ".join(f"{head:>9}" for head in heads) + "  the limit")
    for name in given.planners.split(","):
        planner, limits = PLANNERS[name]
        for call in (0.005, 0.1, 1.0):
            for workers in (8, 32, 128, 512):
                cluster = Virtual(workers, call, *costs)
                plan = planned(planner, cluster, limits)
                made, used = cluster.calls / cluster.now, plan.samples / cluster.now
                shares = {
                    "workers": made * call / workers,
                    "planner": made * cluster.planner,
                    "scheduler": made * cluster.scheduler,
                }
                busiest = max(shares, key=lambda part: shares[part])
                limit = busiest if shares[busiest] > 0.8 else "the plan"
                print(
                    f"{name:9}{call * 1e3:6.0f} ms {workers:9} {used:9.0f} {made:9.0f} "
                    f"{used * call:7.1f} x "
                    + " ".join(f"{share:8.0%} " for share in shares.values())
                    + f" {limit}",
                    flush=True,
                )


def echo(*arguments: Any) -> Any:
    """A call that takes no time."""
    return arguments


def measure() -> None:
    """Print what a call costs besides itself."""
    from distributed import Client, LocalCluster

    planner, _ = PLANNERS["mdp-gape"]
    with (
        LocalCluster(n_workers=2, threads_per_worker=4, dashboard_address=":0") as local,
        Client(local) as client,
    ):
        others = psutil.Process().children(recursive=True)

        def spent() -> float:
            return sum(sum(other.cpu_times()[:2]) for other in others)

        planner.plan(SLOW, seed=0, executor=client, budget=200)
        search, here, there = time.thread_time(), time.process_time(), spent()
        plan = planner.plan(SLOW, seed=0, executor=client, budget=4_000)
        search, here = time.thread_time() - search, time.process_time() - here
        there = spent() - there
        made = plan.calls_made / 1e3
        print("milliseconds of processor time for each call, eight of 5 ms at a time")
        print(f"  search               {search / made:6.2f}")
        print(f"  sending, receiving   {(here - search) / made:6.2f}")
        print(f"  at the workers       {there / made:6.2f}")
        with installed(client, echo) as submit:
            submit(0).result()
            began = time.perf_counter()
            for i in range(100):
                submit(i).result()
            print(f"milliseconds until a lone call is back: {(time.perf_counter() - began) * 10:.1f}")


def main() -> None:
    """Measure, or show what follows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--planners", default=",".join(PLANNERS))
    parser.add_argument("--planner", type=float, default=0.15, help="of its process for a call, in ms")
    parser.add_argument("--scheduler", type=float, default=1.0, help="of one, for a call, in ms")
    parser.add_argument("--latency", type=float, default=10.0, help="one way, in ms")
    given = parser.parse_args()
    if given.measure:
        measure()
    else:
        show(given)


if __name__ == "__main__":
    main()
