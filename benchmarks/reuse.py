"""Agents that keep the tree of the state reached, against agents that plan anew: calls to the model.

    python3 dev.py python benchmarks/reuse.py            three minutes
    python3 dev.py python benchmarks/reuse.py --quick    fewer episodes

Every agent makes up to ten decisions in a world that is as the model says. Both kinds have the same
seeds and meet the same world, so an episode is the same as long as they decide alike. Calls are counted
per decision, as the lengths of episodes may differ.
"""

import argparse

import numpy as np
from rich.console import Console
from rich.table import Table

import pacplan

DECISIONS = 10


def mdp_gape(**settings):
    return pacplan.MDPGapE(**({"delta": 0.1} | settings))


KNOWN = {"rewards": "known", "transitions": "known"}
PROBLEMS = {
    "garnet, ε = 0.5": (pacplan.envs.garnet(), mdp_gape(epsilon=0.5, gamma=0.7)),
    "riverswim, H = 5, ε = 0.5": (
        pacplan.envs.riverswim(),
        mdp_gape(epsilon=0.5, gamma=0.8, horizon=5),
    ),
    "sailing, H = 3, ε = 2": (
        pacplan.envs.sailing(),
        mdp_gape(epsilon=2.0, gamma=0.9, horizon=3),
    ),
    "gridworld, H = 7, ε = 0.1, tables known": (
        pacplan.envs.gridworld(),
        mdp_gape(epsilon=0.1, gamma=0.9, horizon=7, **KNOWN),
    ),
}


def episode(agent, world, seed):
    rng = np.random.default_rng([1, seed])
    state, over = world.initial_state(), False
    while not over and len(agent.history) < DECISIONS:
        state, _, over = world.step(state, agent.act(state), rng)
    return agent.history


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer episodes")
    episodes = 5 if parser.parse_args().quick else 40
    table = Table("problem", "spread", "anew", "reuse", "ratio", "trees kept", box=None)
    for problem, (model, planner) in PROBLEMS.items():
        for spread in ("none", "union"):
            calls, kept = {}, 0.0
            for reuse in (False, True):
                settings = {"reuse": reuse, "spread": spread}
                agents = [pacplan.Agent(planner, model, **settings, seed=i) for i in range(episodes)]
                histories = [episode(agent, model, i) for i, agent in enumerate(agents)]
                decisions = [decision for history in histories for decision in history]
                calls[reuse] = np.mean([decision.plan.samples for decision in decisions])
                kept = np.mean([decision.age > 0 for decision in decisions])
            table.add_row(
                problem,
                spread,
                f"{calls[False]:,.0f}",
                f"{calls[True]:,.0f}",
                f"{calls[True] / calls[False]:.2f}",
                f"{kept:.0%}",
            )
    Console(width=110, highlight=False).print(table)


if __name__ == "__main__":
    main()
