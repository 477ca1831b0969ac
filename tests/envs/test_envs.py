"""The problems of pacplan.envs, against published solutions and independent computations."""

import itertools
import math
from functools import cache

import numpy as np
import pytest

import pacplan
from command_line import run
from pacplan import envs
from pacplan.exact import discounted, finite_horizon

# -------------------------------------------------------------------------------------- Sailing

COMPASS = [(0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1)]
# Vanderbei's winds, each with the probabilities that it turns by -1, 0 and 1 eighths.
TURNS = [(0.3, 0.4, 0.3), *[(0.4, 0.3, 0.3)] * 3, (0.4, 0.2, 0.4), *[(0.3, 0.3, 0.4)] * 3]
SIZE, GOAL = 4, (1, 2)


def sailing_outcomes(x, y, side, wind):
    """By action: what a leg costs, and (probability, next state or None), from the geometry.

    The side is the sign of the cross product of the last heading and the wind.
    """
    blows = COMPASS[wind]
    for action, heading in enumerate(COMPASS):
        to = (x + heading[0], y + heading[1])
        cosine = np.dot(heading, blows) / (math.hypot(*heading) * math.hypot(*blows))
        if cosine < -0.99 or not (0 <= to[0] < SIZE and 0 <= to[1] < SIZE):
            continue
        angle = round(math.degrees(math.acos(min(1.0, cosine))) / 45.0)
        now = int(np.sign(heading[0] * blows[1] - heading[1] * blows[0]))
        minutes = (1 + angle) * math.hypot(*heading) + (3 if side * now == -1 else 0)
        winds = zip((-1, 0, 1), TURNS[wind], strict=True)
        after = [(p, None if to == GOAL else (*to, now, (wind + turn) % 8)) for turn, p in winds]
        yield action, minutes, after


def sailing_state(x, y, side, wind):
    tack = {0: 0, -1: 1, 1: 2}[side]  # No tack; clockwise: from port; else from starboard.
    return ((x * SIZE + y) * 3 + tack) * 8 + wind


def test_sailing_has_the_values_of_its_geometry():
    """The value of each action is what its leg costs, and the values of what follows."""
    model = envs.sailing(SIZE, goal=GOAL)
    q = finite_horizon(model, gamma=1.0, horizon=300)[0]
    for x, y, side, wind in itertools.product(range(SIZE), range(SIZE), (-1, 0, 1), range(8)):
        if (x, y) == GOAL:
            continue
        index, outcomes = sailing_state(x, y, side, wind), list(sailing_outcomes(x, y, side, wind))
        assert model.actions(index) == tuple(action for action, _, _ in outcomes)
        for action, minutes, after in outcomes:
            follows = sum(p * q[sailing_state(*to)].max() for p, to in after if to is not None)
            assert q[index, action] == pytest.approx(follows - minutes, abs=1e-6)


# ------------------------------------------------------------------------------------ Gridworld


def test_gridworld_has_the_published_utilities():
    # Russell and Norvig, the 4x3 world with a reward of -0.04 a move and no discount.
    published = [[0.812, 0.868, 0.918, 0.0], [0.762, 0.0, 0.660, 0.0], [0.705, 0.655, 0.611, 0.388]]
    model = envs.gridworld()
    values = finite_horizon(model, gamma=1.0, horizon=200)[0].max(-1)
    assert values.reshape(3, 4) == pytest.approx(np.array(published), abs=5e-4)
    assert model.initial_state() == 8
    assert model.reward_range == pytest.approx((-1.04, 0.96))
    assert model.successors == 3


# ------------------------------------------------------------------------------------ Riverswim


def test_riverswim_is_solved_as_by_trying_all_policies():
    gamma = 0.95
    left = np.eye(6, k=-1)
    left[0, 0] = 1.0
    right = 0.6 * np.eye(6) + 0.3 * np.eye(6, k=1) + 0.1 * np.eye(6, k=-1)
    right[0, :2], right[5, 4:] = (0.7, 0.3), (0.7, 0.3)
    pays = np.array([[5, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 3000]]) / 10_000
    best = np.full(6, -np.inf)
    for policy in itertools.product((0, 1), repeat=6):
        transitions = np.array([(left, right)[a][s] for s, a in enumerate(policy)])
        rewards = np.array([pays[a, s] for s, a in enumerate(policy)])
        best = np.maximum(best, np.linalg.solve(np.eye(6) - gamma * transitions, rewards))
    model = envs.riverswim()
    assert discounted(model, gamma=gamma).max(-1) == pytest.approx(best, abs=1e-9)
    assert (model.successors, model.reward_range) == (3, (0.0, 1.0))
    # Who cares little for the future stays on the left.
    assert discounted(model, gamma=0.3)[0].argmax() == 0
    assert discounted(model, gamma=gamma)[0].argmax() == 1


# ------------------------------------------------------------------------------------ Inventory


