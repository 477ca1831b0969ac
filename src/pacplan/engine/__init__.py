"""The search tree and the driver that runs a search over it."""

from pacplan.engine.driver import Snapshot
from pacplan.engine.search_tree import SearchTree

__all__ = ["SearchTree", "Snapshot"]
