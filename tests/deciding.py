"""A Python simulator that other processes can import, and what must be the same of two plans."""

import os
import time
from pathlib import Path

import pacplan


class OddError(Exception):
    """An error that cannot be sent from its process: it cannot be made of its message alone."""

    def __init__(self, state, reason):
        super().__init__(f"{state}: {reason}")


def step(state, action, rng):
    """A walk on a circle of ten states; some states from 100 on cannot be planned in."""
    if state == 100:
        raise ArithmeticError("no step from 100")
    if state == 101:
        raise OddError(state, "odd")
    if state == 102:
        os._exit(3)
    after = (state + (1 if rng.random() < 0.2 + 0.3 * action else 9)) % 10
    return after, float(after == 0), False


def slow_step(state, action, rng):
    """As `step`; it leaves a file when it was called, and takes its time."""
    Path("started").touch()
    time.sleep(0.01)
    return step(state, action, rng)


MODEL = pacplan.Simulator(step, actions=3, successors=2)
SLOW = pacplan.Simulator(slow_step, actions=3, successors=2)


def content(plan):
    """All of a plan that must not depend on where it was made."""
    record = plan.to_dict()
    del record["seconds"]
    curve = None
    if plan.curve is not None:
        curve = plan.curve.samples.tolist(), plan.curve.lower.tolist(), plan.curve.upper.tolist()
    tree = None if plan.tree is None else (plan.tree.nodes.tobytes(), plan.tree.pairs.tobytes())
    return record, curve, tree
