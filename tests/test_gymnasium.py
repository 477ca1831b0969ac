"""Gymnasium environments as models: exact tables, snapshots, and what is said when neither works."""

import copy
import itertools
import math
import random
import sys
import threading
from functools import cache
from inspect import signature

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from typer.testing import CliRunner

import pacplan
from pacplan.cli import app
from pacplan.exact import finite_horizon
from pacplan.models.snapshots import observation_key

TAXI = max(name for name in gymnasium.registry if name.startswith("Taxi-"))
CLIFF = max(name for name in gymnasium.registry if name.startswith("CliffWalking-"))
# Rain and fickle passengers came after Gymnasium 1.0.
recent_taxi = pytest.mark.skipif(
    "is_rainy" not in signature(gymnasium.make(TAXI).unwrapped.__init__).parameters,
    reason="this release of Gymnasium has no rain in Taxi",
)
KNOWN = {"rewards": "known", "transitions": "known"}


def made(name, seed=0, **settings):
    env = gymnasium.make(name, **settings)
    env.reset(seed=seed)
    return env


def sampled(model, horizon=1, width=20_000, gamma=1.0, seed=0, state=None):
    """Estimates of Q from many draws."""
    planner = pacplan.SparseSampling(gamma=gamma, horizon=horizon, width=width)
    return planner.plan(model, state, seed=seed).values


def steps_of(model, state, actions, seed=0):
    """What some actions lead to, one after the other: (observation key, reward, ended)."""
    rng, found = np.random.default_rng(seed), []
    for action in actions:
        observation, state, reward, ended = model._bench.observe(state, action, rng)
        found.append((None if ended else observation_key(observation), float(reward), bool(ended)))
        if ended:
            break
    return found


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


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("FrozenLake-v1", {}),
        ("FrozenLake-v1", {"is_slippery": False}),
        (CLIFF, {}),
        (CLIFF, {"is_slippery": True}),
        (TAXI, {}),
        pytest.param(TAXI, {"is_rainy": True}, marks=recent_taxi),
    ],
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


@pytest.mark.parametrize(
    ("name", "states", "epsilon", "horizon"),
    [
        ("FrozenLake-v1", (0, 8, 10, 14), 0.1, 6),
        (CLIFF, (36, 24, 35, 0), 1.0, 10),
        (TAXI, (16, 97, 418, 479), 1.0, 10),
    ],
)
def test_certified_plans_are_within_epsilon_of_dynamic_programming(name, states, epsilon, horizon):
    model = pacplan.from_gymnasium(made(name))
    q = finite_horizon(model, gamma=0.95, horizon=horizon)[0]
    planner = pacplan.MDPGapE(epsilon=epsilon, delta=1e-7, gamma=0.95, horizon=horizon, **KNOWN)
    for state in states:
        plan = planner.plan(model, state, seed=0, time_limit=60)
        assert plan.certified
        assert q[state].max() - q[state, plan.action] <= epsilon
        assert (plan.lower <= q[state] + 1e-9).all() and (q[state] <= plan.upper + 1e-9).all()


def test_a_newcomer_reaches_a_plan_in_five_lines():
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    env.reset(seed=0)
    planner = pacplan.MDPGapE(epsilon=0.1, delta=0.1, gamma=0.95, horizon=6, **KNOWN)
    plan = planner.plan(pacplan.from_gymnasium(env), seed=0)
    observation, *_ = env.step(plan.action)
    assert plan.certified and observation in (1, 4)


def test_plans_follow_the_live_environment():
    env = made("FrozenLake-v1", is_slippery=False)
    model = pacplan.from_gymnasium(env)
    planner = pacplan.MDPGapE(epsilon=0.02, delta=0.1, gamma=0.95, horizon=6, **KNOWN)
    for _ in range(6):
        _, reward, terminated, _, _ = env.step(planner.plan(model, seed=0).action)
    assert terminated and reward == 1.0


def test_masks_of_a_table():
    env = made(TAXI)
    model = pacplan.from_gymnasium(env, mask=True)
    for state in range(500):
        allowed = np.flatnonzero(env.unwrapped.action_mask(state))
        assert model.actions(state) == tuple(allowed)
    with pytest.raises(ValueError, match="has none"):
        pacplan.from_gymnasium(made("FrozenLake-v1"), mask=True)


