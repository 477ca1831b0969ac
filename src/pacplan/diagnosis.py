"""Diagnosis: why a plan was not certified, what it would take, and what to try."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pacplan.core.keys import place
from pacplan.core.words import at_most, estimated, exactly
from pacplan.engine.driver import Snapshot
from pacplan.engine.tree import NONE
from pacplan.engine.values import discounted_steps, step_width
from pacplan.models.protocol import Model
from pacplan.views.evidence import challenger

# A curve is judged by its points from this part of the calls on, and by no fewer points than that.
_RECENT = 1.0 / 8.0
_LEAST_POINTS = 4
# A gap that falls with a lower power of the calls has come to rest.
_FLAT = 0.1
# Calls that have to grow by a larger factor, as a logarithm, lie too far ahead, or out of sight.
_FAR = math.log(50.0)
_HOPELESS = math.log(1e6)
# Records of a tree that are looked at.
_LOOKED_AT = 100_000
# Nodes for every state and step from which on merging them saves calls; with fewer it may cost some.
_RECURRENCE = 4
# Pairs seen twice with one successor, before it is said that there may be no more.
_PAIRS = 20
# Asked for again, it may take a few calls more: searches depend on epsilon.
_ENOUGH = "already guaranteed: if that is enough, take the action"
# Pieces of advice that a person reads.
_MOST_ADVICE = 4


@dataclass(frozen=True)
class Advice:
    """Something to try.

    Attributes:
        setting: the setting of the planner to change.
        value: its new value; None if only you know it.
        why: when or why it helps.
    """

    setting: str
    value: str | float | None
    why: str

    def __str__(self) -> str:
        value = f'"{self.value}"' if isinstance(self.value, str) else "..."
        if isinstance(self.value, float):
            value = exactly(self.value)
        return f"{self.setting}={value} ({self.why})"


@dataclass(frozen=True)
class Diagnosis:
    """Why a plan is not certified, as the search measured it.

    Attributes:
        asked: the requested accuracy.
        reached: the proven accuracy.
        goal: "action" or "value", what it is the accuracy of.
        samples: calls to the model so far.
        causes: clauses: what the gap consists of.
        samples_needed: total calls at this rate, a rough guess; None if unknown.
        outlook: the same in words.
        advice: what to try.
    """

    asked: float
    reached: float
    goal: str
    samples: int
    causes: tuple[str, ...]
    samples_needed: int | None
    outlook: str
    advice: tuple[Advice, ...]

    def explanation(self) -> list[str]:
        """Causes, outlook and advice, a sentence each."""
        lines = [f"Why: {'; '.join(self.causes)}."] if self.causes else []
        return [*lines, f"Outlook: {self.outlook}.", f"Try: {'; '.join(map(str, self.advice))}."]

    def __str__(self) -> str:
        known = f"the action is only known to be within {at_most(self.reached)} of optimal"
        if self.goal == "value":
            known = f"the value is only known within {at_most(self.reached)}"
        asked = f"Not certified: you asked for epsilon = {exactly(self.asked)}, but {known}."
        return "\n".join([asked, *self.explanation()])


def outlook(points: NDArray[np.float64], asked: float, apart: float = 0.0) -> tuple[int | None, str]:
    """The calls it takes to reach an accuracy, or None, and that in words.

    The gap tends to -apart. Fits log(gap + apart) = c - s log(calls) to the later points of a curve:
    at this rate it takes calls ((gap + apart) / (asked + apart))^(1/s) in all.

    Args:
        points: rows of calls and gap, in the order of time; the last is now.
        asked: the gap to reach, more than 0.
        apart: by how much the action seems to be better than its rival.
    """
    now, gap = points[-1] + (0.0, apart)
    recent = points[(points[:, 0] >= _RECENT * now) & (points[:, 1] > -apart)]
    if len(recent) < _LEAST_POINTS or recent[0, 0] * 2.0 > now:
        return None, "too few calls to tell; raise the budget"
    if len(np.unique(points[:, 1])) == 1:
        return None, "nothing is proven yet; raise the budget"
    slope = float(np.polyfit(np.log(recent[:, 0]), np.log(recent[:, 1] + apart), 1)[0])
    growth = math.log(gap / (asked + apart)) / -slope if slope < -_FLAT else math.inf
    if growth > _HOPELESS:
        return None, "the gap has stopped shrinking; this run is unlikely to finish"
    needed = _rounded(now * math.exp(growth))
    far = "too far ahead to trust; run it longer for a better guess"
    hedge = far if growth > _FAR else "a rough guess"
    return needed, f"at this rate about {needed:,} calls in all, {hedge}"


def _rounded(calls: float) -> int:
    """Up to two digits, so that it is no less than the calls already made."""
    unit = 10.0 ** (math.floor(math.log10(calls)) - 1)
    return round(math.ceil(calls / unit) * unit)


def vacuity(search: Any, snapshot: Snapshot) -> str:
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
    model: Model,
    search: Any,
    snapshot: Snapshot,
    values: NDArray[np.float64],
    ruled_out: NDArray[np.bool_],
) -> Diagnosis | None:
    """Why an accuracy was not reached; None if none was asked for, or if it was reached after all.

    Args:
        planner: who plans.
        model: the problem.
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
    # By how much values can differ before anything is known.
    span = model.reward_range[1] - model.reward_range[0]
    if not model.two_player:
        known = getattr(planner, "horizon", None) is not None
        steps = discounted_steps(float(planner.gamma), search.horizon if known else None)
        span = step_width(model.reward_range, model.may_end) * steps
    apart, causes = 0.0, list[str]()
    if by_action:
        apart, causes = _causes(snapshot, values, ruled_out, gap, span)
    if taken > 0.0:
        causes.append(f"the horizon cuts off {at_most(taken)} of epsilon")
    calls, gaps, lower, upper = search.curve()
    points = np.column_stack([calls, gaps if by_action else 0.5 * (upper.max(1) - lower.max(1))])
    now = np.array([[float(snapshot.samples), gap]])
    needed, words = outlook(np.concatenate([points, now]), asked - taken, apart)
    if (planned := getattr(search, "needed", None)) is not None:
        needed = _rounded(max(planned, 1.01 * snapshot.samples))
        words = f"the proof that is planned now takes about {needed:,} calls in all"
    advice = list(_advice(planner, model, search, span))[: _MOST_ADVICE - 1]
    advice.append(Advice("epsilon", float(at_most(gap + taken)), _ENOUGH))
    return Diagnosis(
        asked, gap + taken, goal, snapshot.samples, tuple(causes), needed, words, tuple(advice)
    )


