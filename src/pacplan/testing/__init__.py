"""Checks of what planners promise, for the planners of pacplan and for your own."""

from pacplan.testing.cases import Case, Family, tabular_case
from pacplan.testing.checks import CHECKS, Promise
from pacplan.testing.conformance import (
    PLANNER_CHECKS,
    Conformance,
    ConformanceError,
    check_planner,
)
from pacplan.testing.entrants import ENTRANTS, Entrant
from pacplan.testing.families import FAMILIES
from pacplan.testing.intervals import clopper_pearson
from pacplan.testing.models import check_model
from pacplan.testing.report import FALSE_ALARM, Report, Verdict
from pacplan.testing.runner import entrant_of, replay, verify

__all__ = [
    "CHECKS",
    "ENTRANTS",
    "FALSE_ALARM",
    "FAMILIES",
    "PLANNER_CHECKS",
    "Case",
    "Conformance",
    "ConformanceError",
    "Entrant",
    "Family",
    "Promise",
    "Report",
    "Verdict",
    "check_model",
    "check_planner",
    "clopper_pearson",
    "entrant_of",
    "replay",
    "tabular_case",
    "verify",
]