@recent_taxi
def test_the_table_of_a_fickle_taxi_is_not_used():
    fickle = made(TAXI, fickle_passenger=True)
    with pytest.raises(ValueError, match="publishes no table"):
        pacplan.from_gymnasium(fickle, table=True)
    model = pacplan.from_gymnasium(fickle, successors=5, reward_range=(-10, 20))
    assert isinstance(model, pacplan.Simulator)


def test_a_table_that_does_not_hold_is_not_used():
    doubled = gymnasium.wrappers.TransformReward(made("FrozenLake-v1"), lambda r: 2 * r)
    model = pacplan.from_gymnasium(doubled, successors=3, reward_range=(0, 2))
    assert isinstance(model, pacplan.Simulator)
    wrong = made("FrozenLake-v1", is_slippery=False)
    wrong.unwrapped.step = lambda action: (3, 0.0, False, False, {})
    with pytest.raises(pacplan.BrokenPromiseError, match="table of FrozenLakeEnv"):
        pacplan.from_gymnasium(wrong)
    with pytest.raises(ValueError, match="successors=2, but"):
        pacplan.from_gymnasium(made("FrozenLake-v1"), successors=2)
    with pytest.raises(ValueError, match="no clock"):
        pacplan.from_gymnasium(made("FrozenLake-v1"), table=True, time_limit=True)


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
            expected.append((observation_key(observation), reward, terminated))
        assert steps_of(model, state, sequence) == expected
    # The environment itself has not moved.
    after = (env.unwrapped.state, env.unwrapped.np_random.bit_generator.state)
    assert np.array_equal(before[0], after[0]) and before[1] == after[1]
    assert env.step(0)[0].shape == env.observation_space.shape


def test_mountain_car_plans_like_exhaustive_search():
    env = made("MountainCar-v0", seed=3)
    env.unwrapped.state = (0.42, 0.045)
    model = pacplan.from_gymnasium(env, successors=1, reward_range=(-1, 0))

    def best(twin, steps):
        if steps == 0:
            return 0.0
        returns = []
        for action in range(3):
            follower = copy.deepcopy(twin)
            _, reward, terminated, _, _ = follower.step(action)
            returns.append(reward + (0.0 if terminated else best(follower, steps - 1)))
        return max(returns)

    planner = pacplan.MDPGapE(epsilon=0.0, delta=0.1, gamma=1.0, horizon=4, rewards="deterministic")
    plan = planner.plan(model, seed=0, budget=50_000)
    assert plan.value == pytest.approx(best(env, 4)) and plan.value > -4.0


def test_copies_do_not_share_their_luck():
    env = made("FrozenLake-v1")
    model = pacplan.from_gymnasium(env, table=False, successors=3, reward_range=(0, 1))
    exact = pacplan.from_gymnasium(env)
    assert isinstance(model, pacplan.Simulator)
    env.unwrapped.s = 14
    rng = np.random.default_rng(0)
    draws = [model._step(model.initial_state(), 2, rng) for _ in range(3000)]
    ends = [reward for _, reward, ended in draws if ended]
    # A third each for the goal, for staying and for going up: six standard deviations.
    assert abs(len(ends) / 3000 - 1 / 3) < 6 * math.sqrt(2 / 9 / 3000)
    assert set(ends) == {1.0}
    assert {state.saved[-1]["s"] for state, _, ended in draws if not ended} == {10, 14}
    assert len({state for state, _, ended in draws if not ended}) == 2
    q = finite_horizon(exact, gamma=1.0, horizon=2)[0]
    assert sampled(model, horizon=2, width=120) == pytest.approx(q[14], abs=0.25)
    assert sampled(model, horizon=1) == pytest.approx(
        finite_horizon(exact, gamma=1.0, horizon=1)[0][14], abs=6 * 0.5 / math.sqrt(20_000)
    )


def test_taxi_as_snapshots_agrees_with_its_table():
    env = made(TAXI, seed=5)
    exact = pacplan.from_gymnasium(env)
    model = pacplan.from_gymnasium(env, table=False, successors=1, reward_range=(-10, 20), mask=True)
    planner = pacplan.MDPGapE(epsilon=0.5, delta=0.1, gamma=0.9, horizon=5, rewards="deterministic")
    plan = planner.plan(model, seed=0, budget=100_000)
    assert plan.actions == tuple(np.flatnonzero(env.unwrapped.action_mask(env.unwrapped.s)))
    q = finite_horizon(exact, gamma=0.9, horizon=5)[0][env.unwrapped.s]
    assert plan.certified and q.max() - q[plan.action] <= 0.5


