"""Environments of all kinds as snapshots, and what is said when that does not work."""

import math
import random
import threading

import gymnasium
import numpy as np
import pytest

import pacplan
from pacplan.core.keys import key_of
from worlds import WALK, Walk, made, started, steps_of


class OwnGenerators(Walk):
    """Draws from generators of its own, one of them in an object that changes."""

    def reset(self, **options):
        self.dice = {"a": random.Random(1), "rolls": 0}
        self.legacy = np.random.RandomState(1)
        return super().reset(**options)

    def move(self, action):
        self.dice["rolls"] += 1
        lucky = self.dice["a"].random() + self.legacy.random_sample() < 1.0
        return super().move(action) if lucky else 0


class Ezpickle(Walk, gymnasium.utils.EzPickle):
    """To copy it is to make a new one."""

    def __init__(self):
        gymnasium.utils.EzPickle.__init__(self)

    def move(self, action):
        return super().move(action) if self.np_random.random() < 0.5 else 0


@pytest.mark.parametrize("kind", [OwnGenerators, Ezpickle])
def test_luck_is_drawn_anew_in_every_copy(kind):
    env = started(kind())
    while env.place != 3:
        env.step(1)
    model = pacplan.from_gymnasium(env, **WALK)
    state = model.initial_state()
    rng = np.random.default_rng(0)
    draws = [model.observe(state, 1, rng) for _ in range(400)]
    seen = [observation for observation, _, _, _ in draws]
    assert set(seen) == {3, 4} and len({successor for _, successor, _, _ in draws}) == 2
    assert abs(seen.count(4) / 400 - 0.5) < 6 * 0.5 / math.sqrt(400)
    answers = [pacplan.UCT(gamma=0.9, horizon=5).plan(model, seed=1, budget=500) for _ in range(2)]
    assert answers[0].values.tolist() == answers[1].values.tolist()
    assert env.place == 3


def test_time_limits_are_left_out():
    env = made("CartPole-v1", max_episode_steps=4)
    env.step(0)
    planner = pacplan.MDPGapE(epsilon=0.0, delta=0.1, gamma=1.0, horizon=6, rewards="deterministic")
    model = pacplan.from_gymnasium(env, successors=1, reward_range=(0, 1))
    assert planner.plan(model, seed=0, budget=5000).value == pytest.approx(6.0)


def test_wrappers_apply():
    env = gymnasium.wrappers.TransformReward(made("CartPole-v1"), lambda r: 0.25 * r)
    env = gymnasium.wrappers.FrameStackObservation(env, 2)
    env.reset(seed=0)
    model = pacplan.from_gymnasium(env, successors=1, reward_range=(0, 1))
    state = model.initial_state()
    first = steps_of(model, state, [0, 1])
    observation, reward, _, _, _ = env.step(0)
    assert first[0] == (key_of(observation), 0.25, False) and reward == 0.25
    assert first[1][0] == key_of(env.step(1)[0])
    with pytest.raises(ValueError, match=r"the model is one of .*FrameStackObservation"):
        model.state_of(made("CartPole-v1"))


class Inner(gymnasium.Wrapper):
    """Steps what it wraps by a name of its own."""

    def __init__(self, env):
        super().__init__(env)
        self.inner = env

    def step(self, action):
        return self.inner.step(action)


def test_wrappers_that_are_left_out_stand_for_what_they_wrap():
    env = started(Inner(gymnasium.make("CartPole-v1", max_episode_steps=2)))
    model = pacplan.from_gymnasium(env, successors=1, reward_range=(0, 1))
    assert [end for _, _, end in steps_of(model, model.initial_state(), [0, 1, 0, 1])] == [False] * 4


# --------------------------------------------------------------------------- What is refused, how


class Wild(Walk):
    def move(self, action):
        return int(self.np_random.integers(-2, 3))


class Elsewhere(Walk):
    """Its randomness belongs to nobody."""

    source = np.random.default_rng(0)

    def move(self, action):
        return int(Elsewhere.source.integers(-1, 2))


def test_randomness_that_belongs_to_nobody_is_found_before_planning():
    message = "with the same random numbers, the environment gave"
    with pytest.raises(pacplan.BrokenPromiseError, match=message):
        pacplan.from_gymnasium(started(Elsewhere()), **WALK)
    pacplan.from_gymnasium(started(Elsewhere()), check=False, **WALK)


class Bell(Walk):
    """Rings a bell far from where it starts, and hears it from then on."""

    def __init__(self):
        self.bell = []

    def step(self, action):
        self.place += self.move(action)
        if self.place == 30:
            self.bell.append("rung")
        return self.place, 0.01 * len(self.bell), False, False, {}


def test_what_changes_too_late_to_be_found_is_noticed_after_the_plan():
    env = started(Bell())
    model = pacplan.from_gymnasium(env, **WALK)
    planner = pacplan.UCT(gamma=0.9, horizon=4)
    planner.plan(model, seed=0, budget=100)
    env.place = 28
    with pytest.raises(pacplan.BrokenPromiseError, match=r"Bell\.bell changed.*bind it anew"):
        planner.plan(model, seed=0, budget=100)
    assert env.bell == []


def test_missing_promises():
    env = started(Walk())
    with pytest.raises(ValueError, match=r"pass reward_range=.*paid from 0 to 1"):
        pacplan.from_gymnasium(env)
    model = pacplan.from_gymnasium(env, reward_range=(0, 1))
    with pytest.raises(ValueError, match=r"needs B.*model.check\(\) tells"):
        pacplan.MDPGapE(epsilon=0.5, delta=0.1, gamma=0.9).plan(model)
    report = model.check()
    assert report.successors == 1 and report.rewards == (0.0, 1.0)
    assert not report.problems and not report.notes
    assert "at most 1 successors" in str(report)
    wild = pacplan.from_gymnasium(started(Wild()), reward_range=(0, 1)).check()
    assert 3 <= wild.successors <= 5


class Locked(Walk):
    def __init__(self, render_mode=None):
        self.lock = threading.Lock()


def test_environments_that_cannot_be_copied():
    with pytest.raises(ValueError, match=r"Locked\.lock, a lock.*__getstate__"):
        pacplan.from_gymnasium(started(Locked()), **WALK)


def test_states_that_are_none():
    fresh = gymnasium.make("CartPole-v1")
    model = pacplan.from_gymnasium(fresh, successors=1, reward_range=(0, 1))
    planner = pacplan.UCT(gamma=0.9, horizon=5)
    with pytest.raises(ValueError, match=r"call env.reset\(\)"):
        planner.plan(model, budget=10)
    with pytest.raises(AttributeError, match="place"):  # Only its own error tells.
        planner.plan(pacplan.from_gymnasium(Walk(), reward_range=(0, 1)), budget=10)
    with pytest.raises(TypeError, match=r"model.state_of\(env\)"):
        planner.plan(model, fresh, budget=10)
    with pytest.raises(ValueError, match=r"call env.reset\(\)|env.reset\(\) before"):
        planner.plan(pacplan.from_gymnasium(gymnasium.make("FrozenLake-v1")), budget=10)
    with pytest.raises(TypeError, match="Gymnasium environment, got int"):
        pacplan.from_gymnasium(3)
    with pytest.raises(TypeError, match="vector of environments"):
        pacplan.from_gymnasium(gymnasium.make_vec("CartPole-v1", 2, vectorization_mode="sync"))
