"""A plan on the terminal: what to do and how sure that is, then the evidence, then the rest."""

import re
import sys
from typing import TYPE_CHECKING

from pacplan.cli.spelling import translated
from pacplan.core.keys import place, same
from pacplan.core.text import bold, columns, length, table, wrapped
from pacplan.core.words import at_least, at_most, estimated, short
from pacplan.views.progress import interval_bar

if TYPE_CHECKING:
    from pacplan.diagnosis import Diagnosis
    from pacplan.result import Plan

_BAR = 28
_LEAST_BAR, _LEAST_NAME = 8, 12
# Where the part of a guarantee begins that can wait until the bounds were seen.
_LATER = re.compile(r"\s+(?=Of the upper bounds,|\(Planned by )")


def show(plan: "Plan") -> None:
    """Print a plan."""
    width = columns()
    sure, *later = _LATER.split(translated(plan.guarantee))
    if plan.diagnosis is not None:
        sure = sure.removeprefix("Not certified: ")
        sure = sure[:1].upper() + sure[1:]
    print(bold(wrapped(headline(plan), width)))
    print(wrapped(sure, width))
    if plan.warning:
        print(wrapped(plan.warning, width))
    print()
    print("\n".join(_rows(plan, width)))
    print()
    if later:
        print(wrapped(" ".join(later), width))
    if plan.found:
        print(wrapped(plan.found, width))
    if plan.assumptions:
        print(wrapped(translated(f"Given that {', '.join(plan.assumptions)}."), width))
    print(wrapped(plan.effort, width))
    print(wrapped(plan.question, width))
    if plan.diagnosis is not None:
        _show_diagnosis(plan.diagnosis, width)


def headline(plan: "Plan") -> str:
    """Certified or not, what to do, what it is worth, and after how many calls."""
    proven = plan.certified or plan.diagnosis is not None
    taken = place(plan.action, plan.actions)
    tried = bool(plan.calls[taken])
    estimate = estimated(plan.values[taken])
    worth = f"worth {estimate} by estimate" if tried else "of unknown worth"
    if proven and plan.lower is not None:
        worth = f"worth at least {at_least(plan.lower[taken])}" + f" (estimate {estimate})" * tried
    verdict = "Certified" if plan.certified else "Not certified"
    action = " ".join(str(plan.action).split())
    calls = f"{plan.samples:,} call{'s' * (plan.samples != 1)}"
    return f"{verdict}: action {action}, {worth}, after {calls}"


def _rows(plan: "Plan", width: int | None) -> list[str]:
    """The table of the actions."""
    names = [" ".join(str(action).split()) for action in plan.actions]
    bar = _BAR
    lines = _table(plan, names, bar)
    if width is not None:
        # First the names give way, then the bars.
        over = max(map(length, lines)) - width
        if over > 0:
            most = max(_LEAST_NAME, max(map(length, names)) - over)
            names = [short(name, most) for name in names]
            lines = _table(plan, names, bar)
            over = max(map(length, lines)) - width
        if over > 0:
            lines = _table(plan, names, max(_LEAST_BAR, bar - over))
    taken = [same(action, plan.action) for action in plan.actions]
    return [
        lines[0],
        *(bold(line) if own else line for line, own in zip(lines[1:], taken, strict=True)),
    ]


def _table(plan: "Plan", names: list[str], bar: int) -> list[str]:
    bounded = plan.lower is not None and plan.upper is not None
    interval = ("lower", "interval", "upper") if bounded else ()
    rows = [("", "action", *interval, "estimate", "calls")]
    for i, action in enumerate(plan.actions):
        cells: tuple[str, ...] = ()
        if plan.lower is not None and plan.upper is not None:
            low, high = float(plan.lower.min()), float(plan.upper.max())
            lower, upper = float(plan.lower[i]), float(plan.upper[i])
            drawn = interval_bar(lower, upper, low, high, bar)
            cells = (at_least(lower), _printable(drawn), at_most(upper))
        mark = ">" if same(action, plan.action) else ""
        rows.append((mark, names[i], *cells, estimated(plan.values[i]), f"{plan.calls[i]:,}"))
    return table(rows, left=(3,) if bounded else ())


def _printable(bar: str) -> str:
    """A bar in characters that stdout has."""
    try:
        bar.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return bar.replace("━", "=").replace("·", ".")
    return bar


def _show_diagnosis(diagnosis: "Diagnosis", width: int | None) -> None:
    """Why it was not certified, and what to try; each thing to try on a line of its own."""
    lines = [f"Why: {'; '.join(diagnosis.causes)}."] if diagnosis.causes else []
    lines.append(f"Outlook: {diagnosis.outlook}.")
    lines += [f"Try {translated(advice.text())}." for advice in diagnosis.advice]
    for line in lines:
        print(wrapped(line, width, "  "))
