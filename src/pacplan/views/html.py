"""HTML from the templates in `assets`, which escape what users have named; fragments for notebooks."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pacplan.core.words import at_least, at_most, estimated, short
from pacplan.views.evidence import Intervals

if TYPE_CHECKING:
    from pacplan.result import Plan

_ASSETS = Path(__file__).with_name("assets")


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
