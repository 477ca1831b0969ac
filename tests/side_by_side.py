"""Simulators that other processes can import, for plans whose calls are made side by side."""

import os
import time
from concurrent.futures import Executor, Future
from pathlib import Path

import numpy as np

import pacplan

GARNET = pacplan.envs.garnet(states=30, actions=3, seed=2, noise="bernoulli")


def step(state, action, rng):
    """A walk on a circle of ten states, which pays when it comes to the first."""
    after = (state + (1 if rng.random() < 0.2 + 0.3 * action else 9)) % 10
    return after, float(after == 0), False


def fixed_step(state, action, rng):
    """The same without chance."""
    after = (3 * state + action) % 10
    return after, after / 10.0, False


def noisy_step(state, action, rng):
    """A point that drifts: no state is met twice."""
    after = 0.5 * state + 0.2 * action + 0.1 * rng.normal()
    return after, float(np.clip(after, 0.0, 1.0)), False


def game_step(state, action, rng):
    """A game of three moves, after which it pays or not."""
    after = (*state, action)
    over = len(after) == 3
    return after, float(over and rng.random() < 0.1 + 0.1 * sum(after)), over


def slow_when_good(state, action, rng):
    """The walk; what is good takes long."""
    found = step(state, action, rng)
    time.sleep(0.02 if found[1] > 0.0 else 0.0005)
    return found


def failing_when_good(state, action, rng):
    """The walk; the best outcome is an error."""
    found = step(state, action, rng)
    if found[1] > 0.0 and rng.random() < 0.2:
        raise ArithmeticError(f"too good in {state}")
    return found


def crashing_twice(state, action, rng):
    """The walk; the first two times that something good comes, its process dies with it."""
    found = step(state, action, rng)
    if found[1] > 0.0:
        for i in range(2):
            try:
                Path(f"crash{i}").touch(exist_ok=False)
            except FileExistsError:
                continue
            os._exit(1)
    return found


def crashing_when_good(state, action, rng):
    """The walk; now and then, what is good takes its process down, and always the same draws."""
    found = step(state, action, rng)
    if found[1] > 0.0 and rng.random() < 0.05:
        os._exit(1)
    return found


def endless_step(state, action, rng):
    """The walk; a call takes long, and leaves a file."""
    Path("begun").touch()
    time.sleep(30.0)
    return step(state, action, rng)


MODEL = pacplan.Simulator(step, actions=3, successors=2, initial=0)


def over(function, **promises):
    """A model of another function."""
    return pacplan.Simulator(function, **({"actions": 3, "successors": 2, "initial": 0} | promises))


class Shuffled(Executor):
    """Makes calls when it is asked to, those that came last first, or at random."""

    latest = None

    def __init__(self, rng=None):
        Shuffled.latest = self
        self.rng = rng
        self.waiting = []

    def submit(self, function, /, *arguments):
        future = Future()
        self.waiting.append((future, function, arguments))
        return future

    def work(self):
        """Make some of the calls."""
        count = len(self.waiting)
        order = list(reversed(range(count))) if self.rng is None else self.rng.permutation(count)
        most = count if self.rng is None else 1 + int(self.rng.integers(count))
        done = set(order[:most])
        for i in order[:most]:
            future, function, arguments = self.waiting[i]
            future.set_result(function(*arguments))
        self.waiting = [task for i, task in enumerate(self.waiting) if i not in done]
