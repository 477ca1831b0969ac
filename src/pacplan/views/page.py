"""A plan in HTML: a page that loads nothing, and a fragment for notebooks.

The templates in `assets` escape what users have named.
"""

import os
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
    target = Path(path)
    if target.is_dir():
        raise ValueError(f"cannot write the page: {target} is a folder; name a file such as plan.html")
    if not target.parent.is_dir():
        raise ValueError(f"cannot write the page: {target} lies in {target.parent}, which is no folder")
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
    page = _rendered(
        "page.html",
        plan=plan,
        known=known,
        command=command,
        style=_asset("page.css"),
        closing=closing,
        missing=missing,
        chart=None if plan.policy is None else chart(plan.policy),
        tree=None if plan.tree is None or plan.policy is not None else explorer(plan.tree, known),
        script=_asset("explorer.js"),
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
