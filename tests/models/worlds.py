"""Gymnasium environments, known and of our own."""

from inspect import signature

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import pacplan
from pacplan.core.keys import key_of

TAXI = max(name for name in gymnasium.registry if name.startswith("Taxi-"))
CLIFF = max(name for name in gymnasium.registry if name.startswith("CliffWalking-"))
# Rain and fickle passengers came after Gymnasium 1.0.
recent_taxi = pytest.mark.skipif(
    "is_rainy" not in signature(gymnasium.make(TAXI).unwrapped.__init__).parameters,
    reason="this release of Gymnasium has no rain in Taxi",
)


def made(name, seed=0, **settings):
    env = gymnasium.make(name, **settings)
    env.reset(seed=seed)
    return env


def sampled(model, horizon=1, width=20_000, gamma=1.0, seed=0, state=None):
    """Estimates of Q from many draws."""
    planner = pacplan.SparseSampling(gamma=gamma, horizon=horizon, width=width)
    return planner.plan(model, state, seed=seed).values


def at(model, state):
    """The model's own unwrapped environment, in a state."""
    model._held.put(state)
    return model.base


def steps_of(model, state, actions, seed=0):
    """What some actions lead to, one after the other: (observation key, reward, ended)."""
    rng, found = np.random.default_rng(seed), []
    for action in actions:
        observation, state, reward, ended = model.observe(state, action, rng)
        found.append((None if ended else key_of(observation), float(reward), bool(ended)))
        if ended:
            break
    return found


class Walk(gymnasium.Env):
    """A walk along a line, to be bent by tests. The right end, 5, pays and ends it."""

    action_space = spaces.Discrete(2)
    observation_space = spaces.Discrete(6)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 2
        return self.place, {}

    def move(self, action):
        return 1 if action == 1 else -1

    def step(self, action):
        self.place = min(max(self.place + self.move(action), 0), 5)
        return self.place, float(self.place == 5), self.place == 5, False, {}


WALK = {"successors": 2, "reward_range": (0, 1)}


def started(env):
    env.reset(seed=0)
    return env
