"""Environments that do not show all of their state: plans are right, or nothing is certified."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.toy_text import FrozenLakeEnv

import pacplan
from worlds import started

PROMISES = {"successors": 1, "reward_range": (0, 1)}
KNOWS = "it is planned for someone who knows the simulator's whole state, also what observations hide"


class Memory(gymnasium.Env):
    """Three steps, of which nothing is seen. The last pays if the first action was 1."""

    action_space = spaces.Discrete(2)
    observation_space = spaces.Discrete(1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.step_count, self.first = 0, None
        return 0, {}

    def step(self, action):
        if self.step_count == 0:
            self.first = action
        self.step_count += 1
        over = self.step_count == 3
        return 0, 0.9 * self.first if over else 0.1 * (1 - action), over, False, {}


def test_what_is_hidden_is_planned_for():
    env = started(Memory())
    model = pacplan.from_gymnasium(env, **PROMISES)
    planner = pacplan.Bracket(epsilon=0.08, delta=1e-7, gamma=0.95, horizon=3)
    for seed in range(3):
        plan = planner.plan(model, seed=seed, budget=20_000)
        assert plan.action == 1 and plan.certified
    for said in ("the saved state of the environment is all that its future depends on", KNOWS):
        assert said in plan.assumptions


class Outside(Memory):
    """Keeps what it hides where no copy goes."""

    elsewhere: list = []  # noqa: RUF012

    def __init__(self):
        remembered = []
        self.remember, self.recall = lambda x: remembered.append(x), lambda: remembered[-1]

    def step(self, action):
        if self.step_count == 0:
            self.remember(action)
        self.first = self.recall()
        return super().step(action)


class View(Memory):
    """Writes through a view of the array that it reads, which a copy is no longer."""

    def reset(self, **options):
        self.board = np.zeros((2, 2))
        self.row = self.board[0]
        return super().reset(**options)

    def step(self, action):
        self.row[0] += 1 + action
        _, _, over, cut, info = super().step(action)
        return float(self.board.sum()), 0.0, over, cut, info


@pytest.mark.parametrize("kind", [Outside, View])
def test_state_out_of_the_reach_of_copies_is_found_out(kind):
    with pytest.raises(pacplan.BrokenPromiseError, match="with the same random numbers, the env"):
        pacplan.from_gymnasium(started(kind()), **(PROMISES | {"successors": 9}))


class Clocked(Memory):
    """Carries a count that matters to nobody."""

    observation_space = spaces.Discrete(3)

    def reset(self, **options):
        self.ticks = 0
        return super().reset(**options)

    def step(self, action):
        self.ticks += int(self.np_random.integers(1, 50))
        _, _, over, cut, info = super().step(action)
        return self.step_count, float(over), over, cut, info


class Unclocked(gymnasium.Wrapper):
    """Gives the count the same value after every step."""

    def step(self, action):
        outcome = self.env.step(action)
        self.unwrapped.ticks = 0
        return outcome


def test_a_wrapper_makes_states_the_same():
    model = pacplan.from_gymnasium(started(Unclocked(Clocked())), **PROMISES)
    plan = pacplan.Bracket(epsilon=0.1, delta=0.1, gamma=0.9, horizon=3).plan(model, seed=0)
    assert plan.certified
    with pytest.raises(pacplan.BrokenPromiseError, match="let a wrapper give what has no bearing"):
        pacplan.UCT(gamma=0.9, horizon=3).plan(
            pacplan.from_gymnasium(started(Clocked()), **PROMISES), seed=0, budget=50
        )


class Mapped(Memory):
    """Pays by a map that stays the same."""

    def __init__(self, rewards):
        self.map = list(rewards)

    def step(self, action):
        self.step_count += 1
        return 0, self.map[action], self.step_count == 3, False, {}


def test_another_environment_keeps_what_is_its_own():
    model = pacplan.from_gymnasium(started(Mapped([0.0, 1.0])), **PROMISES)
    other = model.state_of(started(Mapped([1.0, 0.0])))
    planner = pacplan.UCT(gamma=0.9, horizon=3)
    assert planner.plan(model, seed=0, budget=200).action == 1
    assert planner.plan(model, other, seed=0, budget=200).action == 0
    assert other != model.initial_state()
    assert model.state_of(started(Mapped([0.0, 1.0]))) == model.initial_state()


def test_limits_of_time_are_stated():
    env = started(gymnasium.make("CartPole-v1", max_episode_steps=7))
    said = "the limit of 7 steps of an episode is not reached"
    assert said in pacplan.from_gymnasium(env, **PROMISES).assumptions
    lake = pacplan.from_gymnasium(started(gymnasium.make("FrozenLake-v1")))
    assert "the environment behaves as its table says" in lake.assumptions
    assert "the limit of 100 steps of an episode is not reached" in lake.assumptions


class Melting(FrozenLakeEnv):
    """Its ice breaks at the fourth step, whatever the table says."""

    def reset(self, **options):
        self.taken = 0
        return super().reset(**options)

    def step(self, action):
        self.taken += 1
        observation, reward, over, cut, info = super().step(action)
        return observation, reward, over or self.taken == 4, cut, info


def test_tables_hide_nothing():
    env = started(Melting(is_slippery=False))
    with pytest.raises(pacplan.BrokenPromiseError, match="Melting does not do what its table says"):
        pacplan.from_gymnasium(env)
    assert isinstance(
        pacplan.from_gymnasium(env, table=False, **PROMISES),
        pacplan.models.environments.GymnasiumSimulator,
    )
