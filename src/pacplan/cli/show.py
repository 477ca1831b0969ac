"""A plan on the terminal: what to do and how sure that is, then the evidence, then the rest."""

from typing import TYPE_CHECKING

from pacplan.cli.options import in_options
from pacplan.core.keys import place
from pacplan.core.words import at_least, estimated
from pacplan.views import terminal

if TYPE_CHECKING:
    from pacplan.result import Plan


def show(plan: "Plan") -> None:
    """Print a plan."""
    guarantee, *rest = map(in_options, plan.sentences)
    if plan.assumptions:
        rest.insert(0, in_options(f"Given that {', '.join(plan.assumptions)}."))
    terminal.show(headline(plan), bold=True)
    table = terminal.intervals(plan, terminal.console())
    terminal.show(*filter(None, (guarantee, plan.warning)), "", table, "", *rest)


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