def _causes(
    snapshot: Snapshot,
    values: NDArray[np.float64],
    ruled_out: NDArray[np.bool_],
    gap: float,
    span: float,
) -> tuple[float, list[str]]:
    """What keeps the gap of an action b open: U(c) and L(b), c being its strongest rival.

    It comes after by how much b seems to be better than c.
    """
    assert snapshot.lower is not None and snapshot.upper is not None
    best = place(snapshot.action, snapshot.actions)
    rival = challenger(snapshot.upper, best)
    assert rival is not None  # A gap to one's own is none, so there is nothing to explain.
    others, found = np.delete(ruled_out, best), []
    apart = max(0.0, float(np.nan_to_num(values[best] - values[rival])))
    if gap >= 0.9 * span:
        found.append(f"almost nothing is ruled out yet, because values can differ by {at_most(span)}")
    elif not np.isnan(values[[best, rival]]).any():
        above = float(snapshot.upper[rival] - values[rival])
        below = float(values[best] - snapshot.lower[best])
        up, down = estimated(above), estimated(below)
        loose = f"the upper bound of action {snapshot.actions[rival]!r} is {up} above its estimate"
        low = f"the lower bound of action {snapshot.action!r} is {down} below its estimate"
        found += [loose] * (above >= 0.5 * below) + [low] * (below >= 0.5 * above)
        if apart < 0.25 * gap:
            found.append(f"their estimates differ by only {estimated(apart)}")
    found.append(f"{(~others).sum()} of {len(others)} other actions may still be the best")
    return apart, found


def _advice(planner: Any, model: Model, search: Any, span: float) -> Iterator[Advice]:
    """What to try, the most promising first."""
    offered, horizon = signature(type(planner)).parameters, search.horizon
    declared = {name: getattr(planner, name, None) for name in ("transitions", "rewards")}
    # A planner without delta takes nothing to be random as it is.
    learns = hasattr(planner, "delta") and not model.known
    if model.known and hasattr(planner, "delta"):
        yield Advice("planner", "value-iteration", "it solves the model's table without sampling")
    nodes = search.tree.nodes[:_LOOKED_AT]
    nodes = nodes[nodes["actions"] > 0]
    states = len(np.unique(nodes["state"]))
    if _RECURRENCE * states * horizon <= len(nodes):
        recur = f"states recur: {states:,} distinct ones in {len(nodes):,} nodes"
        if planner.name == "bracket" and model.stationary and learns:
            yield Advice("planner", "atlas", recur)
        elif getattr(planner, "merge", None) == "tree":
            yield Advice("merge", "depth", recur)
    fixed = declared["transitions"] == "deterministic" or model.successors == 1
    if learns and declared["transitions"] == "unknown" and not fixed:
        pairs = search.tree.pairs[:_LOOKED_AT]
        outcomes = pairs["child"][(pairs["n"] > 1) & (pairs["child"] != NONE)]
        if len(outcomes) >= _PAIRS and (search.tree.nodes["sibling"][outcomes] == NONE).all():
            why = f"if true: {len(outcomes):,} pairs showed no second successor"
            yield Advice("transitions", "deterministic", why)
    if learns and declared["rewards"] == "unknown" and not model.random_rewards:
        why = (
            "if a state and action always pay the same; if you can, return the expected reward of a "
            "step instead of a drawn one"
        )
        if fixed:
            yield Advice("planner", "opd", f"{why}; then say rewards='deterministic'")
        else:
            yield Advice("rewards", "deterministic", why)
    known = (getattr(planner, name, None) for name in ("value_range", "value_bounds"))
    if "value_bounds" in offered and not any(known) and span > 10.0 * planner.epsilon:
        why = f"if you know that values differ by less than {at_most(span)}"
        yield Advice("value_range" if "value_range" in offered else "value_bounds", None, why)
    if "horizon" in offered and "horizon" not in planner.settings and planner.horizon is not None:
        yield Advice("horizon", None, f"fewer than {horizon} steps, if later ones matter little")
