"""Gymnasium environments as models: exact tables, drawing, the command line."""

import copy
import itertools
import math
import sys

import gymnasium
import numpy as np
import pytest

import pacplan
from command_line import run
from pacplan.core.keys import key_of
from pacplan.exact import finite_horizon
from worlds import CLIFF, TAXI, Walk, made, sampled, started, steps_of

# --------------------------------------------------------------------------------------- Tables


def values_of_table(table, gamma, horizon):
    """Q of a Gymnasium table by the textbook loop, action by action."""
    values = dict.fromkeys(table, 0.0)
    for _ in range(horizon):
        q = {
            s: [
                sum(p * (r + (0.0 if end else gamma * values[to])) for p, to, r, end in table[s][a])
                for a in sorted(table[s])
            ]
            for s in table
        }
        values = {s: max(q[s]) for s in q}
    return np.array([q[s] for s in sorted(q)])


def test_the_number_of_states_is_a_promise():
    env = started(Walk())
    planner = pacplan.Atlas(epsilon=0.2, delta=0.1, gamma=0.5)
    plan = planner.plan(pacplan.from_gymnasium(env, states=5, reward_range=(0, 1)), seed=0)
    assert plan.certified and "there are no more than 5 states" in plan.assumptions
    model = pacplan.from_gymnasium(env, states=3, reward_range=(0, 1))
    with pytest.raises(pacplan.BrokenPromiseError, match="3 states"):
        planner.plan(model, seed=0, budget=10_000)


@pytest.mark.parametrize(
    ("name", "settings"), [("FrozenLake-v1", {}), (CLIFF, {"is_slippery": True}), (TAXI, {})]
)
def test_tables_are_exact(name, settings):
    env = made(name, **settings)
    model = pacplan.from_gymnasium(env)
    assert isinstance(model, pacplan.TabularMDP)
    table = env.unwrapped.P
    q = finite_horizon(model, gamma=0.9, horizon=25)[0]
    assert q[:-1] == pytest.approx(values_of_table(table, 0.9, 25))
    outcomes = [o for row in table.values() for action in row.values() for o in action if o[0] > 0]
    assert model.reward_range == (min(o[2] for o in outcomes), max(o[2] for o in outcomes))
    most = max(
        len({None if end else to for p, to, _, end in action if p > 0})
        for row in table.values()
        for action in row.values()
    )
    assert model.successors == most
    assert model.initial_state() == env.unwrapped.s


def test_a_table_that_does_not_hold_is_not_used():
    doubled = gymnasium.wrappers.TransformReward(made("FrozenLake-v1"), lambda r: 2 * r)
    model = pacplan.from_gymnasium(doubled, successors=3, reward_range=(0, 2))
    assert isinstance(model, pacplan.Simulator)
    wrong = made("FrozenLake-v1", is_slippery=False)
    wrong.unwrapped.step = lambda action: (3, 0.0, False, False, {})
    with pytest.raises(pacplan.BrokenPromiseError, match="FrozenLakeEnv does not do what its table"):
        pacplan.from_gymnasium(wrong)


# ------------------------------------------------------------------------------------ Snapshots


@pytest.mark.parametrize(("name", "actions"), [("CartPole-v1", 2), ("MountainCar-v0", 3)])
def test_draws_are_what_the_environment_does(name, actions):
    env = made(name)
    model = pacplan.from_gymnasium(env, successors=1, reward_range=(-1, 1))
    state = model.initial_state()
    before = copy.deepcopy((env.unwrapped.state, env.unwrapped.np_random.bit_generator.state))
    for sequence in itertools.product(range(actions), repeat=4):
        twin = copy.deepcopy(env)
        expected = []
        for action in sequence:
            observation, reward, terminated, _, _ = twin.step(action)
            expected.append((key_of(observation), reward, terminated))
        assert steps_of(model, state, sequence) == expected
    # The environment itself has not moved.
    after = (env.unwrapped.state, env.unwrapped.np_random.bit_generator.state)
    assert np.array_equal(before[0], after[0]) and before[1] == after[1]
    assert env.step(0)[0].shape == env.observation_space.shape


