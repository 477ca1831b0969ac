"""A plan on the terminal: what to do and how sure that is, then the evidence, then the rest."""

import re
from typing import TYPE_CHECKING

from pacplan.cli.options import in_options
from pacplan.core.keys import place
from pacplan.core.words import at_least, estimated
from pacplan.views import terminal

if TYPE_CHECKING:
    from pacplan.result import Plan

# Where the part of a guarantee begins that can wait until the bounds were seen.
_LATER = re.compile(r"\s+(?=Only the best action's|\(Planned by )")


def show(plan: "Plan") -> None:
    """Print a plan."""
    sure, *later = _LATER.split(in_options(plan.guarantee))
    lines = [" ".join(later), plan.found]
    if plan.assumptions:
        lines.append(in_options(f"Given that {', '.join(plan.assumptions)}."))
    lines += [plan.effort, plan.question]
    if plan.diagnosis is not None:
        sure = sure.removeprefix("Not certified: ")
        sure = sure[:1].upper() + sure[1:]
        found = plan.diagnosis
        lines += [f"Why: {'; '.join(found.causes)}."] if found.causes else []
        lines.append(f"Outlook: {found.outlook}.")
        lines += [f"Try {in_options(advice.text())}." for advice in found.advice]
    terminal.show(headline(plan), bold=True)
    table = terminal.intervals(plan, terminal.console())
    terminal.show(*filter(None, (sure, plan.warning)), "", table, "")
    terminal.show(*filter(None, lines))


def headline(plan: "Plan") -> str:
    """Certified or not, what to do, what it is worth, and after how many calls."""
    taken = place(plan.action, plan.actions)
    tried = bool(plan.calls[taken])
    estimate = estimated(plan.values[taken])
    worth = f"worth {estimate} by estimate" if tried else "of unknown worth"
    if (plan.certified or plan.diagnosis is not None) and plan.lower is not None:
        worth = f"worth at least {at_least(plan.lower[taken])}" + f" (estimate {estimate})" * tried
    action = " ".join(str(plan.action).split())
    calls = f"{plan.samples:,} call{'s' * (plan.samples != 1)}"
    return f"{plan.verdict}: action {action}, {worth}, after {calls}"
