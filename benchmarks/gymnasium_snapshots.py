"""What planning in a Gymnasium environment costs on top of copying and stepping it.

    python3 dev.py python benchmarks/gymnasium_snapshots.py

A plan's calls to the model are recorded. Then, in the same process and alternately, the plan is made
again, everything included (bringing back, stepping, identifying states, the planner), and the same
calls are made by hand: bring back the attributes that change, seed the generator anew, step, save the
attributes. It prints microseconds of processor time per call, the least of several rounds, and the
ratio of the two. The last column is a deep copy of the environment and a step: the cost without
knowing what changes.
"""

import copy
import sys
import time

import gymnasium
import numpy as np

import pacplan

ROUNDS = 9
TAXI = max(name for name in gymnasium.registry if name.startswith("Taxi-"))
# The attributes that change while it is played, and the model's promises.
ENVIRONMENTS = {
    "CartPole-v1": (("state", "steps_beyond_terminated"), {"successors": 1, "reward_range": (0, 1)}),
    "MountainCar-v0": (("state",), {"successors": 1, "reward_range": (-1, 0)}),
    "Blackjack-v1": (("player", "dealer"), {"successors": 10, "reward_range": (-1, 1)}),
    "FrozenLake-v1": (("s", "lastaction"), {"table": False, "successors": 3, "reward_range": (0, 1)}),
    TAXI: (("s", "lastaction"), {"table": False, "successors": 1, "reward_range": (-10, 20)}),
}


def planned(model, calls):
    """A plan; returns the seconds."""
    planner = pacplan.UCT(gamma=0.95, horizon=10)
    started = time.process_time()
    planner.plan(model, seed=0, budget=calls)
    return time.process_time() - started


def recorded(model, attributes, calls):
    """The values of the attributes, and the action, at each call of a plan."""
    calls_made = []
    draw = model.step

    def recording(state, action, rng):
        before = model.query(state, lambda base: [getattr(base, name) for name in attributes])
        calls_made.append((before, action))
        return draw(state, action, rng)

    model.step = recording
    planned(model, calls)
    model.step = draw
    return calls_made


def by_hand(env, attributes, calls):
    """Bring back, seed, step and save, and nothing else; returns the seconds."""
    base = env.unwrapped
    rng = np.random.default_rng(0)
    started = time.process_time()
    for values, action in calls:
        for name, value in zip(attributes, values, strict=True):
            setattr(base, name, copy.copy(value))
        base.np_random.bit_generator.state = {
            "bit_generator": "PCG64",
            "state": {"state": int(rng.integers(2**63)), "inc": 1},
            "has_uint32": 0,
            "uinteger": 0,
        }
        base.step(action)
        _ = [copy.copy(getattr(base, name)) for name in attributes]
    return time.process_time() - started


def deep(env, calls):
    """Copy everything and step; returns the seconds."""
    started = time.process_time()
    for _ in range(calls):
        copy.deepcopy(env).step(0)
    return time.process_time() - started


def main(calls=5000):
    print(f"{'microseconds':16}{'by hand':>10}{'planned':>10}{'ratio':>8}{'deep copy':>12}")
    for name, (attributes, promises) in ENVIRONMENTS.items():
        env = gymnasium.make(name)
        env.reset(seed=0)
        model = pacplan.from_gymnasium(env, **promises)
        twin = copy.deepcopy(env)
        calls_made = recorded(model, attributes, calls)
        rounds = [(by_hand(twin, attributes, calls_made), planned(model, calls)) for _ in range(ROUNDS)]
        hand, plan = (min(column) / calls * 1e6 for column in zip(*rounds, strict=True))
        whole = deep(env, 20) / 20 * 1e6
        print(f"{name:16}{hand:10.1f}{plan:10.1f}{plan / hand:8.2f}{whole:12.0f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
