"""Why a search was not certified: what it has measured, put into a `Diagnosis`."""

from collections.abc import Iterator
from inspect import signature
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from pacplan.core.keys import place
from pacplan.core.words import at_most, estimated
from pacplan.diagnosis import Advice, Diagnosis, outlook
from pacplan.engine.driver import Snapshot
from pacplan.engine.query import Query
from pacplan.engine.tree import NONE, SearchTree
from pacplan.engine.values import step_width
from pacplan.models.protocol import Model
from pacplan.views.evidence import challenger

# Records of a tree that are looked at.
_LOOKED_AT = 100_000
# Nodes, all of different states, from which on it is said that no state recurs.
_NONE_RECUR = 8
# Nodes for every state and step from which on merging them saves calls; with fewer it may cost some.
_RECURRENCE = 4
# Steps at which a state is met, on average, from which on evidence for all steps is worth its price.
_STEPS_A_STATE = 5
# Pairs seen twice with one successor, before it is said that there may be no more.
_PAIRS = 20
# Asked for again, it may take a few calls more: searches depend on epsilon.
_ENOUGH = "already guaranteed: if that is enough, take the action"
# Pieces of advice that a person reads.
_MOST_ADVICE = 4


def vacuity(planner: Any, search: Any, snapshot: Snapshot) -> str:
    """What a certificate that holds for every action has to say about itself; else nothing."""
    assert snapshot.lower is not None and snapshot.upper is not None
    target = search.target
    worst = float(snapshot.upper.max() - snapshot.lower.min())
    if target is None or worst > target or len(snapshot.actions) == 1:
        return ""
    anyway = ", because values differ by no more" if snapshot.samples == 0 else ""
    return (
        " At this epsilon the choice does not matter: every action is within "
        f"{at_most(max(0.0, worst))} of optimal{anyway}."
    )


def diagnosis_of(
    planner: Any,
    query: Query,
    search: Any,
    snapshot: Snapshot,
    values: NDArray[np.float64],
    ruled_out: NDArray[np.bool_],
) -> Diagnosis | None:
    """Why an accuracy was not reached; None if none was asked for, or if it was reached after all.

    Args:
        planner: who plans.
        query: what it was asked.
        search: its search, with `curve`, `target`, `tree` and `horizon`.
        snapshot: how it stands.
        values: estimates of the root's actions, NaN for those never seen.
        ruled_out: which of them are not the best.
    """
    asked = getattr(planner, "epsilon", None)
    if not asked or snapshot.gap is None or snapshot.lower is None or snapshot.upper is None:
        return None
    goal = getattr(planner, "goal", "action")
    by_action = goal == "action"
    # What the horizon cuts off may be taken from epsilon beforehand.
    taken = asked - search.target if by_action and search.target is not None else 0.0
    half = 0.5 * float(snapshot.upper.max() - snapshot.lower.max())
    gap = snapshot.gap if by_action else half
    if gap + taken <= asked:
        return None
    curve = search.curve()
    points = np.column_stack([curve.calls, curve.gaps if by_action else curve.halves])
    now = np.array([[float(snapshot.samples), gap]])
    apart = _apart(snapshot, values) if by_action else 0.0
    needed, words = outlook(np.concatenate([points, now]), asked - taken, apart)
    span = _span(planner, query.model, search.horizon)
    seen = _look(search.tree, search.horizon)
    causes = list(_causes(snapshot, values, ruled_out, gap, span)) if by_action else []
    if taken > 0.0:
        causes.append(f"the horizon cuts off {at_most(taken)} of epsilon")
    causes += _recurrence(planner, seen)
    return Diagnosis(
        asked=asked,
        reached=gap + taken,
        goal=goal,
        calls=snapshot.samples,
        causes=tuple(causes),
        calls_needed=needed,
        outlook=words,
        advice=(
            *list(_advice(planner, query.model, search.horizon, span, seen))[: _MOST_ADVICE - 1],
            Advice("epsilon", float(at_most(gap + taken)), _ENOUGH),
        ),
    )


def _span(planner: Any, model: Model, horizon: int) -> float:
    """By how much values can differ before anything is known."""
    low, high = model.reward_range
    if model.two_player:
        return high - low
    width, gamma = step_width(model.reward_range, model.may_end), float(planner.gamma)
    if gamma == 1.0:
        return width * horizon
    endless = getattr(planner, "horizon", None) is None
    return width * (1.0 - (0.0 if endless else gamma**horizon)) / (1.0 - gamma)


def _rival(snapshot: Snapshot) -> tuple[int, int]:
    """Indices of the action and of the other one with the largest upper bound."""
    assert snapshot.upper is not None
    best = place(snapshot.action, snapshot.actions)
    rival = challenger(snapshot.upper, best)
    assert rival is not None  # A gap to one's own is none, so there is nothing to explain.
    return best, rival


def _apart(snapshot: Snapshot, values: NDArray[np.float64]) -> float:
    """By how much the action seems to be better than its strongest rival."""
    best, rival = _rival(snapshot)
    return max(0.0, float(np.nan_to_num(values[best] - values[rival])))


