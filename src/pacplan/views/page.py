"""The page of a plan: the decision and its evidence in one file that loads nothing."""

import os
import re
from collections.abc import Callable
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pacplan.core import checks
from pacplan.core.words import at_least, at_most, estimated, short
from pacplan.views.chart import chart
from pacplan.views.closing import closing
from pacplan.views.explorer import explorer
from pacplan.views.reasons import reasons
from pacplan.views.style import check_target
from pacplan.views.svg import COLOURS, Intervals, interval_table

if TYPE_CHECKING:
    from pacplan.policy import Policy
    from pacplan.result import Plan

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; \
style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>
{style}
</style>
</head>
<body>
<main>
{sections}
</main>
</body>
</html>
"""


def check_page(path: str | os.PathLike[str]) -> Path:
    """Raise ValueError unless a page can be written to this path; nothing is written yet."""
    return check_target(path, "page", "plan.html")


def write_page(
    plan: "Plan",
    path: str | os.PathLike[str],
    *,
    render: Callable[[Any], str] | None = None,
    title: str | None = None,
    command: str | None = None,
    most: int | None = None,
) -> Path:
    """Write the page of a plan; `Plan.to_html` has the arguments."""
    target = check_page(path)
    if most is not None:
        checks.integer("most", most, least=1)
    if render is not None and not callable(render):
        raise TypeError(f"render must be a function from a state to text or SVG, got {render!r}")
    sections = [
        _decision(plan, title),
        _intervals(plan),
        _closing(plan),
        _assumptions(plan),
        _again(plan, command),
        _reasons(plan),
        _tree(plan, render, most) if plan.policy is None else _chart(plan.policy, most),
    ]
    heading = title or f"Action {short(plan.action)}: {plan.verdict.lower()}"
    page = _PAGE.format(
        title=escape(heading), style=_asset("page.css"), sections="\n".join(filter(None, sections))
    )
    target.write_text(page, "utf-8")
    return target


_ENDED_BY = {
    "budget": "The budget",
    "deadline": "The deadline",
    "memory": "A lack of memory",
    "callback": "The callback",
    "interrupt": "Ctrl-C",
}


def _grounds(plan: "Plan") -> str:
    """Why it is called certified, or not."""
    if plan.certified:
        return "The planner's own rule ended the search, and it is proven."
    if plan.gap is None:
        return "This planner has no bounds on the values of the actions."
    if plan.stopped_by == "rule":
        return "The planner's own rule ended the search, but with these settings it is not proven."
    return f"{_ENDED_BY[plan.stopped_by]} ended the search before the planner's own rule."


def _decision(plan: "Plan", title: str | None) -> str:
    """What to do, whether that is proven, and what it cost."""
    worth = estimated(plan.value)
    if plan.lower is not None and plan.upper is not None:
        worth += f", between {at_least(float(plan.lower.max()))} and {at_most(float(plan.upper.max()))}"
    facts = {"The state is worth": worth}
    if plan.gap is not None:
        facts["Maximum loss (if the bounds hold)"] = at_most(max(plan.gap, 0.0))
    facts["Calls to the model"] = plan.spent.replace(" calls", "", 1)
    if plan.sequence:
        facts["Sequence"] = short(", ".join(map(str, plan.sequence)), 200)
    rows = "".join(f"<div><dt>{name}</dt><dd>{escape(text)}</dd></div>" for name, text in facts.items())
    over = "" if title is None else f'<p class="title">{escape(title)}</p>\n'
    kind = "certified" if plan.certified else "uncertified"
    texts = (plan.warning, plan.guarantee, plan.found, plan.effort, plan.question)
    paragraphs = "\n".join(f"<p>{escape(text)}</p>" for text in texts if text)
    return (
        f'<header>\n<p class="verdict {kind}">{plan.verdict}</p> '
        f'<span class="grounds">{_grounds(plan)}</span>\n{over}'
        f"<h1>Take action {escape(short(plan.action, 80))}</h1>\n"
        f"{paragraphs}\n"
        f"<dl>{rows}</dl>\n</header>"
    )


def _intervals(plan: "Plan") -> str:
    known = Intervals.of(plan)
    words = "No bounds: dots are estimates, and nothing says how wrong they can be."
    if known.rival is not None:
        words = (
            "A bar reaches from the lower to the upper bound of an action's value, a dot is the "
            "estimate. The dashed line is the lower bound of the action taken, the dotted line the "
            "upper bound of its challenger; the gap is no more than what lies between them."
        )
    elif plan.lower is not None:
        words = "The bar reaches from the lower to the upper bound of the action's value."
    return _section("values", "What the actions are worth", f"<p>{words}</p>{interval_table(known)}")


def _closing(plan: "Plan") -> str:
    drawn = closing(plan)
    if not drawn:
        return ""
    words = "<p>Lower and upper bounds after so many calls to the model.</p>"
    return _section("closing", "How the bounds closed in", words + drawn)


def _assumptions(plan: "Plan") -> str:
    if not plan.assumptions:
        words = "No assumptions are stated."
        if plan.gap is None:
            words = "No bounds are given that could depend on assumptions."
        return _section("rests", "What it rests on", f"<p>{words}</p>")
    items = "".join(f"<li>{escape(text)}</li>" for text in plan.assumptions)
    return _section("rests", "What it rests on", f"<p>All of this is given that:</p><ul>{items}</ul>")


def _again(plan: "Plan", command: str | None) -> str:
    """What it takes to make the plan again."""
    origin = plan.origin
    if origin is None:
        return ""
    parts = []
    if command is not None:
        parts.append(f"<p>In a shell:</p><pre><code>{escape(command)}</code></pre>")
    parts.append(f"<p>In Python:</p><pre><code>{escape(origin.code(plan.planner))}</code></pre>")
    if plan.stopped_by in _ENDED_BY and plan.stopped_by != "budget":
        parts.append(
            f"<p>This search was ended by {_ENDED_BY[plan.stopped_by]} after {plan.samples:,} calls, "
            f"so another run may end elsewhere; budget={plan.samples} comes close.</p>"
        )
    if origin.reused:
        parts.append(
            "<p>The search began with the tree of an earlier decision of an agent; this call alone "
            "begins without it.</p>"
        )
    limits = {
        "budget": origin.budget and f"{origin.budget:,} calls",
        "time limit": origin.time_limit and f"{origin.time_limit:g} s",
        "memory limit": origin.memory_limit and f"{origin.memory_limit:,} bytes",
    }
    rows = {
        "planner": plan.planner,
        "model": origin.model,
        "state": origin.state,
        "seed": str(origin.seed),
        "limits": ", ".join(f"{name} {text}" for name, text in limits.items() if text) or "none",
        "versions": ", ".join(f"{name} {version}" for name, version in origin.versions.items()),
        "machine": origin.machine,
    }
    listed = "".join(f"<div><dt>{k}</dt><dd>{escape(v)}</dd></div>" for k, v in rows.items())
    parts.append(f'<dl class="settings">{listed}</dl>')
    return _section("again", "To do it again", "".join(parts))


def _reasons(plan: "Plan") -> str:
    """The challenger, what the gap consists of, what would change the decision."""
    found = reasons(plan)
    parts = [f"<p>{escape(found.against)}</p>"]
    if found.parts and plan.gap is not None:
        # What is rounding error beside the rest is none.
        tiny = 1e-9 * max(abs(amount) for _, amount in found.parts)
        rows = "".join(
            f"<tr><td>{escape(words)}</td><td>{_signed(x if abs(x) > tiny else 0.0)}</td></tr>"
            for words, x in found.parts
        )
        gap = at_most(plan.gap).replace("-", "\N{MINUS SIGN}", 1)
        total = f'<tr class="total"><td>the gap</td><td>{gap}</td></tr>'
        parts.append(f'<h3>What the gap consists of</h3><table class="sum">{rows}{total}</table>')
    if found.change:
        parts.append("<h3>What would change the decision</h3>")
        parts += [f"<p>{escape(sentence)}</p>" for sentence in found.change]
    if plan.diagnosis is not None:
        parts.append("<h3>Why it is not certified, and what to try</h3>")
        parts += [f"<p>{escape(line)}</p>" for line in plan.diagnosis.explanation().splitlines()]
    return _section("why", "Why this and not that", "".join(parts))


def _chart(policy: "Policy", most: int | None) -> str:
    """The map of the charted states."""
    drawn, left_out = chart(policy, most)
    given = policy.given and f", {policy.given}"
    words = (
        "The states, and what to do in them: from the circled one on that earns at least "
        f"{at_least(policy.value)}{given}, as far as the guarantee goes. Point at a state for its "
        "numbers."
    )
    if left_out:
        words += f" Those visited most are here; left out: {left_out:,}."
    key = '<i style="background:{}"></i>'.format
    legend = (
        f"{key(COLOURS['taken'])}colour: worth, by its lower bound",
        f"{key(COLOURS['challenger'])}ring: calls",
        "size: visits",
        "arrow: probability",
    )
    spans = "".join(f"<span>{each}</span>" for each in legend)
    drawn = f'<p class="legend">{spans}</p>{drawn}'
    return _section("chart", "What to do in the other states", f"<p>{escape(words)}</p>{drawn}")


def _tree(plan: "Plan", render: Callable[[Any], str] | None, most: int | None) -> str:
    """The tree explorer, which a script draws."""
    found = explorer(plan, render, most)
    if found is None:
        name = re.split(r"\W", plan.planner, maxsplit=1)[0]
        return _section("tree", "The search tree", f"<p>{escape(name)} keeps no search tree.</p>")
    words = (
        "Choose an action to see where it led, and a state to go there. The map shows actions and the "
        "states they led to below one another, as wide as they were often visited. Bars are bounds and "
        "dots are estimates, where the planner keeps them; they hold as far as the guarantee says. "
        f"{found.left_out}"
    )
    if found.undrawn:
        words += f" For lack of room {found.undrawn:,} states are not drawn."
    return _section(
        "tree",
        "The search tree",
        f'<p>{escape(words)}</p><div id="explorer"><noscript>Walking through the tree needs a browser '
        f'with scripts.</noscript></div>\n<script type="application/json" id="tree-data">{found.data}'
        f"</script>\n<script>\n{_asset('explorer.js')}</script>",
    )


def _signed(amount: float) -> str:
    return ("+" * (amount >= 0.0) + estimated(amount)).replace("-", "\N{MINUS SIGN}", 1)


def _section(name: str, heading: str, content: str) -> str:
    return (
        f'<section id="{name}" aria-labelledby="{name}-title">\n'
        f'<h2 id="{name}-title">{heading}</h2>\n{content}\n</section>'
    )


def _asset(name: str) -> str:
    return files("pacplan.views").joinpath("assets", name).read_text("utf-8")
