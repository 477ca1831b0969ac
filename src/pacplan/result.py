"""Plan: a planner's answer."""

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pacplan.core.keys import place, same
from pacplan.core.words import at_least, at_most, exactly, printable, risk
from pacplan.diagnosis import Diagnosis
from pacplan.engine.search_tree import SearchTree
from pacplan.origin import Origin
from pacplan.policy import NONE, Policy

# What is left out of dictionaries.
_LARGE = ("tree", "curve")


@dataclass(frozen=True, eq=False)
class Curve:
    """The history of the actions' bounds. The last point is the end of the search.

    Attributes:
        samples: calls to the model by each point.
        lower: lower bounds, [point, action].
        upper: upper bounds, [point, action].
    """

    samples: NDArray[np.int64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


class ActionSummary(NamedTuple):
    """What a plan says of one action; `Plan` has the meaning of each."""

    action: Any
    lower: float | None
    upper: float | None
    value: float
    calls: int
    gap: float | None
    ruled_out: bool | None


@dataclass(frozen=True, eq=False, kw_only=True)
class Plan:
    """The answer of a planner, with its evidence. All values are in the user's reward units.

    Attributes:
        action: what to do.
        actions: the actions that the state offers; the arrays below have one entry for each.
        lower: lower bounds on the optimal values Q(state, a); None for planners without bounds. They
            hold with the probability in `guarantee`, if it states one.
        upper: upper bounds, as above. All of them hold together, except with `Bracket` and `Canopy`:
            there only the bound of a best action holds, and that of another may lie below its value,
            even below its lower bound. So max L <= max Q <= max U holds for all planners.
        values: estimates of Q, within the bounds if there are any (`lower` if these cross); NaN for an
            action that was never seen.
        calls: calls to the model spent on episodes that began with each action.
        gap: the maximum loss of `action` against the best action: the largest U of the other actions
            minus L(action), or less if `Bracket` knows more about pairs of actions. (Below 0, `action`
            is the best one.)
        gaps: the maximum loss of each action; None unless the bounds are proven. The minimum is that of
            `safest`.
        ruled_out: for each action, whether it is proven not to be the best one; None unless the bounds
            are proven. With the probability of the guarantee, a best action is among the others.
        value: estimate of the state's optimal value, max over a of Q(state, a). If there are bounds,
            it lies in [max L, max U].
        certified: True if the planner stopped by its own rule under proven thresholds.
        stopped_by: "certified" (own rule, proven), "rule" (own rule, heuristic), "budget",
            "deadline", "memory" (the limit, the machine's, or 2^31 visits, the most that a counter
            holds), "callback" or "interrupt".
        guarantee: what is proven about `action`, in words.
        assumptions: what the guarantee depends on, as the user or the model declared it.
        samples: calls to the model that the plan uses.
        episodes: episodes played.
        seconds: wall time of the search, including the part that ran interpreted.
        horizon: number of steps of the solved problem; None: infinitely many.
        gamma: the discount; None if the planner has none, as for `epsilon` and `delta`.
        epsilon: the requested accuracy, in reward units.
        delta: the probability with which the guarantee may fail.
        planner: the planner's settings.
        tree: the search tree.
        sequence: the actions to take one after the other, from planners of sequences; else empty.
        memory: bytes held by the records of the search.
        interrupted: whether Ctrl-C was pressed during the search, whatever ended it.
        diagnosis: why the requested accuracy is not certified, and what to try; None if it is, or if
            you requested none.
        curve: the history of the bounds; None for planners without bounds.
        calls_made: all calls to the model, also those that the plan does not rest on: of the look of
            `pacplan.plan`, of Atlas before it hands over, and unused speculative ones.
        origin: model, state, seed, limits and versions, to repeat the plan.
        policy: an action for the other states, and a lower bound on its return; None if none is proven.
    """

    action: Any
    actions: tuple[Any, ...]
    values: NDArray[np.float64]
    calls: NDArray[np.int64]
    value: float
    stopped_by: str
    guarantee: str
    samples: int
    episodes: int
    seconds: float
    horizon: int | None
    planner: str
    lower: NDArray[np.float64] | None = None
    upper: NDArray[np.float64] | None = None
    gap: float | None = None
    gaps: NDArray[np.float64] | None = None
    ruled_out: NDArray[np.bool_] | None = None
    certified: bool = False
    assumptions: tuple[str, ...] = ()
    tree: SearchTree | None = None
    sequence: tuple[Any, ...] = ()
    memory: int = 0
    interrupted: bool = False
    diagnosis: Diagnosis | None = None
    curve: Curve | None = None
    calls_made: int = 0
    origin: Origin | None = None
    gamma: float | None = None
    epsilon: float | None = None
    delta: float | None = None
    policy: Policy | None = None

    def __post_init__(self) -> None:
        for array in self._columns:
            if array is not None:
                array.setflags(write=False)

    @property
    def _columns(self) -> tuple[NDArray[Any] | None, ...]:
        return (self.lower, self.upper, self.values, self.calls, self.gaps, self.ruled_out)

    @property
    def rows(self) -> tuple[ActionSummary, ...]:
        """What is known of each action; `pandas.DataFrame(plan.rows)` makes a data frame of it."""
        columns = (
            [None] * len(self.actions) if column is None else column.tolist()
            for column in self._columns
        )
        return tuple(map(ActionSummary, self.actions, *columns))

    def __getitem__(self, action: Any) -> ActionSummary:
        """What is known of an action, by the name that the model gives it: `plan["hit"].upper`."""
        for row in self.rows:
            if same(row.action, action):
                return row
        raise KeyError(f"unknown action {action!r}; the plan is about {self.actions!r:.200}")

    __iter__ = None  # It has items by action, and is no sequence.

    @property
    def safest(self) -> Any:
        """The action with the smallest guaranteed loss; None unless the bounds are proven.

        `action` is the best guess. It is also the safest action if several are equally safe.
        """
        if self.gaps is None:
            return None
        if self.gaps[place(self.action, self.actions)] == self.gaps.min():
            return self.action
        return self.actions[int(self.gaps.argmin())]

    def to_dict(self) -> dict[str, Any]:
        """Return everything except the tree and the curve, in types that `json.dumps` takes.

        Actions and states that JSON has no type for become lists if they are arrays, and else their
        `repr`. The policy is a list for each step, with an entry for each of its `states`, None where
        it says nothing.
        """
        record = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _LARGE}
        for name, value in record.items():
            if isinstance(value, np.ndarray):
                record[name] = value.tolist()
            elif name in ("actions", "sequence"):
                record[name] = list(map(_plain, value))
            elif name in ("diagnosis", "origin"):
                record[name] = None if value is None else asdict(value)
        # JSON has no NaN, which stands for no estimate.
        record["values"] = [None if np.isnan(value) else value for value in record["values"]]
        record["value"] = None if np.isnan(self.value) else self.value
        record |= {"action": _plain(self.action), "safest": _plain(self.safest)}
        record["policy"] = None if self.policy is None else _plain_policy(self.policy)
        return record

    def plot(self, ax: Any = None) -> Any:
        """Draw the intervals and estimates of the actions (`pacplan.views.intervals`).

        Args:
            ax: Matplotlib axes to draw in; by default those of a new figure.

        Returns:
            The axes.

        Raises:
            ImportError: Matplotlib is not installed: `pip install pacplan[viz]`.
        """
        from pacplan.views import intervals

        return intervals(self, ax)

    def to_html(self, path: str | os.PathLike[str], *, command: str | None = None) -> Path:
        """Write the plan as one page that you can hand on. It needs no network and no Python.

        The page shows the decision and its guarantee, the intervals and how they closed in, how to
        repeat the plan, why it is this action and not its challenger, and the most visited part of the
        search tree, to walk through, or a map of the states of a policy.

        Args:
            path: the file to write, such as "plan.html".
            command: the shell command that makes the plan again, if there is one.

        Returns:
            The path.

        Raises:
            ValueError: the file cannot be written.
        """
        from pacplan.views.page import write_page

        return write_page(self, path, command)

    def _repr_html_(self) -> str:
        """The plan in a notebook."""
        from pacplan.views.page import plan_html

        return plan_html(self)

    def __str__(self) -> str:
        from pacplan.views.terminal import plan_parts, text_of

        return "\n".join(part if isinstance(part, str) else text_of(part) for part in plan_parts(self))

    @property
    def sentences(self) -> list[str]:
        """The plan in words: guarantee, assumptions, what is ruled out, effort, settings, diagnosis."""
        numbers = {
            "gamma": None if self.gamma is None else exactly(self.gamma),
            "horizon": self.horizon,
            "epsilon": None if self.epsilon is None else exactly(self.epsilon),
            "delta": None if self.delta is None else risk(self.delta),
        }
        settings = ", ".join(f"{name} {value}" for name, value in numbers.items() if value is not None)
        return [
            self.guarantee,
            *([f"Assumptions: {'; '.join(self.assumptions)}."] if self.assumptions else []),
            *self._ruled_out(),
            self.effort,
            f"Settings: {settings}.",
            *([] if self.diagnosis is None else self.diagnosis.explanation()),
        ]

    @property
    def verdict(self) -> str:
        """Whether the plan is certified, in words."""
        return "Certified" if self.certified else "Not certified"

    @property
    def warning(self) -> str:
        """That the gap exceeds what the actions seem to differ by, so little was decided; or ""."""
        seen = self.values[~np.isnan(self.values)]
        spread = float(np.ptp(seen)) if len(seen) else 0.0
        if self.gap is None or len(self.actions) == 1 or self.gap <= spread:
            return ""
        decided = "Nothing" if self.ruled_out is None or not self.ruled_out.any() else "Little"
        return (
            f"{decided} was decided: the gap of {at_most(self.gap)} exceeds the spread of the "
            f"estimates, {at_least(spread)}."
        )

    @property
    def effort(self) -> str:
        """What the plan cost and why it stopped, in words."""
        why = {
            "certified": "accuracy reached" if self.epsilon else "solved",
            "rule": "the planner's own rule was met",
            "budget": "budget used up",
            "deadline": "deadline reached",
            "memory": "out of memory",
            "callback": "the callback stopped it",
            "interrupt": "interrupted",
        }[self.stopped_by]
        played = "" if self.episodes == self.samples else f" in {self.episodes:,} episodes"
        return f"Stopped after {self.samples:,} calls{played}, {self.seconds:.3g} s: {why}."

    def _ruled_out(self) -> Iterator[str]:
        """How many actions are ruled out and, if not certified, which is best guaranteed."""
        if self.ruled_out is None or self.gaps is None or len(self.actions) == 1:
            return
        words = f"Ruled out: {self.ruled_out.sum():,} of {len(self.actions):,} actions."
        if not self.certified and not same(self.safest, self.action):
            least = at_most(max(0.0, float(self.gaps.min())))
            guess = at_most(max(0.0, float(self.gaps[place(self.action, self.actions)])))
            words += (
                f" The safest action, {self.safest!r}, is within {least} of optimal. The best guess, "
                f"{self.action!r}, is within {guess}."
            )
        yield words

    def __repr__(self) -> str:
        gap = "None" if self.gap is None else at_most(self.gap)
        return (
            f"<Plan: action {printable(repr(self.action))}, gap {gap}, stopped by {self.stopped_by}, "
            f"{self.samples} calls>"
        )


def _plain_policy(policy: Policy) -> dict[str, Any]:
    actions = [*map(_plain, policy.content), None]  # The last one is that of NONE.
    said = policy.chosen != NONE
    record: dict[str, Any] = {
        "value": policy.value,
        "given": policy.given,
        "states": list(map(_plain, policy.states)),
        "actions": [[actions[pair] for pair in row] for row in policy.chosen.tolist()],
    }
    for name, bound in (("lower", policy.lower), ("upper", policy.upper)):
        record[name] = np.asarray(np.where(said, bound.content, None)).tolist()
    return record


def _plain(action: Any) -> Any:
    if isinstance(action, np.generic | np.ndarray):
        return action.tolist()
    if isinstance(action, dict) and all(isinstance(name, str) for name in action):
        return {name: _plain(value) for name, value in action.items()}
    return action if isinstance(action, bool | int | float | str) or action is None else repr(action)