# The cards of an endless deck, ace first.
CARDS = {**dict.fromkeys(range(1, 10), 1 / 13), 10: 4 / 13}


def total(hand):
    return sum(hand) + (10 if 1 in hand and sum(hand) <= 11 else 0)


@cache
def dealt(hand):
    """Distribution of the dealer's final score, who draws to 17; 0 for bust."""
    if total(hand) > 21:
        return {0: 1.0}
    if total(hand) >= 17:
        return {total(hand): 1.0}
    result = {}
    for card, p in CARDS.items():
        for score, q in dealt(tuple(sorted((*hand, card)))).items():
            result[score] = result.get(score, 0.0) + p * q
    return result


def blackjack_values(player, shown, steps):
    """Q of sticking and hitting for a player who has not seen the dealer's second card."""
    if steps == 0:
        return (0.0, 0.0)
    stick = 0.0
    for hidden, p in CARDS.items():
        for score, q in dealt((min(shown, hidden), max(shown, hidden))).items():
            stick += p * q * np.sign(total(player) - score)
    hit = 0.0
    for card, p in CARDS.items():
        hand = (*player, card)
        hit += p * (-1.0 if total(hand) > 21 else max(blackjack_values(hand, shown, steps - 1)))
    return stick, hit


def test_blackjack():
    env = made("Blackjack-v1", seed=1)
    base = env.unwrapped
    base.player, base.dealer = [10, 6], [10, 9]
    settings = {"successors": 10, "reward_range": (-1, 1)}
    # A snapshot knows the card that the observation hides.
    seeing = pacplan.from_gymnasium(env, **settings)
    assert sampled(seeing, width=100)[0] == -1.0

    def redraw(unwrapped, rng):
        unwrapped.dealer[1] = min(int(rng.integers(1, 14)), 10)

    model = pacplan.from_gymnasium(env, redraw=redraw, **settings)
    exact = blackjack_values((10, 6), 10, 1)
    assert sampled(model) == pytest.approx(exact, abs=6 / math.sqrt(20_000))
    plan = pacplan.MDPGapE(epsilon=0.0, delta=1e-7, gamma=1.0, horizon=2).plan(
        model, seed=0, budget=20_000
    )
    exact = blackjack_values((10, 6), 10, 2)
    assert (plan.lower <= exact).all() and (exact <= plan.upper).all()
    assert base.dealer == [10, 9] and base.player == [10, 6]


def test_same_seed_same_plan():
    model = pacplan.from_gymnasium(
        made("FrozenLake-v1"), table=False, successors=3, reward_range=(0, 1)
    )
    planner = pacplan.UCT(gamma=0.9, horizon=8)

    def answer(seed):
        plan = planner.plan(model, seed=seed, budget=2000)
        return plan.values.tolist(), plan.calls.tolist()

    assert answer(1) == answer(1) != answer(2)


# --------------------------------------------------------------------- Environments of all kinds


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


class OwnMethods(Walk):
    """Saves and restores itself, with its random state, and cannot be looked into."""

    def move(self, action):
        return super().move(action) if self.np_random.random() < 0.5 else 0

    def get_state(self):
        return self.place, self.np_random.bit_generator.state

    def set_state(self, state):
        self.place, self.np_random.bit_generator.state = state


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


@pytest.mark.parametrize("kind", [OwnMethods, OwnGenerators, Ezpickle])
def test_luck_is_drawn_anew_in_every_copy(kind):
    env = started(kind())
    while env.place != 3:
        env.step(1)
    model = pacplan.from_gymnasium(env, **WALK)
    state = model.initial_state()
    rng = np.random.default_rng(0)
    draws = [model._bench.observe(state, 1, rng) for _ in range(400)]
    seen = [observation for observation, _, _, _ in draws]
    assert set(seen) == {3, 4} and len({successor for _, successor, _, _ in draws}) == 2
    assert abs(seen.count(4) / 400 - 0.5) < 6 * 0.5 / math.sqrt(400)
    answers = [pacplan.UCT(gamma=0.9, horizon=5).plan(model, seed=1, budget=500) for _ in range(2)]
    assert answers[0].values.tolist() == answers[1].values.tolist()
    assert env.place == 3


