"""Every planner of the package, made so that it suits a small problem, and that problem."""

import numpy as np

import pacplan

NOISY = pacplan.envs.garnet(states=30, actions=3, seed=2, noise="bernoulli")
FIXED = pacplan.envs.garnet(states=30, actions=3, successors=1, seed=2)
GAME = pacplan.envs.game_tree(np.random.default_rng(2).random((3, 3, 3)).tolist())
# One way to make each planner, so that it needs a budget to stop and fits small problems.
SETTINGS = {
    "bracket": {"epsilon": 0.0, "delta": 0.1, "gamma": 0.7, "horizon": 5},
    "canopy": {"epsilon": 0.0, "delta": 0.1, "gamma": 0.7, "horizon": 5},
    "atlas": {"epsilon": 0.0, "delta": 0.1, "gamma": 0.7, "horizon": 5},
    "mdp-gape": {"epsilon": 0.0, "delta": 0.1, "gamma": 0.7, "horizon": 5},
    "sparse-sampling": {"gamma": 0.7, "horizon": 2, "width": 3},
    "uct": {"gamma": 0.7, "horizon": 8},  # Deep enough for a tree that outgrows its first room.
    "anytime": {"gamma": 0.7, "horizon": 8},
    "brue": {"gamma": 0.7, "horizon": 5},
    "olop": {"gamma": 0.7, "horizon": 5},
    "kl-olop": {"gamma": 0.7, "horizon": 5},
    "opd": {"gamma": 0.7, "rewards": "deterministic"},
    "op-mdp": {"gamma": 0.7},
    "stop": {"epsilon": 0.01, "delta": 0.1, "gamma": 0.3},
    "trailblazer": {"epsilon": 0.5, "delta": 0.1, "gamma": 0.3},
    "smooth-cruiser": {"epsilon": 0.9, "delta": 0.1, "gamma": 0.3, "temperature": 0.05},
    "ugape-mcts": {"epsilon": 0.0, "delta": 0.1},
}
DETERMINISTIC = ("opd",)
# It reads tables, and samples nothing.
KNOWN = ("op-mdp",)
# What it costs is known beforehand, and it ends by itself.
FIXED_COST = ("sparse-sampling",)
# They stop by themselves, however late, so they need no budget.
UNLIMITED = ("stop", "trailblazer", "smooth-cruiser", "ugape-mcts")
GAMES = ("ugape-mcts",)
# ValueIteration solves small problems at once, whatever the budget; it has tests of its own.
NAMES = [name for name in pacplan.planners if name != "value-iteration"]
SAMPLING = [name for name in NAMES if name not in KNOWN]


def problem(name):
    """A problem that the planner can handle."""
    if name in GAMES:
        return GAME
    return FIXED if name in DETERMINISTIC else NOISY


def simulator(step, name):
    """A Python model of it, over another step."""
    game = name in GAMES
    return pacplan.Simulator(step, actions=3, successors=problem(name).successors, two_player=game)


def make(name, **options):
    return pacplan.planners[name](**(SETTINGS[name] | options))


def answer(plan):
    """A plan without what may differ between equal runs."""
    record = plan.to_dict()
    del record["seconds"], record["planner"], record["memory"], record["origin"]
    return record
