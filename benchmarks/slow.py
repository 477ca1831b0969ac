"""Calls of one plan side by side: a simulator of 5 ms, on threads, processes and a local Dask cluster.

    python3 dev.py python benchmarks/slow.py

Against one call at a time: how many times as many calls a second were made; how many were made for
each that was used, some of them ahead and in vain; and how much sooner a plan is there. Plans are the
same for all crews. On a machine with few cores, or a busy one, `--seconds 0.05` shows what calls that
take longer would gain.

    python3 dev.py python benchmarks/slow.py --rounds

shows what calls would gain that take so long that all else takes no time: those under way come back
together, and how often they do counts as the time.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any

import pacplan
from pacplan.parallel.session import SpeculativeSession

REWARDS, PROBABILITIES, SUCCESSORS = pacplan.envs.garnet(seed=0).sparse()
PLANNERS: dict[str, tuple[Any, dict[str, int]]] = {
    "Bracket, epsilon 0.5": (pacplan.Bracket(epsilon=0.5, delta=0.1, gamma=0.7), {}),
    "MDP-GapE, 2,000 calls": (pacplan.MDPGapE(epsilon=0.5, delta=0.1, gamma=0.7), {"budget": 2_000}),
    "UCT, 2,000 calls": (pacplan.UCT(gamma=0.7), {"budget": 2_000}),
}
AT_ONCE = (2, 8, 32)


class Step:
    """A transition of the garnet, which takes a while."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self, state: int, action: int, rng: Any) -> tuple[int, float, bool]:
        """Draw it."""
        time.sleep(self.seconds)
        which = 0 if rng.random() < PROBABILITIES[state, action, 0] else 1
        return int(SUCCESSORS[state, action, which]), float(REWARDS[state, action]), False


@contextmanager
def threads(count: int) -> Iterator[Any]:
    """A pool of threads."""
    with ThreadPoolExecutor(count) as pool:
        yield {"executor": pool, "workers": count}


@contextmanager
def processes(count: int) -> Iterator[Any]:
    """Processes that have started."""
    with ProcessPoolExecutor(count, get_context("spawn")) as pool:
        list(pool.map(time.sleep, [0.5] * count))
        yield {"executor": pool, "workers": count}


@contextmanager
def dask(count: int) -> Iterator[Any]:
    """A cluster of two processes, with threads that share the calls."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=(count + 1) // 2, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield {"executor": client, "workers": count}


CREWS = {"threads": threads, "processes": processes, "dask": dask}


class Rounds(Executor):
    """Makes calls when it is told to, all at once."""

    def __init__(self) -> None:
        self.under_way: list[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]] = []
        self.number = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Take a call."""
        future: Future[Any] = Future()
        self.under_way.append((future, fn, args))
        return future

    def come_back(self) -> None:
        """Make them."""
        self.number += 1
        for future, call, arguments in self.under_way:
            future.set_result(call(*arguments))
        self.under_way.clear()


def instead_of_waiting(rounds: Rounds) -> Callable[[SpeculativeSession, float | None], None]:
    """Let all calls that a search waits for come back."""

    def wait(session: SpeculativeSession, timeout: float | None) -> None:
        rounds.come_back()

    return wait


def show_rounds(most: int) -> None:
    """Print a row for each planner and number of calls at a time."""
    model = pacplan.Simulator(Step(0.0), actions=5, successors=2, initial=0)
    print(f"{'':22} {'at once':>8} {'a round':>9} {'made':>7} {'sooner':>9} {'ms a call':>10}")
    waits = SpeculativeSession.wait
    for name, (planner, limits) in PLANNERS.items():
        planner.plan(model, seed=0, workers=1, **limits)  # Compiles.
        for count in (2**i for i in range(1, 12) if 2**i <= most):
            rounds = Rounds()
            SpeculativeSession.wait = instead_of_waiting(rounds)  # type: ignore[method-assign]
            began = time.thread_time()
            plan = planner.plan(model, seed=0, executor=rounds, workers=count, **limits)
            spent = (time.thread_time() - began) / plan.calls_made
            print(
                f"{name:22} {count:8} {plan.calls_made / rounds.number:9.1f} "
                f"{plan.calls_made / plan.samples:5.2f} x {plan.samples / rounds.number:7.1f} x "
                f"{spent * 1e3:10.2f}",
                flush=True,
            )
    SpeculativeSession.wait = waits  # type: ignore[method-assign]


def main() -> None:
    """Print a row for each planner, crew and number of calls at a time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.005, help="time of a call")
    parser.add_argument("--crews", default=",".join(CREWS), help="who makes the calls")
    parser.add_argument("--planners", default="bracket,mdp-gape,uct")
    parser.add_argument("--rounds", action="store_true", help="calls that take very long")
    given = parser.parse_args()
    if given.rounds:
        show_rounds(512)
        return
    model = pacplan.Simulator(Step(given.seconds), actions=5, successors=2, initial=0)
    quick = pacplan.Simulator(Step(0.0), actions=5, successors=2, initial=0)
    print(f"{'':22} {'crew':>10} {'at once':>8} {'calls/s':>9} {'rate':>7} {'made':>7} {'sooner':>7}")
    for name, (planner, limits) in PLANNERS.items():
        if planner.name not in given.planners.split(","):
            continue
        alone = planner.plan(quick, seed=0, workers=1, **limits)
        began = time.perf_counter()
        usual = planner.plan(model, seed=0, **limits).samples / (time.perf_counter() - began)
        print(f"{name:22} {'':>10} {1:8} {usual:9.0f}", flush=True)
        for crew in given.crews.split(","):
            for count in AT_ONCE:
                with CREWS[crew](count) as members:
                    began = time.perf_counter()
                    plan = planner.plan(model, seed=0, **members, **limits)
                    seconds = time.perf_counter() - began
                assert (plan.action, plan.samples) == (alone.action, alone.samples)
                made, used = plan.calls_made / seconds, plan.samples / seconds
                print(
                    f"{'':22} {crew:>10} {count:8} {made:9.0f} {made / usual:5.1f} x "
                    f"{made / used:5.2f} x {used / usual:5.1f} x",
                    flush=True,
                )


if __name__ == "__main__":
    main()
