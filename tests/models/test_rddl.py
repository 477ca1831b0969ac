"""Environments of pyRDDLGym: admissible actions, states, and plans that are right."""

import numpy as np
import pytest

import pacplan
from pacplan.core.keys import all_distinct, same
from pacplan.models import rddl
from worlds import at

DOMAIN = """
domain computers {
    types { computer : object; };
    pvariables {
        running(computer) : { state-fluent, bool, default = true };
        reboot(computer) : { action-fluent, bool, default = false };
        pace : { action-fluent, int, default = 1 };
    };
    cpfs {
        running'(?c) = if (reboot(?c)) then KronDelta(true)
            else if (running(?c)) then Bernoulli(0.7) else Bernoulli(0.1);
    };
    reward = (sum_{?c : computer} [running(?c)]) - (sum_{?c : computer} [0.75 * reboot(?c)])
        - 0.5 * abs[pace - 1];
    action-preconditions {
        pace >= 0;
        pace <= 2;
        PRECONDITION
    };
}
"""
INSTANCE = """
non-fluents machines { domain = computers; objects { computer : {c1, c2}; }; }
instance offices {
    domain = computers;
    non-fluents = machines;
    init-state { running(c1) = false; };
    max-nondef-actions = MOST;
    horizon = 10;
    discount = 1.0;
}
"""
IDLE = "forall_{?c : computer} [reboot(?c) => ~running(?c)];"
RANGE = (-2.5, 2)

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def computers(tmp_path):
    pyrddlgym = pytest.importorskip("pyRDDLGym")

    def make(precondition="", most=1, **settings):
        domain, instance = tmp_path / "domain.rddl", tmp_path / "instance.rddl"
        domain.write_text(DOMAIN.replace("PRECONDITION", precondition))
        instance.write_text(INSTANCE.replace("MOST", str(most)))
        env = pyrddlgym.make(str(domain), str(instance), **settings)
        env.reset(seed=0)
        return env

    return make


def running(env):
    """Which computers run, in the state that an unwrapped environment is in."""
    return tuple(bool(up) for up in env.sampler.subs["running"])


def test_admissible_actions(computers):
    env = computers()
    model = pacplan.from_gymnasium(env, reward_range=RANGE)
    assert list(model.actions(model.initial_state())) == [
        {},
        {"reboot___c1": True},
        {"reboot___c2": True},
        {"pace": 0},
        {"pace": 2},
    ]
    # At most two differ from their defaults: nothing, one of four, and two of different fluents.
    model = pacplan.from_gymnasium(computers(most=2), reward_range=RANGE)
    actions = model.actions(model.initial_state())
    assert len(actions) == 1 + 4 + (1 + 2 + 2) and all_distinct(actions)
    # Only booleans are counted.
    model = pacplan.from_gymnasium(computers(enforce_action_count_non_bool=False), reward_range=RANGE)
    assert len(model.actions(model.initial_state())) == 3 * 3


@pytest.mark.parametrize("enforced", [True, False])
def test_preconditions_depend_on_the_state(computers, enforced):
    env = computers(IDLE, enforce_action_constraints=enforced)
    model = pacplan.from_gymnasium(env, reward_range=RANGE)
    assert model.max_actions == 5
    state, rng = model.initial_state(), np.random.default_rng(0)
    seen = set()
    for _ in range(60):
        up = running(at(model, state))
        seen.add(up)
        offered = model.actions(state)
        for i in range(2):
            assert any(same(action, {f"reboot___c{i + 1}": True}) for action in offered) != up[i]
        successor, _, ended = model.step(state, offered[rng.integers(len(offered))], rng)
        state = model.initial_state() if ended else successor
    assert len(seen) == 4


def test_states_are_fluents_and_time(computers):
    env = computers()
    model = pacplan.from_gymnasium(env, reward_range=RANGE)
    rng, root = np.random.default_rng(0), model.initial_state()
    drawn = [model.step(root, {"reboot___c1": True}, rng)[0] for _ in range(200)]
    assert len(set(drawn)) == 2  # the second computer runs, or not
    frequency = np.mean([running(at(model, state)) == (True, True) for state in drawn])
    assert abs(frequency - 0.7) < 6 * np.sqrt(0.21 / 200)
    # As when the environment itself is played.
    env.step({"reboot___c1": True})
    assert model.initial_state() in set(drawn)
    assert rddl.save(env.unwrapped)["timestep"] == 1
    later, steps = model.initial_state(), 1
    while True:
        successor, _, ended = model.step(later, {}, rng)
        steps += 1
        if ended:
            break
        later = successor
    assert steps == 10  # The horizon is a part of the environment.