class TwoArguments(Walk):
    """MuJoCo's way: setting takes two arguments, so it is no pair with getting."""

    def get_state(self):
        raise AssertionError("not to be called")

    def set_state(self, positions, velocities):
        raise AssertionError("not to be called")


def test_methods_that_do_not_fit_are_left_alone():
    env = started(TwoArguments())
    model = pacplan.from_gymnasium(env, **WALK)
    assert steps_of(model, model.initial_state(), [1, 1, 1]) == [(3, 0, 0), (4, 0, 0), (None, 1, 1)]


class Board(Walk):
    """Keeps a board of nested lists and a tally that changes late, both changed in place."""

    def __init__(self):
        self.board = [[0, 0], [0, 0]]
        self.late = []
        self.same = self.board[0]

    def reset(self, **options):
        self.board[0][:] = [0, 0]
        self.late.clear()
        return super().reset(**options)

    def step(self, action):
        self.board[0][action] += 1
        if self.board[0][action] == 6:
            self.late.append(action)
        super().step(action)
        return self.same[0] * 100 + self.same[1] * 10 + len(self.late), 0.0, False, False, {}


def test_what_changes_in_place_is_copied_even_if_it_changes_late():
    env = started(Board())
    model = pacplan.from_gymnasium(env, **WALK)
    state = model.initial_state()
    sequence = [0, 1, 0, 0, 0, 0, 0, 1]
    expected = [env.step(action)[0] for action in sequence]
    for _ in range(3):
        assert [key for key, _, _ in steps_of(model, state, sequence)] == expected
    later = model.state_of(env)
    for action in sequence:
        state, _, _ = model._step(state, action, np.random.default_rng(0))
    assert later == state
    assert steps_of(model, later, [1]) == [(env.step(1)[0], 0.0, False)]


def test_time_limits():
    env = made("CartPole-v1", max_episode_steps=4)
    env.step(0)
    settings = {"successors": 1, "reward_range": (0, 1)}
    planner = pacplan.MDPGapE(epsilon=0.0, delta=0.1, gamma=1.0, horizon=6, rewards="deterministic")
    endless = planner.plan(pacplan.from_gymnasium(env, **settings), seed=0, budget=5000)
    assert endless.value == pytest.approx(6.0)
    limited = pacplan.from_gymnasium(env, time_limit=True, **settings)
    assert planner.plan(limited, seed=0, budget=5000).value == pytest.approx(3.0)
    state = limited.initial_state()
    ended = [end for _, _, end in steps_of(limited, state, [0, 1, 0, 1])]
    assert ended == [False, False, True]
    assert limited._step(state, 0, np.random.default_rng(0))[0].saved[0]["_elapsed_steps"] == 2


def test_wrappers_apply():
    env = gymnasium.wrappers.TransformReward(made("CartPole-v1"), lambda r: 0.25 * r)
    env = gymnasium.wrappers.FrameStackObservation(env, 2)
    env.reset(seed=0)
    model = pacplan.from_gymnasium(env, successors=1, reward_range=(0, 1))
    state = model.initial_state()
    first = steps_of(model, state, [0, 1])
    observation, reward, _, _, _ = env.step(0)
    assert first[0] == (observation_key(observation), 0.25, False) and reward == 0.25
    assert first[1][0] == observation_key(env.step(1)[0])
    with pytest.raises(ValueError, match=r"the model is one of .*FrameStackObservation"):
        model.state_of(made("CartPole-v1"))


