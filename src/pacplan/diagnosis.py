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

# An outlook rests on the points of a curve from this part of the calls on, and on no fewer than that.
_RECENT, _LEAST_POINTS = 1.0 / 8.0, 4
# A gap that falls with a lower power of the calls has come to rest.
_FLAT = 0.1
# Calls that have to grow by a larger factor lie too far ahead, or out of sight.
_FAR, _HOPELESS = 50.0, 1e6
# Records of a tree that are looked at; nodes per state and step from which on merging saves calls; and
# pairs seen twice with one successor, before it is said that there may be no more.
_LOOKED_AT, _RECURRENCE, _PAIRS = 100_000, 4, 20
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
    log_growth = math.log(gap / (asked + apart)) / -slope if slope < -_FLAT else math.inf
    if log_growth > math.log(_HOPELESS):
        return None, "the gap has stopped shrinking; this run is unlikely to finish"
    needed = _rounded(now * math.exp(log_growth))
    far = "too far ahead to trust; run it longer for a better guess"
    hedge = far if log_growth > math.log(_FAR) else "a rough guess"
    return needed, f"at this rate about {needed:,} calls in all, {hedge}"


def _rounded(calls: float) -> int:
    """Up to two digits, so that it is no less than the calls already made."""
    unit = 10.0 ** (math.floor(math.log10(calls)) - 1)
    return round(math.ceil(calls / unit) * unit)


def diagnosis_of(
    planner: Any, model: Model, search: Any, plan: Snapshot, values: NDArray[Any], ruled_out: Any
) -> Diagnosis | None:
    """Why a search with proven bounds has not reached the requested accuracy, if it has not.

    Of the root's actions it gets estimates (`values`), and which are `ruled_out`.
    """
    asked, goal = getattr(planner, "epsilon", None), getattr(planner, "goal", "action")
    if not asked or plan.gap is None or plan.lower is None or plan.upper is None:
        return None
    by_action = goal == "action"
    # What the horizon cuts off may be taken from epsilon beforehand.
    taken = asked - search.target if by_action and search.target is not None else 0.0
    gap = plan.gap if by_action else 0.5 * float(plan.upper.max() - plan.lower.max())
    if gap + taken <= asked:
        return None
    # By how much values can differ before anything is known.
    span = model.reward_range[1] - model.reward_range[0]
    if not model.two_player:
        known = getattr(planner, "horizon", None) is not None
        steps = discounted_steps(float(planner.gamma), search.horizon if known else None)
        span = step_width(model.reward_range, model.may_end) * steps
    apart, causes = _causes(plan, values, ruled_out, gap, span) if by_action else (0.0, [])
    if taken > 0.0:
        causes.append(f"the horizon cuts off {at_most(taken)} of epsilon")
    calls, gaps, lower, upper = search.curve()
    widths = gaps if by_action else 0.5 * (upper.max(1) - lower.max(1))
    points = np.column_stack([np.append(calls, plan.samples), np.append(widths, gap)])
    needed, words = outlook(points, asked - taken, apart)
    if (planned := getattr(search, "needed", None)) is not None:
        needed = _rounded(max(planned, 1.01 * plan.samples))
        words = f"the proof that is planned now takes about {needed:,} calls in all"
    advice = list(_advice(planner, model, search, span))[: _MOST_ADVICE - 1]
    enough = "already guaranteed: if that is enough, take the action"
    advice.append(Advice("epsilon", float(at_most(gap + taken)), enough))
    found = tuple(causes), needed, words, tuple(advice)
    return Diagnosis(asked, gap + taken, goal, plan.samples, *found)


def _causes(
    plan: Snapshot, values: NDArray[Any], ruled_out: Any, gap: float, span: float
) -> tuple[float, list[str]]:
    """By how much an action b seems better than its strongest rival c; and what keeps U(c) > L(b)."""
    assert plan.lower is not None and plan.upper is not None
    best = place(plan.action, plan.actions)
    rival = challenger(plan.upper, best)
    assert rival is not None  # A gap to one's own is none, so there is nothing to explain.
    others, found = np.delete(ruled_out, best), []
    apart = max(0.0, float(np.nan_to_num(values[best] - values[rival])))
    if gap >= 0.9 * span:
        found.append(f"almost nothing is ruled out yet, because values can differ by {at_most(span)}")
    elif not np.isnan(values[[best, rival]]).any():
        above = float(plan.upper[rival] - values[rival])
        below = float(values[best] - plan.lower[best])
        for width, least, bound, action, side in (
            (above, 0.5 * below, "upper", plan.actions[rival], "above"),
            (below, 0.5 * above, "lower", plan.action, "below"),
        ):
            if width >= least:
                how_far = f"is {estimated(width)} {side} its estimate"
                found.append(f"the {bound} bound of action {action!r} {how_far}")
        if apart < 0.25 * gap:
            found.append(f"their estimates differ by only {estimated(apart)}")
    found.append(f"{(~others).sum()} of {len(others)} other actions may still be the best")
    return apart, found


def _advice(planner: Any, model: Model, search: Any, span: float) -> Iterator[Advice]:
    """What to try, the most promising first."""
    offered, horizon = signature(type(planner)).parameters, search.horizon
    given = {name: getattr(planner, name, None) for name in offered}
    # A planner without delta takes nothing to be random as it is.
    learns = "delta" in given and not model.known
    if model.known and "delta" in given:
        yield Advice("planner", "value-iteration", "it solves the model's table without sampling")
    nodes = search.tree.nodes[:_LOOKED_AT]
    nodes = nodes[nodes["actions"] > 0]
    states = len(np.unique(nodes["state"]))
    if _RECURRENCE * states * horizon <= len(nodes):
        recur = f"states recur: {states:,} distinct ones in {len(nodes):,} nodes"
        if planner.name == "bracket" and model.stationary and learns:
            yield Advice("planner", "atlas", recur)
        elif given.get("merge") == "tree":
            yield Advice("merge", "depth", recur)
    fixed = given.get("transitions") == "deterministic" or model.successors == 1
    if learns and given.get("transitions") == "unknown" and not fixed:
        pairs = search.tree.pairs[:_LOOKED_AT]
        outcomes = pairs["child"][(pairs["n"] > 1) & (pairs["child"] != NONE)]
        if len(outcomes) >= _PAIRS and (search.tree.nodes["sibling"][outcomes] == NONE).all():
            why = f"if true: {len(outcomes):,} pairs showed no second successor"
            yield Advice("transitions", "deterministic", why)
    if learns and given.get("rewards") == "unknown" and not model.random_rewards:
        why = (
            "if a state and action always pay the same; if you can, return the expected reward of a "
            "step instead of a drawn one"
        )
        if fixed:
            yield Advice("planner", "opd", f"{why}; then say rewards='deterministic'")
        else:
            yield Advice("rewards", "deterministic", why)
    told = given.get("value_range") or given.get("value_bounds")
    if "value_bounds" in given and not told and span > 10.0 * planner.epsilon:
        why = f"if you know that values differ by less than {at_most(span)}"
        yield Advice("value_range" if "value_range" in given else "value_bounds", None, why)
    if given.get("horizon") is not None and "horizon" not in planner.settings:
        yield Advice("horizon", None, f"fewer than {horizon} steps, if later ones matter little")