def test_taxi_as_snapshots_agrees_with_its_table():
    env = made(TAXI, seed=5)
    exact = pacplan.from_gymnasium(env)
    settings = {"table": False, "successors": 1, "reward_range": (-10, 20)}
    model = pacplan.from_gymnasium(
        env, actions=lambda base: np.flatnonzero(base.action_mask(base.s)), **settings
    )
    planner = pacplan.MDPGapE(epsilon=0.5, delta=0.1, gamma=0.9, horizon=5, rewards="deterministic")
    plan = planner.plan(model, seed=0, budget=100_000)
    assert plan.actions == tuple(np.flatnonzero(env.unwrapped.action_mask(env.unwrapped.s)))
    q = finite_horizon(exact, gamma=0.9, horizon=5)[0][env.unwrapped.s]
    assert plan.certified and q.max() - q[plan.action] <= 0.5


# Q of sticking and hitting with ten and six against a ten, with one and two steps to go, enumerated.
BLACKJACK = {
    1: (-0.5757818467646016, -0.6153846153846154),
    2: (-0.5757818467646016, -0.5693071598807666),
}


def test_blackjack():
    env = made("Blackjack-v1", seed=1)
    base = env.unwrapped
    base.player, base.dealer = [10, 6], [10, 9]
    settings = {"successors": 10, "reward_range": (-1, 1)}
    # A snapshot knows the card that the observation hides.
    seeing = pacplan.from_gymnasium(env, **settings)
    assert sampled(seeing, width=100)[0] == -1.0

    class Redrawn(gymnasium.Wrapper):
        def step(self, action):
            hidden = min(int(self.unwrapped.np_random.integers(1, 14)), 10)
            self.unwrapped.dealer = [10, hidden]
            outcome = self.env.step(action)
            self.unwrapped.dealer = [10, 9]
            return outcome

    model = pacplan.from_gymnasium(Redrawn(env), **settings)
    assert sampled(model) == pytest.approx(BLACKJACK[1], abs=6 / math.sqrt(20_000))
    plan = pacplan.MDPGapE(epsilon=0.0, delta=1e-7, gamma=1.0, horizon=2).plan(
        model, seed=0, budget=20_000
    )
    assert (plan.lower <= BLACKJACK[2]).all() and (BLACKJACK[2] <= plan.upper).all()
    assert base.dealer == [10, 9] and base.player == [10, 6]


LAKE = {"table": False, "reward_range": (0, 1)}


def test_a_plan_can_be_resumed(tmp_path):
    env = made("FrozenLake-v1")
    model = pacplan.from_gymnasium(env, **LAKE)
    planner = pacplan.UCT(gamma=0.9, horizon=6)
    whole = planner.plan(model, seed=0, budget=600, checkpoint=tmp_path / "whole", every=1e9)
    path = tmp_path / "half"
    stop = lambda snapshot: snapshot.samples >= 300  # noqa: E731
    planner.plan(model, seed=0, budget=600, checkpoint=path, every=1e-9, callback=stop)
    again = planner.resume(path, pacplan.from_gymnasium(made("FrozenLake-v1"), **LAKE))
    assert again.samples == whole.samples and again.values.tolist() == whole.values.tolist()
    assert len(again.tree) == len(whole.tree)
    env.step(0)
    with pytest.raises(ValueError, match="began in another state"):
        planner.resume(path, model)


# --------------------------------------------------------------------------------- Command line


CART = ["gym:CartPole-v1", "--set", "reward_range=(0,1)"]


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (["gym:FrozenLake-v1", "--set", "is_slippery=False", "--horizon", "6"], 0, "Action"),
        ([*CART, "--set", "successors=1", "--rewards", "deterministic"], 0, "by OPD"),
        ([*CART, "--set", "successors=1"], 3, "by Bracket"),
        (["gym:Nowhere-v1"], 2, "cannot make 'Nowhere-v1'"),
        (["gym:CartPole-v1"], 2, "pass reward_range"),
    ],
)
def test_from_the_command_line(command, code, words):
    options = ["--epsilon", "0.3", "--gamma", "0.9", "--seed", "0", "--budget", "3000", "-q"]
    outcome = run("plan", *command, *options)
    assert outcome.code == code, outcome.output
    assert words in outcome.output


def test_without_gymnasium(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    outcome = run("plan", "gym:FrozenLake-v1")
    assert outcome.code == 2
    assert "pip install pacplan[gym]" in outcome.output
