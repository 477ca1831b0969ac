"""A plan in HTML: a page that loads nothing, and a fragment for notebooks.

The templates in `assets` escape what users have named.
"""

import os
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pacplan.core.words import at_least, at_most, estimated, short
from pacplan.views.chart import chart
from pacplan.views.evidence import Intervals
from pacplan.views.explorer import explorer
from pacplan.views.pictures import check_target, convergence_svg
from pacplan.views.reasons import reasons

if TYPE_CHECKING:
    from pacplan.origin import Origin
    from pacplan.result import Plan

_ASSETS = Path(__file__).with_name("assets")
_ENDED_BY = {
    "budget": "The budget",
    "deadline": "The deadline",
    "memory": "A lack of memory",
    "callback": "The callback",
    "interrupt": "Ctrl-C",
}


@cache
def _templates() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(_ASSETS),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    made.filters |= {"at_least": at_least, "at_most": at_most, "estimated": estimated, "short": short}
    return made


def rendered(name: str, **given: Any) -> str:
    """A template filled in."""
    text: str = _templates().get_template(name).render(given)
    return text


def asset(name: str) -> str:
    """A script or style sheet."""
    return (_ASSETS / name).read_text("utf-8")


def plan_html(plan: "Plan") -> str:
    """The decision, whether it is certified, the intervals, and what it rests on."""
    return rendered("notebook_plan.html", plan=plan, known=Intervals(plan))


def check_page(path: str | os.PathLike[str]) -> Path:
    """Raise ValueError unless a page can be written to this path; nothing is written yet."""
    return check_target(path, "page", "plan.html")


def write_page(
    plan: "Plan",
    path: str | os.PathLike[str],
    *,
    render: Callable[[Any], str] | None = None,
    command: str | None = None,
) -> Path:
    """Write the page of a plan; `Plan.to_html` has the arguments."""
    target = check_page(path)
    if render is not None and not callable(render):
        raise TypeError(f"render must be a function from a state to text or SVG, got {render!r}")
    try:
        closing = convergence_svg(plan)
    except ImportError as error:
        closing = f"<p>There is no picture, since {error}.</p>"
    page = rendered(
        "page.html",
        plan=plan,
        command=command,
        style=asset("page.css"),
        grounds=_grounds(plan),
        facts=_facts(plan),
        known=Intervals(plan),
        closing=closing,
        ended_by=_ENDED_BY.get(plan.stopped_by),
        origin=None if plan.origin is None else _origin(plan, plan.origin),
        reasons=reasons(plan),
        chart=None if plan.policy is None else chart(plan.policy),
        tree=None if plan.policy is not None else explorer(plan, render),
        script=asset("explorer.js"),
        planner=re.split(r"\W", plan.planner, maxsplit=1)[0],
    )
    target.write_text(page, "utf-8")
    return target


def _grounds(plan: "Plan") -> str:
    """Why it is called certified, or not."""
    if plan.certified:
        return "The planner's own rule ended the search, and it is proven."
    if plan.gap is None:
        return "This planner has no bounds on the values of the actions."
    if plan.stopped_by == "rule":
        return "The planner's own rule ended the search, but with these settings it is not proven."
    return f"{_ENDED_BY[plan.stopped_by]} ended the search before the planner's own rule."


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


def _origin(plan: "Plan", origin: "Origin") -> dict[str, str]:
    """What it takes to make the plan again."""
    limits = {
        "budget": origin.budget and f"{origin.budget:,} calls",
        "time limit": origin.time_limit and f"{origin.time_limit:g} s",
        "memory limit": origin.memory_limit and f"{origin.memory_limit:,} bytes",
    }
    return {
        "planner": plan.planner,
        "model": origin.model,
        "state": origin.state,
        "seed": str(origin.seed),
        "limits": ", ".join(f"{name} {text}" for name, text in limits.items() if text) or "none",
        "versions": ", ".join(f"{name} {version}" for name, version in origin.versions.items()),
        "machine": origin.machine,
    }
