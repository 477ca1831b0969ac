"""A plan in HTML: a page that loads nothing, and a fragment for notebooks.

The templates in `assets` escape what users have named.
"""

import math
import os
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pacplan.core.words import at_least, at_most, estimated, short
from pacplan.views.chart import chart
from pacplan.views.evidence import Intervals
from pacplan.views.explorer import explorer
from pacplan.views.pictures import convergence_picture

if TYPE_CHECKING:
    from pacplan.playing import Episode
    from pacplan.result import Plan

_ASSETS = Path(__file__).with_name("assets")


@cache
def _templates() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(loader=FileSystemLoader(_ASSETS), autoescape=True, undefined=StrictUndefined)
    made.trim_blocks = made.lstrip_blocks = True
    made.filters |= {"at_least": at_least, "at_most": at_most, "estimated": estimated, "short": short}
    return made


def _rendered(name: str, **given: Any) -> str:
    text: str = _templates().get_template(name).render(given)
    return text


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text("utf-8")


def plan_html(plan: "Plan") -> str:
    """The decision, whether it is certified, the intervals, and what it rests on."""
    return _rendered("notebook_plan.html", plan=plan, known=Intervals(plan))


def check_page(path: str | os.PathLike[str]) -> Path:
    """Raise ValueError unless a page can be written to this path; nothing is written yet."""
    target, reason = Path(path), ""
    if target.is_dir():
        reason = f"{target} is a folder; name a file such as plan.html"
    elif not target.parent.is_dir():
        reason = f"{target} lies in {target.parent}, which is no folder"
    elif not os.access(target if target.exists() else target.parent, os.W_OK):
        reason = f"no permission to write {target}"
    if reason:
        raise ValueError(f"cannot write the page: {reason}")
    return target


def write_page(plan: "Plan", path: str | os.PathLike[str], command: str | None = None) -> Path:
    """Write the page of a plan; `Plan.to_html` has the arguments."""
    target = check_page(path)
    missing = closing = ""
    try:
        closing = convergence_picture(plan)
    except ImportError as error:
        missing = str(error)
    known = Intervals(plan)
    against, parts = reasons(plan, known)
    page = _rendered(
        "page.html",
        plan=plan,
        known=known,
        command=command,
        style=_asset("page.css"),
        grounds=_grounds(plan),
        facts=_facts(plan),
        closing=closing,
        missing=missing,
        against=against,
        parts=parts,
        chart=None if plan.policy is None else chart(plan.policy),
        tree=None if plan.tree is None or plan.policy is not None else explorer(plan.tree, known),
        script=_asset("explorer.js"),
        planner=re.split(r"\W", plan.planner, maxsplit=1)[0],
    )
    target.write_text(page, "utf-8")
    return target


def episode_page(episode: "Episode") -> str:
    """A page with the steps of an episode."""
    steps = []
    for (state, action, plan, *_), reward in zip(episode.decisions, episode.rewards, strict=True):
        words = f"{plan.samples:,} calls, {1e3 * plan.seconds:.1f} ms."
        if plan.ruled_out is not None:
            words += f" {int(plan.ruled_out.sum())} of {len(plan.actions)} actions were ruled out."
        known = Intervals(plan)
        steps.append(
            {"state": state, "action": action, "reward": float(reward), "words": words, "known": known}
        )
    planner = episode.decisions[0].plan.planner
    return _rendered(
        "episode.html", episode=episode, steps=steps, planner=planner, style=_asset("page.css")
    )


def _grounds(plan: "Plan") -> str:
    """Why it is called certified, or not."""
    if plan.certified:
        return "The planner's own rule ended the search, and it is proven."
    if plan.gap is None:
        return "This planner has no bounds on the values of the actions."
    if plan.stopped_by == "rule":
        return "The planner's own rule ended the search, but with these settings it is not proven."
    return "The search was stopped before the planner's own rule ended it."


def _facts(plan: "Plan") -> dict[str, str]:
    worth = estimated(plan.value)
    if plan.lower is not None and plan.upper is not None:
        worth += f", between {at_least(float(plan.lower.max()))} and {at_most(float(plan.upper.max()))}"
    facts = {"The state is worth": worth}
    if plan.gap is not None:
        facts["Maximum loss (if the bounds hold)"] = at_most(max(plan.gap, 0.0))
    if plan.sequence:
        facts["Sequence"] = short(", ".join(map(str, plan.sequence)), 200)
    return facts


def reasons(plan: "Plan", known: Intervals) -> tuple[str, list[tuple[str, float]]]:
    """The strongest rival of the action, in words; and what adds up to the gap, if there is one."""
    taken = f"action {short(plan.action)}"
    if len(plan.actions) == 1:
        return f"There is no other than {taken}.", []
    if known.rival is None or plan.lower is None or plan.upper is None or plan.gap is None:
        return "Nothing bounds the error of these estimates, so they prove nothing; Bracket would.", []
    low, high = float(plan.lower[known.best]), float(plan.upper[known.rival])
    rival = f"action {short(plan.actions[known.rival])}"
    against = (
        f"The challenger of {taken} is {rival}: of all others it has the largest upper bound, "
        f"{at_most(high)}. The lower bound of {taken} is {at_least(low)}."
    )
    mine, other = plan.values[[known.best, known.rival]].tolist()
    if math.isnan(mine + other):
        return against, []
    # U(c) - L(b) = (U(c) - V(c)) + (V(b) - L(b)) - (V(b) - V(c)), V being the estimates.
    parts = [
        (f"the upper bound of {rival} lies above its estimate by", high - other),
        (f"the lower bound of {taken} lies below its estimate by", mine - low),
        (f"the estimate of {taken} is ahead of that of {rival} by (against the gap)", other - mine),
    ]
    # The gap is less than the distance of these if both bounds rest on one event.
    together = plan.gap - (high - low)
    if together < -1e-9 * (1.0 + abs(high - low)):
        words = "more is proven of both actions together than of each (against the gap)"
        parts.append((words, together))
    return against, parts
