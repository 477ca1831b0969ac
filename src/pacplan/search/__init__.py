"""The search tree and the driver that runs a search over it."""

from pacplan.search.driver import Snapshot
from pacplan.search.tree import SearchTree

__all__ = ["SearchTree", "Snapshot"]
