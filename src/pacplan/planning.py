"""One call for a decision: the planner is chosen for the model, and the plan says which and why."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pacplan.algorithms import Bracket, Planner, UGapEMCTS
from pacplan.engine.driver import Callback
from pacplan.models.protocol import Model, check_model, facts
from pacplan.result import Plan


def plan(
    model: Model,
    state: Any = None,
    *,
    epsilon: float,
    delta: float,
    gamma: float | None = None,
    seed: int | np.random.SeedSequence | None = None,
    budget: int | None = None,
    time_limit: float | None = None,
    progress: bool = False,
    callback: Callback | None = None,
    memory_limit: int | None = None,
    on_interrupt: Literal["return", "raise"] = "return",
    checkpoint: str | Path | None = None,
    every: float = 60.0,
    **settings: Any,
) -> Plan:
    """Decide what to do in a state, with a proof and few calls to the model.

    Uses `Bracket`, the planner with a guarantee that needs the fewest calls, and `UGapEMCTS` for games
    of two players. If the model says how many states there are, as a `TabularMDP` does, equal ones are
    merged (`merge="depth"`). `plan.guarantee` says which planner it was, and why.

    Args:
        model: the problem.
        state: where to plan from; by default the model's own initial state.
        epsilon: how far from optimal the action may be, in the model's reward units.
        delta: probability with which the guarantee may fail.
        gamma: discount; games have none.
        seed: the same seed gives the same plan; None draws a fresh one.
        budget: most calls to the model.
        time_limit: most seconds.
        progress: show how the search stands, on the error stream.
        callback: called with a `Snapshot` now and then; a true result stops the search.
        memory_limit: most bytes for the records of the search.
        on_interrupt: what Ctrl-C does, as for `Planner.plan`.
        checkpoint: a file that receives, now and then, what is needed to go on; `plan.planner` names
            the planner to `resume` with.
        every: seconds between two checkpoints.
        settings: further settings of the planner, such as `horizon=` or `rewards="deterministic"`.

    Raises:
        ValueError: a setting out of range, or a problem that cannot be handled.
        TypeError: a setting of the wrong type, or one that the planner does not have.
    """
    check_model(model)
    planner: Planner
    if model.two_player:
        if gamma is not None:
            raise ValueError("a game of two players has no discount: leave gamma out")
        planner = UGapEMCTS(epsilon=epsilon, delta=delta, **settings)
        why = "which is for games of two players"
    else:
        if gamma is None:
            raise TypeError("plan() needs gamma, the discount: pass gamma=1 and a horizon= for none")
        why = "the planner with a proof that needs the fewest calls"
        if "merge" not in settings and facts(model).states is not None:
            settings["merge"] = "depth"
            why += ", with equal states merged, since the model says how many there are"
        planner = Bracket(epsilon=epsilon, delta=delta, gamma=gamma, **settings)
    found = planner.plan(
        model,
        state,
        seed=seed,
        budget=budget,
        time_limit=time_limit,
        progress=progress,
        callback=callback,
        memory_limit=memory_limit,
        on_interrupt=on_interrupt,
        checkpoint=checkpoint,
        every=every,
    )
    chosen = f"(Planned by {type(planner).__name__}, {why}.)"
    return replace(found, guarantee=f"{found.guarantee} {chosen}")
