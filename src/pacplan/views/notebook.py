"""What notebooks show of plans, of decisions, and of a search under way."""

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from pacplan.core.fragments import CELL, TABLE, framed
from pacplan.core.words import at_least, at_most, short
from pacplan.views.svg import COLOURS, Intervals, interval_table

if TYPE_CHECKING:
    from pacplan.engine.driver import Snapshot
    from pacplan.result import Plan

# Decisions of an agent that are listed, the last ones.
_MOST_DECISIONS = 100


def plan_html(plan: "Plan") -> str:
    """The decision, whether it is certified, the intervals, and what it rests on."""
    lines = [
        f"<p><b>{plan.verdict}: action {escape(short(plan.action, 80))}</b></p>",
        *_paragraphs(plan.warning),
        interval_table(Intervals.of(plan)),
        *_paragraphs(plan.guarantee, plan.found, plan.effort, plan.question),
    ]
    if plan.assumptions:
        lines.append(f"<p>Given that {escape(', '.join(plan.assumptions))}.</p>")
    if plan.diagnosis is not None:
        lines += [f"<p>{escape(line)}</p>" for line in plan.diagnosis.explanation().splitlines()]
    return framed("".join(lines))


def _paragraphs(*texts: str) -> list[str]:
    return [f"<p>{escape(text)}</p>" for text in texts if text]


def history_html(heading: str, decisions: Sequence[Any]) -> str:
    """The decisions of an agent, a row for each."""
    heads = ("step", "state", "action", "certified", "gap", "calls", "seconds", "delta", "reused calls")
    shown = list(enumerate(decisions, 1))[-_MOST_DECISIONS:]
    rows = []
    for number, decision in shown:
        plan = decision.plan
        cells = (
            f"{number}",
            short(decision.state, 40),
            short(decision.action, 40),
            "yes" if plan.certified else "no",
            "-" if plan.gap is None else at_most(plan.gap),
            f"{plan.samples:,}",
            f"{plan.seconds:.3g}",
            "-" if decision.delta is None else at_most(decision.delta),
            f"{decision.reused_samples:,}",
        )
        rows.append("<tr>" + "".join(f"<td {CELL}>{escape(text)}</td>" for text in cells) + "</tr>")
    head = "<tr>" + "".join(f"<th {CELL}>{text}</th>" for text in heads) + "</tr>"
    hidden = len(decisions) - len(shown)
    more = f"<p>{hidden:,} earlier decisions are not listed.</p>" if hidden else ""
    return framed(
        f"<p><b>{escape(heading)}</b></p>{more}{TABLE}<thead>{head}</thead>"
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def progress_html(snapshot: "Snapshot", target: float | None, budget: int | None) -> str:
    """How far a search is: a line, a bar if there is a budget, and the intervals."""
    line = progress_line(snapshot, target, budget)
    table = "" if snapshot.lower is None else interval_table(Intervals.of(snapshot))
    if budget is None:
        return framed(f"<p>{escape(line)}</p>{table}")
    return framed(f"{bar_html(line, snapshot.samples, budget)}{table}")


def progress_line(snapshot: "Snapshot", target: float | None, budget: int | None) -> str:
    """How far a search is, on a line."""
    gap = "" if snapshot.gap is None else f", gap {at_most(snapshot.gap)}"
    goal = "" if target is None else f" (goal {at_least(target)})"
    spent = f"{snapshot.samples:,}" + ("" if budget is None else f" of {budget:,}")
    played = "" if snapshot.episodes == snapshot.samples else f", {snapshot.episodes:,} episodes"
    return f"{spent} calls{played}, {snapshot.seconds:.1f} s{gap}{goal}"


def bar_html(line: str, done: int, total: int) -> str:
    """A line, and below it how much of the whole is done."""
    return (
        f'<p>{escape(line)}</p><svg width="100%" height="6" aria-hidden="true" '
        'style="display:block;max-width:60em"><rect width="100%" height="6" rx="3" '
        'fill="currentColor" fill-opacity=".15"/>'
        f'<rect width="{min(100.0, 100.0 * done / max(total, 1)):.1f}%" height="6" rx="3" '
        f'style="fill:{COLOURS["taken"]}"/></svg>'
    )