def test_inventory_has_the_published_tables():
    model = envs.inventory()
    # Puterman (1994), section 3.2: the expected rewards; section 4.6.1: three months.
    expected = [
        [0, -1, -2, -5],
        [5, 0, -3, -math.inf],
        [6, -1, -math.inf, -math.inf],
        [5, -math.inf, -math.inf, -math.inf],
    ]
    assert model.sparse()[0] == pytest.approx(np.array(expected))
    q = finite_horizon(model, gamma=1.0, horizon=3)
    assert q[0].max(-1) * 16 == pytest.approx([67, 129, 194, 227])
    assert q.argmax(-1).tolist() == [[3, 0, 0, 0], [2, 0, 0, 0], [0, 0, 0, 0]]
    # Worst: three units ordered, none sold; best: two of two units sold.
    assert model.reward_range == (-13.0, 14.0)


# --------------------------------------------------------------------------------------- Queues

ARRIVALS, COMPLETIONS, PAYS = (0.1, 0.15, 0.15, 0.2), (0.3, 0.6, 0.5, 0.9), (1.0, 0.8, 0.8, 0.3)


def packed(waiting):
    return sum(n * 32768**kind for kind, n in enumerate(waiting))


@cache
def queue_values(waiting, steps, gamma):
    """Q of each kind, recursively from the description."""
    if steps == 0:
        return (0.0,) * 4

    def best(jobs):
        return max(queue_values(jobs, steps - 1, gamma))

    def changed(kind, by):
        return tuple(n + by * (i == kind) for i, n in enumerate(waiting))

    arriving = sum(p * gamma * best(changed(kind, 1)) for kind, p in enumerate(ARRIVALS))
    slot = 1.0 - sum(ARRIVALS)
    q = []
    for kind in range(4):
        done = COMPLETIONS[kind] if waiting[kind] else 0.0
        success = PAYS[kind] + gamma * best(changed(kind, -1)) if done else 0.0
        q.append(arriving + slot * (done * success + (1.0 - done) * gamma * best(waiting)))
    return tuple(q)


@pytest.mark.parametrize("waiting", [(2, 2, 2, 2), (1, 0, 1, 3)])
def test_queues_follow_the_c_mu_rule(waiting):
    index = [PAYS[i] * COMPLETIONS[i] if waiting[i] else 0.0 for i in range(4)]
    for gamma, steps in ((0.8, 5), (1.0, 4)):
        assert int(np.argmax(queue_values(waiting, steps, gamma))) == int(np.argmax(index))
    model = envs.queues(initial=waiting)
    assert model.initial_state() == packed(waiting)
    assert model.successors == 6 and model.max_actions == 4 and not model.may_end
    # Bounds that hold except with probability 1e-7 contain what the recursion finds.
    planner = pacplan.MDPGapE(epsilon=0.0, delta=1e-7, gamma=0.8, horizon=4)
    plan = planner.plan(model, seed=1, budget=400_000)
    q = np.array(queue_values(waiting, 4, 0.8))
    assert (plan.lower <= q + 1e-9).all() and (q <= plan.upper + 1e-9).all()
    # Sampled directly, the first step pays what it should: five standard deviations.
    sampled = pacplan.SparseSampling(gamma=0.8, horizon=1, width=100_000).plan(model, seed=1)
    assert sampled.values == pytest.approx(queue_values(waiting, 1, 0.8), abs=5 * 0.5 / 100_000**0.5)


# ---------------------------------------------------------------------------------------- All


@pytest.mark.parametrize("name", envs.__all__)
def test_every_problem_can_be_planned_from_the_command_line(name):
    command = ["plan", name, "--budget", "500", "--horizon", "4", "--seed", "0", "--json"]
    if name == "game_tree":
        command += ["--planner", "ugape-mcts", "--set", "tree=[[0.6, 0.2], 0.3]"]
    outcome = run(*command)
    assert outcome.code in (0, 3), outcome.output
    assert '"action"' in outcome.output


@pytest.mark.parametrize(
    ("make", "settings", "message"),
    [
        (envs.gridworld, {"drawing": ["..", "..."]}, "same length"),
        (envs.gridworld, {"drawing": ["?."]}, r"\['\?'\]"),
        (envs.gridworld, {"drawing": ["SS"]}, "at most one start"),
        (envs.gridworld, {"drawing": ["G#"]}, "place to be in"),
        (envs.gridworld, {"drawing": []}, "list of strings"),
        (envs.queues, {"arrivals": (0.5, 0.5, 0.1, 0.1)}, "less than 1"),
        (envs.queues, {"arrivals": (0.1,)}, "one entry for each"),
        (envs.queues, {"rewards": (2.0, 0, 0, 0)}, r"an entry of rewards must lie in \[0, 1\]"),
        (envs.queues, {"initial": (1, 1, 1, 40_000)}, "at most 32767"),
        (envs.garnet, {"states": 1.5}, "states.*1.5"),
        (envs.garnet, {"reward_density": 1.1}, "reward_density.*1.1"),
        (envs.garnet, {"seed": -1}, "seed.*-1"),
        (envs.garnet, {"states": 3, "successors": 4}, "successors=4.*only 3"),
    ],
)
def test_settings_that_make_no_sense_are_refused_by_name(make, settings, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make(**settings)
