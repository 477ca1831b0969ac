"""Numbers that promise something are rounded outwards, wherever they are printed."""

import decimal
import io
import math
import re
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Console

import pacplan
from pacplan.core.words import at_least, at_most, complement, estimated, exactly, risk
from pacplan.views import terminal
from pacplan.views.progress import progress_table

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


def shortest(value):
    """What a user would write for a number."""
    return Decimal(repr(value))


@given(NUMBERS)
@example(0.1)
@example(5e-324)
@example(-1.7976931348623157e308)
@example(99995.00000001)
def test_bounds_are_rounded_outwards_and_by_less_than_a_thousandth(value):
    above, below = Decimal(at_most(value)), Decimal(at_least(value))
    assert below <= shortest(value) <= above
    # Four digits: one unit of the last is at most 1/1000 of the number.
    assert above - below <= abs(shortest(value)) * Decimal("0.002")


@given(st.integers(-9999, 9999), st.integers(-30, 30))
def test_what_has_four_digits_is_not_rounded(digits, exponent):
    value = float(f"{digits}e{exponent}")
    assert Decimal(at_most(value)) == Decimal(at_least(value)) == Decimal(digits).scaleb(exponent)


@given(st.floats(1e-300, 1.0, exclude_max=True))
@example(1e-16)
@example(1e-60)
@example(1.0 - 2.0**-53)
def test_a_probability_is_never_rounded_up(delta):
    said = Decimal(complement(delta))
    with decimal.localcontext(prec=400):
        exact = 1 - shortest(delta)
        assert said <= exact < 1
        assert exact - said < max(Decimal("1e-49"), shortest(delta) * Decimal("1e-5"))


def test_what_is_said_does_not_depend_on_the_users_decimals():
    with decimal.localcontext(prec=2, rounding=decimal.ROUND_UP):
        assert complement(0.001) == "0.999"
        assert (at_most(0.12341), at_least(0.12349)) == ("0.1235", "0.1234")


def test_numbers_as_a_person_writes_them():
    assert [at_most(x) for x in (0.1, 1.0, 0.0, 1000.0, 0.12341)] == ["0.1", "1", "0", "1000", "0.1235"]
    assert [at_least(x) for x in (0.1, -0.12341, 12345.0, 1e9)] == ["0.1", "-0.1235", "12340", "1e+09"]
    assert (complement(0.1), complement(1e-5)) == ("0.9", "0.99999")
    assert (risk(0.1), risk(0.1 / 3), complement(0.1 / 3)) == ("0.1", "0.0333334", "0.9666666")
    assert (exactly(1.0), exactly(0.1), exactly(np.float64(-2.5))) == ("1", "0.1", "-2.5")
    assert (estimated(0.123456), estimated(math.nan)) == ("0.1235", "-")
    assert at_most(math.inf) == "inf"


# What planners say.

TINY = 1e-5
STEEP = pacplan.envs.garnet(states=8, actions=2, seed=1, noise="bernoulli")
GAME = pacplan.envs.game_tree([[0.6, 0.2], [0.5, 0.9]])
PROMISING = [
    (pacplan.SparseSampling(gamma=0.3, horizon=1, epsilon=0.3, delta=TINY), STEEP),
    (pacplan.MDPGapE(epsilon=1.0, delta=TINY, gamma=0.3), STEEP),
    (pacplan.MDPGapE(epsilon=0.6, delta=TINY, gamma=0.3, goal="value"), STEEP),
    (pacplan.Bracket(epsilon=0.3, delta=TINY, gamma=0.3), STEEP),
    (pacplan.Bracket(epsilon=0.3, delta=TINY, gamma=0.3, goal="value"), STEEP),
    (pacplan.StOP(epsilon=1.0, delta=TINY, gamma=0.3), STEEP),
    (pacplan.TrailBlazer(epsilon=1.0, delta=TINY, gamma=0.3), STEEP),
    (pacplan.SmoothCruiser(epsilon=1.1, delta=TINY, gamma=0.2), STEEP),
    (pacplan.UGapEMCTS(epsilon=0.3, delta=TINY), GAME),
]


@pytest.mark.parametrize(("planner", "model"), PROMISING, ids=lambda x: type(x).__name__)
def test_guarantees_promise_no_more_than_is_known(planner, model):
    plan = planner.plan(model, 0, seed=0)
    assert plan.stopped_by in ("certified", "rule")
    assert "probability at least 0.99999" in plan.guarantee
    assert "probability at least 0.999999" not in plan.guarantee
    loss = planner.epsilon if plan.gap is None else max(plan.gap, 0.0)
    named = [Decimal(x) for x in re.findall(r"(?:is|and) within (\d[\d.e+-]*\d|\d)", plan.guarantee)]
    assert named
    assert min(named) >= shortest(float(loss))


def test_names_command_no_terminal(capsys):
    """What users name actions is data, and escape sequences would move the cursor, or worse."""

    class Named:
        def __init__(self, name):
            self.name = name

        def __repr__(self):
            return self.name

    evil = "\x1b[2Jcleared\x07\x9b1m"
    for actions in ([evil, evil + "b"], [Named(evil), Named(evil + "b")]):
        model = pacplan.Simulator(lambda s, a, rng: (s, 0.5, False), actions=actions, successors=1)
        planner = pacplan.Bracket(epsilon=0.2, delta=0.1, gamma=0.5)
        snapshots = []
        plan = planner.plan(model, 0, seed=0, budget=50, callback=lambda s, to=snapshots: to.append(s))
        console = Console(file=io.StringIO(), width=200)
        console.print(progress_table(snapshots[-1], None, None, console))
        terminal.show(*terminal.plan_parts(plan, terminal.console()))
        shown = [str(plan), repr(plan), console.file.getvalue(), capsys.readouterr().out]
        for text in shown:
            assert "cleared" in text and not {"\x1b", "\x07", "\x9b"} & set(text)
