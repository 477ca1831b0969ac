"""Every finite space of actions is listed, and a plan's action is what the environment takes."""

import numpy as np
import pytest
from gymnasium import spaces

import pacplan
from pacplan.models.actions import MOST_ACTIONS, actions_of
from worlds import WALK, Walk, made, started

PENDULUM = {"successors": 1, "reward_range": (-17, 0)}


def everything(space):
    """All elements of a finite space, by another way: draws until nothing new comes."""
    found = {}
    space.seed(0)
    for _ in range(3000):
        element = space.sample()
        found[repr(element)] = element
    return list(found.values())


@pytest.mark.parametrize(
    "space",
    [
        spaces.Discrete(4, start=-1),
        spaces.MultiBinary(3),
        spaces.MultiBinary((2, 2)),
        spaces.MultiDiscrete([2, 3], start=[1, -1]),
        spaces.MultiDiscrete([[2, 2], [1, 2]]),
        spaces.Tuple([spaces.Discrete(2), spaces.MultiBinary(2)]),
        spaces.Dict({"go": spaces.Discrete(3), "hands": spaces.Tuple([spaces.Discrete(2)] * 2)}),
    ],
    ids=lambda space: type(space).__name__,
)
def test_all_actions_of_a_space(space):
    env = started(Walk())
    env.action_space = space
    listed, _ = actions_of(env, None)
    assert all(space.contains(action) for action in listed)
    assert pacplan.core.keys.all_distinct(listed)
    assert len(listed) == len(everything(space))


class Levers(Walk):
    """The walker goes right if all levers are on and the word is "go", else left."""

    action_space = spaces.Dict({"levers": spaces.MultiBinary(2), "word": spaces.Discrete(2)})

    def move(self, action):
        assert self.action_space.contains(action)
        right = bool(action["levers"].all()) and action["word"] == 1
        action["levers"][:] = 0  # It may do with it what it likes.
        action.clear()
        return 1 if right else -1


def test_plans_in_a_space_of_dictionaries():
    env = started(Levers())
    model = pacplan.from_gymnasium(env, successors=1, reward_range=(0, 1))
    plan = pacplan.plan(model, epsilon=0.1, delta=0.01, gamma=0.9, horizon=4, seed=0)
    assert plan.certified and env.action_space.contains(plan.action)
    assert plan.action["word"] == 1 and plan.action["levers"].tolist() == [1, 1]
    assert plan.to_dict()["action"] == {"levers": [1, 1], "word": 1}
    marked = [line for line in str(plan).splitlines() if line.startswith(">")]
    assert len(marked) == 1 and "array([1, 1]" in marked[0]
    env.step(plan.action)
    assert env.place == 3
    # What the environment did with it has not changed the model.
    assert len(model.actions(model.initial_state())[7]) == 2


def test_actions_of_a_continuous_space_are_listed():
    env = made("Pendulum-v1")
    with pytest.raises(ValueError, match=r"infinitely many actions.*actions=\["):
        pacplan.from_gymnasium(env, **PENDULUM)
    listed = [(-2.0,), [0.0], np.array([2.0], np.float32)]
    model = pacplan.from_gymnasium(env, actions=listed, **PENDULUM)
    actions = model.actions(model.initial_state())
    assert [action.tolist() for action in actions] == [[-2.0], [0.0], [2.0]]
    assert all(env.action_space.contains(action) for action in actions)
    plan = pacplan.UCT(gamma=0.9, horizon=5).plan(model, seed=0, budget=500)
    env.step(plan.action)


@pytest.mark.parametrize(
    ("space", "words"),
    [
        (spaces.Discrete(MOST_ACTIONS + 1), "more than 5,000 actions"),
        (spaces.MultiBinary(2000), "more than 5,000 actions"),
        (spaces.Tuple([spaces.Discrete(10**9)] * 2), "more than 5,000 actions"),
        (spaces.Tuple([spaces.Discrete(2), spaces.Box(0, 1)]), "infinitely many actions"),
        (spaces.Text(3), "infinitely many actions"),
    ],
    ids=str,
)
def test_too_many_actions(space, words):
    env = started(Walk())
    env.action_space = space
    before = space.np_random.bit_generator.state
    with pytest.raises(ValueError, match=words) as refused:
        pacplan.from_gymnasium(env, **WALK)
    assert "actions=[" in str(refused.value)
    assert space.np_random.bit_generator.state == before


class Doors(Walk):
    """A place has as many doors as its number; the last one leads right. Others are not there."""

    action_space = spaces.Discrete(10)

    def doors(self):
        return [f"door {i}" for i in range(self.place + 1)]

    def move(self, action):
        doors = self.doors()
        return 1 if doors.index(action) == len(doors) - 1 else -1


def test_actions_that_depend_on_the_state():
    env = started(Doors())
    model = pacplan.from_gymnasium(env, actions=Doors.doors, successors=1, reward_range=(0, 1))
    assert model.actions(model.initial_state()) == ("door 0", "door 1", "door 2")
    plan = pacplan.UCT(gamma=0.9, horizon=4).plan(model, seed=0, budget=600)
    assert plan.action == "door 2"
    env.step(plan.action)
    assert len(model.actions(model.initial_state())) == 4


def test_nothing_to_choose_from():
    with pytest.raises(ValueError, match="nothing to choose from"):
        pacplan.from_gymnasium(started(Walk()), actions=[], **WALK)
    with pytest.raises(pacplan.BrokenPromiseError, match="leaves nothing to do"):
        pacplan.from_gymnasium(started(Walk()), actions=lambda env: [], **WALK)
