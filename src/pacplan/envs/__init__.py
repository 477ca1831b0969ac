"""Problems to plan in."""

from pacplan.envs.garnet import garnet

__all__ = ["garnet"]
