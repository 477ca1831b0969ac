"""Calls of one plan side by side: a simulator of 5 ms, on threads, processes and a local Dask cluster.

    python3 dev.py python benchmarks/slow.py

Against one call at a time: how many times as many calls a second were made; how many were made for
each that was used, some of them ahead and in vain; and how much sooner a plan is there. Plans are the
same for all crews. On a machine with few cores, or a busy one, `--seconds 0.05` shows what calls that
take longer would gain.
"""

import argparse
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pacplan

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
    """Processes of pacplan's own; their start is a part of the plan's time."""
    yield {"workers": count}


@contextmanager
def dask(count: int) -> Iterator[Any]:
    """A cluster of two processes, with threads that share the calls."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=(count + 1) // 2, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        yield {"executor": client, "workers": count}


CREWS = {"threads": threads, "processes": processes, "dask": dask}


def main() -> None:
    """Print a row for each planner, crew and number of calls at a time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.005, help="time of a call")
    parser.add_argument("--crews", default=",".join(CREWS), help="who makes the calls")
    parser.add_argument("--planners", default="bracket,mdp-gape,uct")
    given = parser.parse_args()
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