def test_action_spaces():
    pendulum = made("Pendulum-v1")
    settings = {"successors": 1, "reward_range": (-17, 0)}
    with pytest.raises(ValueError, match="list the actions"):
        pacplan.from_gymnasium(pendulum, **settings)
    model = pacplan.from_gymnasium(pendulum, actions=[(-2.0,), (0.0,), (2.0,)], **settings)
    plan = pacplan.UCT(gamma=0.9, horizon=5).plan(model, seed=0, budget=500)
    assert plan.action in {(-2.0,), (0.0,), (2.0,)}

    class Switches(Walk):
        action_space = spaces.MultiBinary(2)

        def move(self, action):
            assert isinstance(action, np.ndarray)
            return int(action[0]) - int(action[1])

    model = pacplan.from_gymnasium(started(Switches()), **WALK)
    assert model.actions(model.initial_state()) == ((0, 0), (0, 1), (1, 0), (1, 1))

    class Shifted(Walk):
        action_space = spaces.Discrete(2, start=1)

        def move(self, action):
            return super().move(action - 1)

    model = pacplan.from_gymnasium(started(Shifted()), **WALK)
    assert pacplan.UCT(gamma=0.9, horizon=5).plan(model, seed=0, budget=500).action == 2


def test_keys():
    array = np.array([1.0, 2.0], np.float32)
    same = {"b": (array.copy(), 3), "a": [np.int64(4), "x"]}
    assert observation_key(same) == observation_key({"a": (4, "x"), "b": [array, np.int8(3)]})
    assert observation_key(array) != observation_key(array.astype(np.float64))
    assert observation_key(array) != observation_key(array.reshape(2, 1))
    image = np.zeros((50, 50), np.uint8)
    other = image.copy()
    other[49, 49] = 1
    assert observation_key(image) == observation_key(image.copy()) != observation_key(other)
    assert len(observation_key(image)[-1]) == 20
    with pytest.raises(TypeError, match="pass key="):
        observation_key({1, 2})
    own = pacplan.from_gymnasium(started(Walk()), key=lambda place: f"place {place}", **WALK)
    state = own.initial_state()
    assert own._step(state, 0, np.random.default_rng(0))[0].key == "place 1"
    for key in ("observed", 3):
        with pytest.raises(TypeError, match="key must be a function"):
            pacplan.from_gymnasium(started(Walk()), key=key, **WALK)


# --------------------------------------------------------------------------- What is refused, how


class Rich(Walk):
    def step(self, action):
        observation, _, *rest = super().step(action)
        return observation, 2.0, *rest


class Wild(Walk):
    def move(self, action):
        return int(self.np_random.integers(-2, 3))


class Elsewhere(Walk):
    """Its randomness belongs to nobody."""

    source = np.random.default_rng(0)

    def move(self, action):
        return int(Elsewhere.source.integers(-1, 2))


class Leaky(Walk):
    """Gives itself away instead of a copy."""

    def reset(self, **options):
        self.memory = [2]
        return super().reset(**options)

    def move(self, action):
        self.memory[0] += 1
        return self.memory[0] % 3

    def save_state(self):
        return self.memory, self.place

    def load_state(self, state):
        self.memory, self.place = state


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (Rich(), r"paid 2.0, outside reward_range=\(0.0, 1.0\)"),
        (Wild(), r"different states, but successors=2"),
        (Elsewhere(), r"replayed with the same random numbers"),
        (Leaky(), r"replayed with the same random numbers"),
    ],
)
def test_broken_promises_are_found_before_planning(env, message):
    with pytest.raises(pacplan.BrokenPromiseError, match=message):
        pacplan.from_gymnasium(started(env), **WALK)
    pacplan.from_gymnasium(started(env), check=False, **WALK)


@pytest.mark.parametrize("key", [lambda place: [place], lambda place: np.array([place])])
def test_keys_that_do_not_hash(key):
    with pytest.raises(pacplan.BrokenPromiseError, match="does not hash and compare"):
        pacplan.from_gymnasium(started(Walk()), key=key, **WALK)


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
    with pytest.raises(pacplan.BrokenPromiseError, match=r"bell of Bell changed.*changing=\['bell'\]"):
        planner.plan(model, seed=0, budget=100)
    told = pacplan.from_gymnasium(env, changing=["bell"], **WALK)
    planner.plan(told, seed=0, budget=100)
    assert [reward for _, reward, _ in steps_of(told, told.initial_state(), [1, 1, 1])] == [
        0,
        0.01,
        0.01,
    ]
    assert env.bell == []


def test_missing_promises():
    env = started(Walk())
    with pytest.raises(ValueError, match=r"pass reward_range=.*draws paid from 0 to 1"):
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


def put_back(env, place):
    env.place = place


