"""Does a model do what it promises? Random episodes, with the checks that every search makes."""

import copy
from contextlib import closing, suppress
from typing import Any

import numpy as np

from pacplan.compiled.streams import streams
from pacplan.core import checks
from pacplan.core.notes import shown
from pacplan.engine.query import Query
from pacplan.look import Caller
from pacplan.models.consistency import Preflight
from pacplan.models.protocol import BrokenPromiseError, Model
from pacplan.models.protocol import check_model as check_kind
from pacplan.models.states import advice
from pacplan.testing.conformance import ConformanceError

# States of which a copy is compared with the original.
_COPIED = 100


def check_model(
    model: Model, state: Any = None, *, episodes: int = 100, steps: int = 50, seed: int = 0
) -> Preflight:
    """Play random episodes, and check that the model keeps its promises.

    Seeds must reproduce; rewards lie in `reward_range`; no pair has more than `successors` successors;
    states are hashable, equal to their copies, and never changed; `actions(state)` gives the same
    answer each time; and episodes end only if `may_end` allows it. An environment of Gymnasium is
    examined by its own `check` as well. Rare successors and rewards take many episodes to see.

    Args:
        model: the model.
        state: where episodes begin; by default the model's own initial state.
        episodes: how many.
        steps: most steps of an episode.
        seed: of actions and model.

    Returns:
        What was seen, to be printed: draws, largest number of successors, rewards, and notes.

    Raises:
        ConformanceError: names the broken promise, with state, action and what to do.
    """
    check_kind(model)
    for name, number, least in (("episodes", episodes, 1), ("steps", steps, 1), ("seed", seed, 0)):
        checks.integer(name, number, least=least)
    start = model.initial_state() if state is None else state
    steps = steps if model.steps is None else min(steps, model.steps)
    broken = f"{model!r} breaks its promises: "
    try:
        (draws, most), (again, _) = (_played(model, start, seed, steps, episodes) for _ in range(2))
        for one, two in zip(draws, again, strict=False):
            if one != two:
                raise BrokenPromiseError(
                    f"with the same seed, state {shown(one[0])}, action {shown(one[1])} had another "
                    "outcome the second time; draw all randomness from rng, and keep nothing between "
                    "calls"
                )
    except Exception as error:
        kind = "" if isinstance(error, BrokenPromiseError) else f"{type(error).__name__}: "
        notes = [f" ({note})" for note in getattr(error, "__notes__", ())]
        raise ConformanceError("".join([broken, kind, str(error), *notes])) from error
    said = []
    if model.may_end and not any(ended for _, _, _, ended, _ in draws):
        said.append(
            f"none of {episodes} episodes ended within {steps} steps; may_end=False, if none does, "
            "makes bounds tighter if reward_range does not contain 0"
        )
    if model.successors is not None and most < model.successors:
        said.append(
            f"successors={model.successors}, at most {most} were seen; fewer need fewer calls, "
            "if it is certain that there are no more"
        )
    if hasattr(model, "check"):
        found: Preflight = model.check(seed=seed)
        if found.problems:
            raise ConformanceError(broken + "\n- ".join(found.problems))
        said += found.notes
    rewards = [reward for _, _, reward, _, _ in draws]
    return Preflight(len(draws), most, (min(rewards), max(rewards)), (), tuple(said))


def _played(
    model: Model, start: Any, seed: int, steps: int, episodes: int
) -> tuple[list[tuple[Any, ...]], int]:
    """Play random episodes.

    Returns:
        Of every call state, action, reward, whether the episode has ended, and the next state; and the
        most successors of a pair.
    """
    root, draws, most = np.random.SeedSequence(seed), [], 1
    (ties,) = streams(root, 1)
    with closing(model.open(root)) as session:
        caller = Caller(Query(model, start, root), session, steps)

        def state(key: int) -> Any:
            return key if session.states is None else session.states[key]

        for _ in range(episodes):
            session.agree(start, model.actions(start))
            at, ended = caller.root_state, False
            for h in range(steps):
                action = int(ties.random() * caller.offered(at, h))
                after, reward = caller.call(at, action, h)
                most = max(most, len(caller.after[caller.pair(at, action, h)]))
                ended = after is None
                outcome = None if after is None else state(after)
                draws.append((state(at), session.label(at, action), reward, ended, outcome))
                if after is None:
                    break
                at = after
            if model.two_player and not ended:
                raise BrokenPromiseError(
                    f"a game was not over after {steps} moves; let it end by `terminated`, or pass a "
                    "larger steps="
                )
        session.verify()
        for known in (session.states or [])[:_COPIED]:
            twin = known
            with suppress(Exception):  # What cannot be copied cannot be compared with its copy.
                twin = copy.deepcopy(known)
            if twin != known or hash(twin) != hash(known):
                raise BrokenPromiseError(
                    f"a copy of state {shown(known)} is not equal to it; {advice(known)}"
                )
    return draws, most
