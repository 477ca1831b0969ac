"""Planners that promise what they like."""

from functools import partial

import numpy as np

import pacplan


class Answer:
    """A planner that returns the same plan whatever it is asked, after showing it to the callback."""

    def __init__(self, *, epsilon, delta, gamma, horizon, claim=None, shown=None):
        self.claim = {"gap": 0.0} if claim is None else claim
        self.shown = shown

    def plan(self, model, state, *, seed, budget, callback=None):
        actions = model.actions(state)
        none = np.full(len(actions), np.nan)
        plan = pacplan.Plan(
            **{
                "action": actions[seed % len(actions)],
                "actions": actions,
                "values": none,
                "calls": np.zeros(len(actions), np.int64),
                "value": 0.0,
                "stopped_by": "budget",
                "guarantee": "",
                "samples": 1,
                "episodes": 1,
                "seconds": 0.0,
                "horizon": 1,
                "planner": "",
            }
            | self.claim
        )
        if callback is not None and self.shown is not None:
            callback(
                pacplan.engine.Snapshot(
                    **{"actions": actions, "lower": None, "upper": None, "action": plan.action}
                    | {"gap": None, "samples": 1, "episodes": 1, "seconds": 0.0}
                    | self.shown
                )
            )
        return plan


class Broken(Answer):
    """Raises in some cases."""

    def plan(self, model, state, *, seed, **options):
        if seed % 5 == 0:
            raise ZeroDivisionError("own\nwords")
        return super().plan(model, state, seed=seed, **options)


def modest(claim):
    """A planner that claims this much."""
    return partial(Answer, claim=claim)


class Impatient(Answer):
    """Somebody presses Ctrl-C after some plans."""

    left = None

    def plan(self, *args, **options):
        if Impatient.left is not None:
            Impatient.left -= 1
            if Impatient.left < 0:
                self.claim = {"stopped_by": "interrupt"}
        return super().plan(*args, **options)