def _causes(
    snapshot: Snapshot,
    values: NDArray[np.float64],
    ruled_out: NDArray[np.bool_],
    gap: float,
    span: float,
) -> tuple[str, ...]:
    """What keeps the gap of an action b open: U(c) and L(b), c being its strongest rival."""
    assert snapshot.lower is not None and snapshot.upper is not None
    best, rival = _rival(snapshot)
    others = np.delete(ruled_out, best)
    found = []
    if gap >= 0.9 * span:
        found.append(f"almost nothing is ruled out yet, because values can differ by {at_most(span)}")
    elif not np.isnan(values[[best, rival]]).any():
        above = float(snapshot.upper[rival] - values[rival])
        below = float(values[best] - snapshot.lower[best])
        up, down = estimated(above), estimated(below)
        loose = f"the upper bound of action {snapshot.actions[rival]!r} is {up} above its estimate"
        low = f"the lower bound of action {snapshot.action!r} is {down} below its estimate"
        found += [loose] * (above >= 0.5 * below) + [low] * (below >= 0.5 * above)
        apart = _apart(snapshot, values)
        if apart < 0.25 * gap:
            found.append(f"their estimates differ by only {estimated(apart)}")
    found.append(f"{(~others).sum()} of {len(others)} other actions may still be the best")
    return tuple(found)


class _Seen(NamedTuple):
    """What was seen in a part of a tree."""

    nodes: int
    states: int  # different ones
    places: int  # different ones at each step; at most so many, if the search does not note steps
    single: int  # pairs seen twice or more, always with the same successor
    several: int  # pairs with several


def _look(tree: SearchTree, horizon: int) -> _Seen:
    """Look at the first records of a tree: do states recur, do pairs have one successor?"""
    nodes, pairs = tree.nodes[:_LOOKED_AT], tree.pairs[:_LOOKED_AT]
    alive = nodes[nodes["actions"] > 0]
    numbers, number = np.unique(alive["state"], return_inverse=True)
    states, places = len(numbers), len(numbers) * horizon
    if "depth" in (nodes.dtype.names or ()):
        places = len(np.unique(number * (horizon + 1) + alive["depth"]))
    outcomes = pairs["child"][(pairs["n"] > 1) & (pairs["child"] != NONE)]
    several = int((tree.nodes["sibling"][outcomes] != NONE).sum())
    return _Seen(len(alive), states, places, len(outcomes) - several, several)


def _recurrence(planner: Any, seen: _Seen) -> Iterator[str]:
    """What a planner that can merge equal states should know of them, unless it is advised to."""
    merge = getattr(planner, "merge", None)
    if merge == "tree" and seen.nodes == seen.states >= _NONE_RECUR:
        yield "no state was reached by two paths"
    elif merge in ("depth", "stationary"):
        yield f"{seen.states:,} distinct states were visited"


def _advice(planner: Any, model: Model, horizon: int, span: float, seen: _Seen) -> Iterator[Advice]:
    """What to try, the most promising first."""
    offered = signature(type(planner)).parameters
    published = model.known
    if published and hasattr(planner, "delta"):
        yield Advice("planner", "value-iteration", "it solves the model's table without sampling")
    merge = getattr(planner, "merge", None)
    if merge in ("tree", "depth") and _RECURRENCE * seen.places <= seen.nodes:
        recur = f"states recur: {seen.states:,} distinct ones in {seen.nodes:,} nodes"
        pools = "stationary" in get_args(offered["merge"].annotation) and model.stationary
        if pools and _STEPS_A_STATE * seen.states <= seen.places:
            yield Advice("merge", "stationary", recur)
        elif merge == "tree":
            yield Advice("merge", "depth", recur)
    # A planner without delta takes nothing to be random as it is.
    learns = hasattr(planner, "delta") and not published
    if (
        learns
        and getattr(planner, "transitions", None) == "unknown"
        and model.successors != 1
        and not model.known
        and seen.several == 0
        and seen.single >= _PAIRS
    ):
        why = f"if true: {seen.single:,} pairs showed no second successor"
        yield Advice("transitions", "deterministic", why)
    if learns and getattr(planner, "rewards", None) == "unknown" and not model.random_rewards:
        why = (
            "if a state and action always pay the same; if you can, return the expected reward of a "
            "step instead of a drawn one"
        )
        if model.successors == 1 or getattr(planner, "transitions", None) == "deterministic":
            yield Advice("planner", "opd", f"{why}; then say rewards='deterministic'")
        else:
            yield Advice("rewards", "deterministic", why)
    known = (getattr(planner, name, None) for name in ("value_range", "value_bounds"))
    if "value_bounds" in offered and not any(known) and span > 10.0 * planner.epsilon:
        why = f"if you know that values differ by less than {at_most(span)}"
        yield Advice("value_range" if "value_range" in offered else "value_bounds", None, why)
    if "horizon" in offered and "horizon" not in planner.settings and planner.horizon is not None:
        yield Advice("horizon", None, f"fewer than {horizon} steps, if later ones matter little")
