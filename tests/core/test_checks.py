"""Arguments of the wrong type or out of range are refused by name."""

import pytest

from conftest import short
from pacplan.core import checks
from refusals import HUGE, NOT_FINITE, NOT_FLAG, NOT_REAL, NOT_WHOLE, refused

REALS = [checks.real, checks.positive, checks.probability]


@pytest.mark.parametrize("value", [*NOT_REAL, *NOT_FINITE], ids=short)
@pytest.mark.parametrize("check", REALS)
def test_what_is_no_finite_number(check, value):
    refused(lambda: check("it", value), "it must be", repr(value))


@pytest.mark.parametrize("value", [*NOT_WHOLE, 0, -1, -(2**70)], ids=short)
def test_what_is_no_whole_number_in_range(value):
    refused(lambda: checks.integer("it", value, least=1), "it must be", repr(value))


def test_what_is_too_large():
    for check in REALS:
        refused(lambda check=check: check("it", HUGE), "it must be")
    for value in (2**63, 10**30):
        refused(lambda value=value: checks.integer("it", value, least=1), "it must be at most")


@pytest.mark.parametrize("value", NOT_FLAG, ids=short)
def test_what_is_neither_true_nor_false(value):
    refused(lambda: checks.flag("it", value), "it must be True or False", repr(value))


@pytest.mark.parametrize("value", ["", "Action", None, True, 1, [], object()], ids=short)
def test_what_is_no_word_of_a_few(value):
    refused(lambda: checks.choice("it", value, ("action", "value")), "'action', 'value'", repr(value))


@pytest.mark.parametrize("value", [0, 0.0, 1, -0.1, 1.1, 1e-301])
def test_what_is_no_probability(value):
    refused(lambda: checks.probability("it", value), "it must", str(float(value)))


@pytest.mark.parametrize("value", [3, (1,), (1, 0), (1, 1), ("a", 1), (0, 1e200), (0, float("nan"))])
def test_what_is_no_interval(value):
    refused(lambda: checks.interval("it", value, "reward"))
