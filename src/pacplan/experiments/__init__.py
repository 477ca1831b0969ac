"""Sweeps of planners over problems, and the paper's experiments as such sweeps."""

from pacplan.experiments.paper import Reproduction
from pacplan.experiments.runs import Record, read, run
from pacplan.experiments.summary import Group, groups
from pacplan.experiments.sweep import PlannerSpec, ProblemSpec, Sweep
from pacplan.experiments.sweep import read as read_sweep
from pacplan.parallel.pools import InProcess, dask_cluster, process_pool

__all__ = [
    "Group",
    "InProcess",
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