def test_environments_that_cannot_be_copied():
    env = started(Locked())
    with pytest.raises(ValueError, match=r"Locked\.lock, a lock.*Pass save= and restore="):
        pacplan.from_gymnasium(env, **WALK)
    own = {"save": lambda env: env.place, "restore": put_back}
    with pytest.raises(ValueError, match=r"Locked cannot be copied.*gymnasium.make"):
        pacplan.from_gymnasium(env, **own, **WALK)
    gymnasium.register("pacplan/Locked-v0", entry_point=Locked)
    env = made("pacplan/Locked-v0")
    env.step(1)
    model = pacplan.from_gymnasium(env, **own, **WALK)
    assert steps_of(model, model.initial_state(), [1, 0]) == [(4, 0, 0), (3, 0, 0)]
    assert env.unwrapped.place == 3


def test_own_functions_to_save_and_restore():
    env = started(Walk())
    model = pacplan.from_gymnasium(env, save=lambda env: env.place, restore=put_back, **WALK)
    assert steps_of(model, model.initial_state(), [1, 0]) == [(3, 0, 0), (2, 0, 0)]
    assert model.initial_state().saved[-1] == 2
    with pytest.raises(ValueError, match="together"):
        pacplan.from_gymnasium(env, save=lambda env: env.place, **WALK)


def test_states_that_are_none():
    fresh = gymnasium.make("CartPole-v1")
    model = pacplan.from_gymnasium(fresh, successors=1, reward_range=(0, 1))
    planner = pacplan.UCT(gamma=0.9, horizon=5)
    with pytest.raises(ValueError, match=r"call env.reset\(\)"):
        planner.plan(model, budget=10)
    with pytest.raises(TypeError, match=r"model.state_of\(env\)"):
        planner.plan(model, fresh, budget=10)
    with pytest.raises(ValueError, match=r"call env.reset\(\)|env.reset\(\) before"):
        planner.plan(pacplan.from_gymnasium(gymnasium.make("FrozenLake-v1")), budget=10)
    with pytest.raises(TypeError, match="Gymnasium environment, got int"):
        pacplan.from_gymnasium(3)
    with pytest.raises(TypeError, match="vector of environments"):
        pacplan.from_gymnasium(gymnasium.make_vec("CartPole-v1", 2, vectorization_mode="sync"))


# --------------------------------------------------------------------------------- Command line


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (["gym:FrozenLake-v1", "--set", "is_slippery=False", "--horizon", "6"], 0, "Action"),
        (["gym:CartPole-v1", "--set", "successors=1", "--set", "reward_range=(0,1)"], 3, "Action"),
        (["gym:Nowhere-v1"], 2, "cannot make 'Nowhere-v1'"),
        (["gym:CartPole-v1"], 2, "pass reward_range"),
    ],
)
def test_from_the_command_line(command, code, words):
    options = ["--epsilon", "0.3", "--gamma", "0.9", "--seed", "0", "--budget", "3000", "-q"]
    if "FrozenLake" in command[0]:
        options += ["--option", "rewards=known", "--option", "transitions=known"]
    outcome = CliRunner().invoke(app, ["plan", *command, *options])
    assert outcome.exit_code == code, outcome.output
    assert words in outcome.output


def test_without_gymnasium(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    outcome = CliRunner().invoke(app, ["plan", "gym:FrozenLake-v1"])
    assert outcome.exit_code == 2
    assert "pip install pacplan[gym]" in outcome.output


# ---------------------------------------------------------------------------------- Highway-env


@pytest.mark.filterwarnings("ignore")
def test_highway():
    highway_env = pytest.importorskip("highway_env")
    gymnasium.register_envs(highway_env)
    env = made("highway-fast-v0", config={"vehicles_count": 5, "simulation_frequency": 5})
    model = pacplan.from_gymnasium(env, successors=1, reward_range=(0, 1), mask=True)
    state = model.initial_state()
    expected = []
    twin = copy.deepcopy(env)
    for action in (1, 0, 3):
        observation, reward, terminated, _, _ = twin.step(action)
        key = None if terminated else observation_key(observation)
        expected.append((key, pytest.approx(reward), terminated))
    assert steps_of(model, state, [1, 0, 3]) == expected
    assert model.actions(state) == tuple(sorted(env.unwrapped.get_available_actions()))
    plan = pacplan.OPD(gamma=0.8).plan(model, seed=0, budget=30)
    assert plan.action in model.actions(state)
