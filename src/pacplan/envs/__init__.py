"""Problems to plan in."""

from pacplan.envs.game_tree import game_tree
from pacplan.envs.garnet import garnet

__all__ = ["game_tree", "garnet"]
