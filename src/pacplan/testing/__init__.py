"""Checks of what planners promise, for the planners of pacplan and for your own."""

from pacplan.testing.checks import CHECKS, Promise
from pacplan.testing.conformance import PLANNER_CHECKS, Conformance, ConformanceError, check_planner
from pacplan.testing.families import FAMILIES
from pacplan.testing.models import check_model
from pacplan.testing.planners import PLANNERS, PlannerEntry
from pacplan.testing.problems import Case, Family, tabular_case
from pacplan.testing.report import FALSE_ALARM, Report, Verdict, clopper_pearson
from pacplan.testing.verification import entry_of, replay, verify

__all__ = [
    "CHECKS",
    "FALSE_ALARM",
    "FAMILIES",
    "PLANNERS",
    "PLANNER_CHECKS",
    "Case",
    "Conformance",
    "ConformanceError",
    "Family",
    "PlannerEntry",
    "Promise",
    "Report",
    "Verdict",
    "check_model",
    "check_planner",
    "clopper_pearson",
    "entry_of",
    "replay",
    "tabular_case",
    "verify",
]
