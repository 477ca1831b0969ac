"""What your own planner is made of: these names are stable, and `docs/new_planner.md` shows how.

What each is for:

    what it is      Planner, Query, Limits, and how it is known: `pacplan.register`
    its search      KernelSearch, or MeanSearch if estimates are mean returns; the types of its records
    its episodes    `kernel_arrays` declares what they work on; `select`, ... get methods for that
    in kernels      parts that methods call, and `inlined` and `kernel` for your own
    its plan        its search has `values`, and a `snapshot`; the planner's method `guarantee`
"""

from pacplan.algorithms.common.base import Planner as Planner
from pacplan.algorithms.common.horizons import check_gamma_and_horizon as check_gamma_and_horizon
from pacplan.algorithms.common.horizons import check_steps as check_steps
from pacplan.algorithms.common.horizons import horizon_for as horizon_for
from pacplan.algorithms.common.plans import best_estimate as best_estimate
from pacplan.algorithms.means import PAIR as PAIR
from pacplan.algorithms.means import MeanSearch as MeanSearch
from pacplan.algorithms.means import best_bound as best_bound
from pacplan.algorithms.means import check_anytime as check_anytime
from pacplan.algorithms.means import count_return as count_return
from pacplan.compiled.jit import inlined as inlined
from pacplan.compiled.jit import kernel as kernel
from pacplan.engine.calls import BROKEN as BROKEN
from pacplan.engine.calls import CHUNK_DONE as CHUNK_DONE
from pacplan.engine.calls import call_model as call_model
from pacplan.engine.calls import count_actions as count_actions
from pacplan.engine.calls import follow as follow
from pacplan.engine.calls import halted as halted
from pacplan.engine.driver import Limits as Limits
from pacplan.engine.driver import Snapshot as Snapshot
from pacplan.engine.episodes import BREAK_OFF as BREAK_OFF
from pacplan.engine.episodes import CONCLUDE as CONCLUDE
from pacplan.engine.episodes import LEAVE as LEAVE
from pacplan.engine.episodes import acting_node as acting_node
from pacplan.engine.episodes import backup as backup
from pacplan.engine.episodes import begin_episode as begin_episode
from pacplan.engine.episodes import finished as finished
from pacplan.engine.episodes import has_room as has_room
from pacplan.engine.episodes import known_child as known_child
from pacplan.engine.episodes import make_root as make_root
from pacplan.engine.episodes import select as select
from pacplan.engine.episodes import transition as transition
from pacplan.engine.episodes import update as update
from pacplan.engine.query import Query as Query
from pacplan.engine.search import KernelSearch as KernelSearch
from pacplan.engine.search import kernel_arrays as kernel_arrays
from pacplan.engine.search_tree import Evidence as Evidence
from pacplan.engine.tree import LINKS as LINKS
from pacplan.engine.tree import NODE as NODE
from pacplan.engine.tree import NODE_FIELDS as NODE_FIELDS
from pacplan.engine.tree import NONE as NONE
from pacplan.engine.tree import TreeArrays as TreeArrays
from pacplan.engine.tree import add_node as add_node
from pacplan.engine.tree import add_pair as add_pair
from pacplan.engine.tree import find_child as find_child
from pacplan.engine.tree import link_child as link_child
from pacplan.engine.tree import set_bounds as set_bounds
from pacplan.engine.tree import untried_action as untried_action
from pacplan.models.protocol import Model as Model
from pacplan.models.protocol import Session as Session
from pacplan.result import Plan as Plan

__all__ = sorted(name for name in globals() if not name.startswith("_"))
