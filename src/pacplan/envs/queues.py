"""One server, several queues: a problem with far more states than a table could hold."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numba
import numpy as np

from pacplan.core import checks
from pacplan.models.simulator import Simulator

# Bits of the state that count the jobs waiting in a queue; no more can wait.
BITS = 15
MOST = 2**BITS - 1


def queues(
    arrivals: Sequence[float] = (0.1, 0.15, 0.15, 0.2),
    completions: Sequence[float] = (0.3, 0.6, 0.5, 0.9),
    rewards: Sequence[float] = (1.0, 0.8, 0.8, 0.3),
    initial: Sequence[int] = (2, 2, 2, 2),
) -> Simulator:
    """Decide which of several kinds of jobs to work on.

    In each step either a job of kind i arrives, with probability arrivals[i], and joins its queue, or
    the server works for one slot on the kind that was chosen: a waiting job of kind i is completed
    with probability completions[i] and pays rewards[i]. With four kinds of up to 32,767 waiting jobs
    there are 2^60, about 10^18 states: the simulator is jitted, and a planner visits what it needs.

    The best decision is known, whatever the horizon and the discount: work on the kind with the
    largest rewards[i] x completions[i] that has a job waiting. This is the c-mu rule (Buyukkoc, Varaiya
    and Walrand, "The c-mu rule revisited", Advances in Applied Probability, 1985), which holds here
    because a slot of the best kind can always be exchanged for a later one. By default that is kind 1,
    neither the best paid nor the fastest to complete. (It is exact as long as no queue is full, when
    arrivals are lost.)

    A state packs the numbers of waiting jobs, 15 bits for each kind: their sum of x_i 32768^i. The
    actions are the kinds; working on an empty queue is idling.

    Args:
        arrivals: probability that a job of each kind arrives in a step; together less than 1.
        completions: probability that a slot of work completes a job.
        rewards: pay for a completed job, in [0, 1].
        initial: jobs waiting in the default initial state.
    """
    lengths = [len(given) for given in (arrivals, completions, rewards, initial)]
    if len(set(lengths)) > 1 or not 1 <= len(arrivals) <= 4:
        raise ValueError(
            "arrivals, completions, rewards and initial must have one entry for each of 1 to 4 kinds "
            f"of jobs, got {lengths}"
        )
    comes, done, pays = (
        tuple(checks.within_one(f"an entry of {name}", value) for value in given)
        for name, given in (("arrivals", arrivals), ("completions", completions), ("rewards", rewards))
    )
    if sum(comes) >= 1.0:
        raise ValueError(f"arrivals must sum to less than 1, got {sum(comes)}")
    waiting = [checks.integer("a number of waiting jobs", n, least=0, most=MOST) for n in initial]
    return Simulator(
        _step(comes, done, pays),
        actions=len(comes),
        successors=len(comes) + 2,
        may_end=False,
        initial=sum(n << BITS * kind for kind, n in enumerate(waiting)),
    )


# The same settings share one function, and so one compiled search.
@cache
def _step(
    arrivals: tuple[float, ...], completions: tuple[float, ...], rewards: tuple[float, ...]
) -> Any:
    kinds = len(arrivals)

    @numba.njit
    def step(state, action, rng):  # type: ignore[no-untyped-def]
        x = rng.random()
        for kind in range(kinds):
            x -= arrivals[kind]
            if x < 0.0:
                full = ((state >> BITS * kind) & MOST) == MOST
                return state if full else state + (np.int64(1) << BITS * kind), 0.0, False
        waits = ((state >> BITS * action) & MOST) > 0
        if waits and rng.random() < completions[action]:
            return state - (np.int64(1) << BITS * action), rewards[action], False
        return state, 0.0, False

    return step
