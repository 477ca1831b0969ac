"""Sweeps of planners over problems, and the paper's experiments as such sweeps."""

from pacplan.experiments.paper import Reproduction
from pacplan.experiments.records import Group, Record, groups
from pacplan.experiments.sweep import PlannerSpec, ProblemSpec, Sweep, read, read_sweep, run
from pacplan.parallel.pools import dask_cluster, process_pool

__all__ = [
    "Group",
    "PlannerSpec",
    "ProblemSpec",
    "Record",
    "Reproduction",
    "Sweep",
    "dask_cluster",
    "groups",
    "process_pool",
    "read",
    "read_sweep",
    "run",
]
