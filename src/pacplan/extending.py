"""What your own planner is made of: these names are stable, and `docs/new_planner.md` shows how.

What each is for:

    what it is      Planner, Query, Limits, and how it is known: `pacplan.register`
    its search      KernelSearch, or MeanSearch if estimates are mean returns; the types of its records
    its episodes    `kernel_arrays` declares what they work on; `select`, ... get methods for that
    in kernels      parts that methods call, and `inlined` and `kernel` for your own
    its plan        estimates_plan, or bounded_plan if there are bounds
"""

from pacplan.algorithms.common.base import Planner
from pacplan.algorithms.common.horizons import check_gamma_and_horizon, check_steps, horizon_for
from pacplan.algorithms.common.plans import best_estimate, bounded_plan, estimates_plan
from pacplan.algorithms.means import (
    PAIR,
    MeanSearch,
    best_bound,
    best_mean,
    check_anytime,
    count_return,
)
from pacplan.compiled.jit import inlined, kernel
from pacplan.engine.calls import (
    BROKEN,
    CHUNK_DONE,
    STEP,
    STEP_FIELDS,
    call_model,
    count_actions,
    follow,
    halted,
)
from pacplan.engine.driver import Limits, Snapshot
from pacplan.engine.episodes import (
    BREAK_OFF,
    CONCLUDE,
    LEAVE,
    acting_node,
    backup,
    begin_episode,
    finished,
    has_room,
    known_child,
    make_root,
    select,
    transition,
    update,
)
from pacplan.engine.query import Query
from pacplan.engine.search import KernelSearch, kernel_arrays
from pacplan.engine.tree import (
    LINKS,
    NODE,
    NODE_FIELDS,
    NONE,
    Evidence,
    TreeArrays,
    add_node,
    add_pair,
    find_child,
    link_child,
    untried_action,
)
from pacplan.models.protocol import Model, Session
from pacplan.result import Plan

__all__ = [
    "BREAK_OFF",
    "BROKEN",
    "CHUNK_DONE",
    "CONCLUDE",
    "LEAVE",
    "LINKS",
    "NODE",
    "NODE_FIELDS",
    "NONE",
    "PAIR",
    "STEP",
    "STEP_FIELDS",
    "Evidence",
    "KernelSearch",
    "Limits",
    "MeanSearch",
    "Model",
    "Plan",
    "Planner",
    "Query",
    "Session",
    "Snapshot",
    "TreeArrays",
    "acting_node",
    "add_node",
    "add_pair",
    "backup",
    "begin_episode",
    "best_bound",
    "best_estimate",
    "best_mean",
    "bounded_plan",
    "call_model",
    "check_anytime",
    "check_gamma_and_horizon",
    "check_steps",
    "count_actions",
    "count_return",
    "estimates_plan",
    "find_child",
    "finished",
    "follow",
    "halted",
    "has_room",
    "horizon_for",
    "inlined",
    "kernel",
    "kernel_arrays",
    "known_child",
    "link_child",
    "make_root",
    "select",
    "transition",
    "untried_action",
    "update",
]
