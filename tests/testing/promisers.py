"""Planners that promise what they like."""

from functools import partial

import numpy as np

import pacplan

RESULT = {"samples": 1, "episodes": 1, "seconds": 0.0}
SILENT = {"lower": None, "upper": None, "gap": None}


class Answer:
    """A planner that returns the same plan whatever it is asked, after showing it to the callback."""

    def __init__(self, *, epsilon=0, delta=0, gamma=0, horizon=0, claim=None, shown=None):
        self.claim = {"gap": 0.0} if claim is None else claim
        self.shown = shown

    def plan(self, model, state, *, seed, budget, callback=None):
        actions = model.actions(state)
        answer = RESULT | {"action": actions[seed % len(actions)], "actions": actions}
        if callback is not None and self.shown is not None:
            callback(pacplan.engine.Snapshot(**answer | SILENT | self.shown))
        answer |= {"values": np.full(len(actions), np.nan), "calls": np.zeros(len(actions), np.int64)}
        answer |= {"value": 0.0, "stopped_by": "budget", "guarantee": "", "horizon": 1, "planner": ""}
        return pacplan.Plan(**answer | self.claim)


class Broken(Answer):
    """Raises in some cases."""

    def plan(self, model, state, *, seed, **options):
        if seed % 5 == 0:
            raise ZeroDivisionError("own\nwords")
        return super().plan(model, state, seed=seed, **options)


def modest(claim):
    """A planner that claims this much."""
    return partial(Answer, claim=claim)


truthful = modest({"gap": 1.0})


class Impatient(Answer):
    """Somebody presses Ctrl-C after some plans."""

    left = None

    def plan(self, *args, **options):
        if Impatient.left is not None:
            Impatient.left -= 1
            if Impatient.left < 0:
                self.claim = {"stopped_by": "interrupt"}
        return super().plan(*args, **options)
