"""Problems to plan in. Each is a function that makes a model, and takes its settings."""

from pacplan.envs.game_tree import game_tree
from pacplan.envs.garnet import garnet
from pacplan.envs.gridworld import gridworld
from pacplan.envs.inventory import inventory
from pacplan.envs.queues import queues
from pacplan.envs.riverswim import riverswim
from pacplan.envs.sailing import sailing

__all__ = ["game_tree", "garnet", "gridworld", "inventory", "queues", "riverswim", "sailing"]
