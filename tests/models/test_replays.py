"""Environments that cannot be copied: replayed with the same past and fresh luck, or refused."""

import math
import random
import threading

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.toy_text import FrozenLakeEnv

import pacplan
from pacplan.exact import finite_horizon
from worlds import WALK, Walk, at, made

LAKE = {"table": False, "reward_range": (0, 1)}


class LockedWalk(Walk):
    """Cannot be copied."""

    def __init__(self, render_mode=None):
        self.lock = threading.Lock()


class LockedLake(FrozenLakeEnv):
    """Cannot be copied, and draws a number in every step."""

    def __init__(self, **settings):
        super().__init__(**settings)
        self.lock = threading.Lock()


class GlobalLuck(LockedWalk):
    """Draws from a generator that belongs to nobody and is never seeded."""

    luck = random.Random()

    def move(self, action):
        return 1 if GlobalLuck.luck.random() < 0.5 else -1


class _Library:
    """Stands for a library in C: nothing of it can be seen."""

    __slots__ = ("roll", "start")

    def __init__(self):
        state = [random.Random(0)]
        self.start = lambda seed: state.__setitem__(0, random.Random(seed))
        self.roll = lambda: state[0].random()


class SeededLibrary(LockedWalk):
    """Gives the seed of a reset to its library, and draws from that ever after."""

    def __init__(self, render_mode=None):
        super().__init__()
        self.library = _Library()

    def reset(self, *, seed=None, options=None):
        if seed is not None:
            self.library.start(seed)
        return super().reset(seed=seed)

    def move(self, action):
        return 1 if self.library.roll() < 0.5 else -1


for kind in (LockedWalk, LockedLake, GlobalLuck, SeededLibrary):
    gymnasium.register(f"pacplan/{kind.__name__}-v0", kind, max_episode_steps=100)


def recorded(kind, seed=0, **settings):
    env = pacplan.recorded(gymnasium.make(f"pacplan/{kind.__name__}-v0"))
    env.reset(seed=seed, **settings)
    return env


# ------------------------------------------------------------------------------ The past stays


def test_the_past_of_the_live_environment_is_played_again():
    env = recorded(LockedLake, seed=5)
    model = pacplan.from_gymnasium(env, **LAKE)
    over, rng = False, np.random.default_rng(0)
    for _ in range(40):
        # Its own luck, which went on by itself, has led it here.
        state = model.initial_state()
        assert at(model, state).s == env.unwrapped.s
        for action in (0, 2):  # Planning in between makes no difference.
            model.step(state, action, rng)
        _, _, over, _, _ = env.step(int(rng.integers(4)))
        if over:
            env.reset()


def test_going_on_costs_one_step_and_going_back_the_whole_past(monkeypatch):
    env, steps, step = recorded(LockedWalk), [], LockedWalk.step
    for _ in range(3):
        env.step(0)
    model = pacplan.from_gymnasium(env, **WALK)
    rng = np.random.default_rng(0)
    path = [model.initial_state()]
    monkeypatch.setattr(LockedWalk, "step", lambda *given: steps.append(given) or step(*given))
    for _ in range(4):
        path.append(model.step(path[-1], 0, rng)[0])
    assert len(steps) == 4
    model.step(path[2], 1, rng)  # three steps of the live past, two since, and the new one
    assert len(steps) == 4 + 6


# ------------------------------------------------------------------------------- Luck is fresh


def test_every_step_draws_its_own_luck():
    model = pacplan.from_gymnasium(recorded(LockedLake), **LAKE)
    rng, root = np.random.default_rng(3), model.initial_state()
    found = [model.step(root, 2, rng)[0] for _ in range(1000)]
    places = [at(model, state).s for state in found]
    assert set(places) == {0, 1, 4}
    assert abs(places.count(1) / 1000 - 1 / 3) < 6 * math.sqrt(2 / 9 / 1000)
    # Nobody knows that two of them are in the same place, so they are different states.
    assert len(set(found)) == 1000


def test_with_a_key_states_are_one_and_plans_are_right():
    env = recorded(LockedLake)
    exact = pacplan.from_gymnasium(made("FrozenLake-v1"))
    model = pacplan.from_gymnasium(env, key="observation", successors=3, **LAKE)
    q = finite_horizon(exact, gamma=0.9, horizon=3)[0][0]
    plan = pacplan.Bracket(epsilon=0.8, delta=1e-7, gamma=0.9, horizon=3).plan(model, seed=0)
    assert plan.certified and q.max() - q[plan.action] <= 0.8
    assert plan.lower.max() <= q.max() + 1e-9
    assert "states with the same observation have the same future" in plan.assumptions


