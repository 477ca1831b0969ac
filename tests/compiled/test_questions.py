"""Questions that kernels ask, and classes that do not answer."""

from typing import NamedTuple

import numba
import pytest

from conftest import interpreted
from pacplan.compiled.questions import answers, must_answer, question


class Loud(NamedTuple):
    number: int


class Mute(NamedTuple):
    number: int


@question
def doubled(subject, by):
    return 0


@must_answer
def tripled(subject):
    return 0


@answers(doubled, Loud)
def _doubled(subject, by):
    return 2 * subject.number + by


@answers(tripled, Loud)
def _tripled(subject):
    return 3 * subject.number


@numba.njit
def ask(subject):
    return doubled(subject, 1), tripled(subject)


@numba.njit
def ask_doubled(subject):
    return doubled(subject, 1)


def test_the_class_answers_compiled_or_not():
    assert ask(Loud(5)) == ask.py_func(Loud(5)) == (11, 15)
    assert ask_doubled(Mute(5)) == ask_doubled.py_func(Mute(5)) == 0


@pytest.mark.parametrize("asked", [ask, ask.py_func])
def test_a_class_without_an_answer_is_named(asked):
    with pytest.raises(Exception, match=r"Mute does not answer 'tripled': .*answers\(tripled, Mute\)"):
        asked(Mute(5))


FORGETFUL = """
from flat_monte_carlo import FlatMonteCarlo
import pacplan
from pacplan.compiled import questions
from pacplan.extending import choose

del questions._answers[choose.question, __import__("flat_monte_carlo").Search]
try:
    FlatMonteCarlo(gamma=0.7).plan(pacplan.envs.garnet(seed=0), seed=0, budget=10)
except TypeError as error:
    print(error)
"""


def test_a_planner_that_forgets_to_choose(tmp_path, monkeypatch):
    from pathlib import Path

    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "examples")
    assert "flat_monte_carlo.Search does not answer 'choose'" in interpreted(FORGETFUL, tmp_path)


def namesake(factor):
    """A class like others made here, as when a cell of a notebook is run again."""

    class Loud(NamedTuple):
        number: int

    @answers(tripled, Loud)
    def _tripled(subject):
        return factor * subject.number

    return Loud


def test_classes_of_the_same_name_and_fields_are_told_apart():
    @numba.njit
    def ask(subject):
        return tripled(subject)

    subjects = [namesake(factor)(5) for factor in (3, 4, 5)]
    assert [ask(subject) for subject in subjects] == [15, 20, 25]
    assert [ask(subject) for subject in reversed(subjects)] == [25, 20, 15]


def test_a_class_answers_once():
    with pytest.raises(TypeError, match=r"Loud has an answer to 'tripled' already.*define Loud anew"):
        answers(tripled, Loud)(_tripled)
