"""Many decisions: how much faster two threads are than one, and what a plan costs besides its kernel.

    python3 dev.py python benchmarks/many.py

Turns of one thread and of two alternate, and of each the best counts, so that others on the machine
disturb both alike. Overhead is processor time of the thread that plans, in multiples of what the
kernels take: the compiled part, which runs without the interpreter's lock.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pacplan
from pacplan.engine.search import KernelSearch

MODEL = pacplan.envs.garnet(seed=0)
CASES: dict[str, tuple[Any, dict[str, int]]] = {
    "Bracket, epsilon 1": (pacplan.Bracket(epsilon=1.0, delta=0.1, gamma=0.7), {}),
    "Bracket, epsilon 0.3": (pacplan.Bracket(epsilon=0.3, delta=0.1, gamma=0.7), {}),
    "MDP-GapE, epsilon 1": (pacplan.MDPGapE(epsilon=1.0, delta=0.1, gamma=0.7), {}),
    "MDP-GapE, epsilon 0.6": (pacplan.MDPGapE(epsilon=0.6, delta=0.1, gamma=0.7), {}),
    "UCT, 5,000 calls": (pacplan.UCT(gamma=0.7), {"budget": 5_000}),
    "UCT, 100,000 calls": (pacplan.UCT(gamma=0.7), {"budget": 100_000}),
}
TURNS = 7
SECONDS = 0.5


def spent(planner: Any, states: list[int], workers: int, limits: dict[str, int]) -> float:
    """Seconds to decide in all states."""
    began = time.perf_counter()
    for _ in planner.plan_many(MODEL, states, seeds=0, workers=workers, trees=False, **limits):
        pass
    return time.perf_counter() - began


@contextmanager
def kernels_timed() -> Iterator[list[float]]:
    """Processor seconds of all kernels that searches run meanwhile."""
    made, total = KernelSearch.__init__, [0.0]

    def make(self: Any, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        run = self._run

        def timed(*given: Any) -> Any:
            began = time.thread_time()
            found = run(*given)
            total[0] += time.thread_time() - began
            return found

        self._run = timed

    KernelSearch.__init__ = make  # type: ignore[method-assign]
    try:
        yield total
    finally:
        KernelSearch.__init__ = made  # type: ignore[method-assign]


def costs(planner: Any, states: list[int], limits: dict[str, int]) -> tuple[float, float]:
    """Processor seconds of a plan, and of its kernels, in a thread that is not the main one."""
    found: list[tuple[float, float]] = []

    def work() -> None:
        for _ in range(TURNS):
            began = time.thread_time()
            for i, state in enumerate(states):
                planner.plan(MODEL, state, seed=i, **limits)
            plans = time.thread_time() - began
            with kernels_timed() as total:
                for i, state in enumerate(states):
                    planner.plan(MODEL, state, seed=i, **limits)
            found.append((plans / len(states), total[0] / len(states)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return min(plan for plan, _ in found), min(kernel for _, kernel in found)


def main() -> None:
    """Print a row for each case."""
    print(f"{'':22} {'plan':>9} {'kernel':>9} {'overhead':>9} {'2 threads':>10}")
    for name, (planner, limits) in CASES.items():
        few = [state % MODEL.states for state in range(10)]
        planner.plan(MODEL, seed=0, **limits)  # Compiles.
        each = spent(planner, few, 1, limits) / len(few)
        states = [state % MODEL.states for state in range(max(10, int(SECONDS / each)))]
        turns = [
            (spent(planner, states, 1, limits), spent(planner, states, 2, limits)) for _ in range(TURNS)
        ]
        plan, kernel = costs(planner, few, limits)
        faster = min(one for one, _ in turns) / min(two for _, two in turns)
        print(
            f"{name:22} {plan * 1e3:6.2f} ms {kernel * 1e3:6.2f} ms {(plan - kernel) / kernel:7.2f} x "
            f"{faster:8.2f} x",
            flush=True,
        )


if __name__ == "__main__":
    main()