def test_deterministic_steps_lead_to_the_same_state():
    env = recorded(LockedWalk)
    model = pacplan.from_gymnasium(env, successors=1, reward_range=(0, 1))
    rng, root = np.random.default_rng(0), model.initial_state()
    assert len({model.step(root, 1, rng)[0] for _ in range(5)}) == 1
    plan = pacplan.plan(model, epsilon=0.1, delta=0.01, gamma=0.9, horizon=4, seed=0)
    assert plan.certified and plan.action == 1
    assert any("generators" in assumption for assumption in plan.assumptions)
    # The next state of the environment is the one that was planned for.
    agent = pacplan.Agent(pacplan.UCT(gamma=0.9, horizon=4), model, budget=300, reuse=True, seed=0)
    for _ in range(2):
        env.step(agent.act())
    assert agent.history[-1].reused_samples > 0


@pytest.mark.parametrize("make", [lambda: recorded(LockedLake), lambda: made("FrozenLake-v1")])
def test_a_plan_can_be_resumed(make, tmp_path):
    env = make()
    model = pacplan.from_gymnasium(env, **LAKE)
    planner = pacplan.UCT(gamma=0.9, horizon=6)
    whole = planner.plan(model, seed=0, budget=600, checkpoint=tmp_path / "whole", every=1e9)
    path = tmp_path / "half"
    stop = lambda snapshot: snapshot.samples >= 300  # noqa: E731
    planner.plan(model, seed=0, budget=600, checkpoint=path, every=1e-9, callback=stop)
    again = planner.resume(path, pacplan.from_gymnasium(make(), **LAKE))
    assert again.samples == whole.samples and again.values.tolist() == whole.values.tolist()
    assert len(again.tree) == len(whole.tree)
    env.step(0)
    with pytest.raises(ValueError, match="in another state than when the plan"):
        planner.resume(path, model)


# ------------------------------------------------------------------------------ What is refused


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (GlobalLuck, "cannot be replayed|depends on the seed"),
        (SeededLibrary, "depends on the seed that was given to reset"),
    ],
)
def test_luck_that_would_be_the_same_in_every_replay(kind, words):
    env = recorded(kind)
    with pytest.raises(pacplan.BrokenPromiseError, match=words):
        pacplan.from_gymnasium(env, **WALK)


def test_irreproducible_environments_are_noticed_during_the_plan_too():
    model = pacplan.from_gymnasium(recorded(GlobalLuck), check=False, **WALK)
    with pytest.raises(pacplan.BrokenPromiseError, match=r"GlobalLuck.*cannot be replayed"):
        pacplan.UCT(gamma=0.9, horizon=4).plan(model, seed=0, budget=500)


def test_environments_that_were_not_recorded():
    env = made("pacplan/LockedWalk-v0")
    with pytest.raises(ValueError, match=r"lock.*env = pacplan.recorded\(env\)"):
        pacplan.from_gymnasium(env, **WALK)
    model = pacplan.from_gymnasium(recorded(LockedWalk), **WALK)
    with pytest.raises(ValueError, match=r"env = pacplan.recorded\(env\)"):
        model.state_of(env)
    with pytest.raises(ValueError, match="the model is one of LockedWalk"):
        model.state_of(made("CartPole-v1"))


def test_states_that_are_none():
    env = pacplan.recorded(gymnasium.make("pacplan/LockedWalk-v0"))
    model = pacplan.from_gymnasium(env, **WALK)
    with pytest.raises(ValueError, match=r"call env.reset\(\)"):
        model.initial_state()
    env.reset(seed=0)
    for _ in range(3):
        env.step(1)
    with pytest.raises(ValueError, match=r"call env.reset\(\)"):
        model.initial_state()


# ------------------------------------------------------------------------------ A real one


@pytest.mark.filterwarnings("ignore")
def test_lunar_lander():
    pytest.importorskip("Box2D")
    env = pacplan.recorded(gymnasium.make("LunarLander-v3"))
    env.reset(seed=0)
    model = pacplan.from_gymnasium(env, reward_range=(-200, 200))
    for _ in range(4):
        plan = pacplan.UCT(gamma=0.99, horizon=8).plan(model, seed=0, budget=80)
        env.step(plan.action)
    lander = env.unwrapped.lander
    place = tuple(at(model, model.initial_state()).lander.position)
    assert place == tuple(lander.position)
    assert isinstance(env.action_space, spaces.Discrete) and plan.action in range(4)
