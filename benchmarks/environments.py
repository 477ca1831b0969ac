"""Every kind of Gymnasium environment as a model: how it is brought back, and what a plan costs.

    python3 dev.py python benchmarks/environments.py [part of a name ...]

Those of pyRDDLGym are left out if it is missing (`pip install pacplan[rddl]`). Each plan has a minute.
"""

import importlib.util
import sys
import warnings

import gymnasium

import pacplan

MINUTE = 60.0


def newest(name):
    """The newest version of an environment in this release of Gymnasium."""
    return max(known for known in gymnasium.registry if known.startswith(f"{name}-v"))


SHIPMENTS = [
    {"produce": made, "ship___w1": sent, "ship___w2": sent, "ship___w3": sent}
    for made in (0, 5, 10)
    for sent in (0, 1, 2)
]
# The model's promises, and epsilon and horizon; no epsilon: UCT, which promises nothing. In those with
# one successor nothing is random.
CLASSIC = {
    "FrozenLake-v1": ({}, 0.1, 6),
    newest("CliffWalking"): ({}, 1.0, 6),
    newest("Taxi"): ({}, 1.0, 6),
    "Blackjack-v1": ({"successors": 11, "reward_range": (-1, 1)}, 0.5, 3),
    "CartPole-v1": ({"successors": 1, "reward_range": (0, 1)}, 0.1, 10),
    "MountainCar-v0": ({"successors": 1, "reward_range": (-1, 0)}, 0.1, 6),
    "Acrobot-v1": ({"successors": 1, "reward_range": (-1, 0)}, 0.1, 6),
}
RDDL = {
    ("SysAdmin_MDP_ippc2011", "1"): ({"successors": 2**10, "reward_range": (-0.75, 10)}, 2.0, 3),
    ("Navigation_MDP_ippc2011", "1"): ({"successors": 2, "reward_range": (-1, 0)}, 0.5, 4),
    ("GameOfLife_MDP_ippc2011", "1"): ({"successors": 2**9, "reward_range": (-1, 9)}, 2.0, 2),
    ("Elevators_MDP_ippc2011", "1"): ({"successors": 2**4, "reward_range": (-10, 0)}, 2.0, 3),
    ("SupplyChain_or", "0"): ({"actions": SHIPMENTS, "reward_range": (-1000, 1000)}, None, 5),
}


def row(name, env, promises, epsilon, horizon):
    """Plan from the start, and print how it went."""
    env.reset(seed=0)
    model = pacplan.from_gymnasium(env, **promises)
    way = "table" if isinstance(model, pacplan.TabularMDP) else "copied"
    if epsilon is None:
        planner, goal = pacplan.UCT(gamma=0.95, horizon=horizon), "-"
        plan = planner.plan(model, seed=0, budget=2000, time_limit=MINUTE)
    else:
        settings = {"epsilon": epsilon, "delta": 0.1, "gamma": 0.95, "horizon": horizon}
        goal = f"{epsilon:g}"
        if promises.get("successors") == 1:
            planner = pacplan.MDPGapE(**settings, rewards="deterministic")
            plan = planner.plan(model, seed=0, time_limit=MINUTE)
        else:
            plan = pacplan.plan(model, **settings, seed=0, time_limit=MINUTE)
    outcome = "no bounds" if plan.gap is None else f"{plan.gap:.2g}"
    outcome += ", certified" * plan.certified
    cells = (name, way, len(plan.actions), goal, horizon, f"{plan.samples:,}", f"{plan.seconds:.2f}")
    print("|", " | ".join(map(str, (*cells, outcome))), "|", flush=True)
    env.step(plan.action)


def main():
    """Print the table."""
    warnings.simplefilter("ignore")
    wanted = sys.argv[1:] or [""]
    print("| environment | way | actions | epsilon | steps | calls | seconds | gap |")
    print("|---|---|---|---|---|---|---|---|")
    for name, settings in CLASSIC.items():
        if any(part in name for part in wanted):
            row(name, gymnasium.make(name), *settings)
    if importlib.util.find_spec("rddlrepository") is None:
        return
    import pyRDDLGym

    for (name, instance), settings in RDDL.items():
        if any(part in name for part in wanted):
            row(f"{name} {instance}", pyRDDLGym.make(name, instance), *settings)


if __name__ == "__main__":
    main()
