"""The step loop: one for the planners that expand leaves instead of playing episodes from the root.

Work and calls are kept apart: `compute` goes on until it needs a call, and only `call` makes one. By
then the arrays hold what `compute` found, and `call` changes nothing before it has the outcome. So a
search that is stopped at any call, for whatever reason, can go on from exactly there.
"""

from typing import Any

from pacplan.compiled.dispatch import generic
from pacplan.compiled.jit import kernel
from pacplan.compiled.reference import refer
from pacplan.engine.calls import ABORTED, CHUNK_DONE, RULE, SPENT, halted

CALL = 12  # what `compute` returns if only a call to the model can take it further
# Steps without a call, for each episode that was asked for, before checking for Ctrl-C.
_STEPS_AN_EPISODE = 64


@generic
def make_root(search: Any, model: Any, state: int) -> int:
    """Make the root, or the first frame, unless it is there; returns CHUNK_DONE or BROKEN."""
    return CHUNK_DONE


@generic
def compute(search: Any, model: Any, ties: Any) -> int:
    """Take a step without a call; returns CHUNK_DONE, CALL, RULE, NO_ROOM or BROKEN."""
    return RULE


@generic
def call(search: Any, model: Any, most: int, rng: Any) -> int:
    """Make the call that is needed, or at most `most` calls of an expansion, and take in outcomes.

    That is an episode; returns CHUNK_DONE if it is whole, or SPENT, NO_ROOM, ABORTED or BROKEN.
    """
    return SPENT


@kernel
def work(
    search: Any, model: Any, state: int, most_episodes: int, most_calls: int, rng: Any, ties: Any
) -> int:
    """Take steps until one of the reasons in `pacplan.engine.calls` to return; as for `play`."""
    search, model = refer(search), refer(model)
    report = search.report[0]
    status = make_root(search, model, state)
    if status != CHUNK_DONE:
        return status
    last = report.episodes + most_episodes
    steps = _STEPS_AN_EPISODE * (most_episodes + 1)
    while steps > 0:
        if halted(search):
            report.refused = 1
            return ABORTED
        status = compute(search, model, ties)
        if status == CALL:
            if report.episodes >= last:
                return CHUNK_DONE
            if report.calls >= most_calls:
                return SPENT
            status = call(search, model, most_calls - report.calls, rng)
            report.episodes += status == CHUNK_DONE
        else:
            steps -= 1
        if status != CHUNK_DONE:
            return status
    return CHUNK_DONE
