"""Generic functions in kernels, and classes without a method."""

from typing import NamedTuple

import numba
import pytest

from pacplan.compiled.dispatch import abstract, generic


class Loud(NamedTuple):
    number: int


class Mute(NamedTuple):
    number: int


@generic
def doubled(subject, by):
    return 0


@abstract
def tripled(subject):
    return 0


@doubled.register(Loud)
def _doubled(subject, by):
    return 2 * subject.number + by


@tripled.register(Loud)
def _tripled(subject):
    return 3 * subject.number


@numba.njit
def ask(subject):
    return doubled(subject, 1), tripled(subject)


@numba.njit
def ask_doubled(subject):
    return doubled(subject, 1)


def test_the_class_decides_compiled_or_not():
    assert ask(Loud(5)) == ask.py_func(Loud(5)) == (11, 15)
    assert ask_doubled(Mute(5)) == ask_doubled.py_func(Mute(5)) == 0


@pytest.mark.parametrize("asked", [ask, ask.py_func])
def test_a_class_without_a_method_is_named(asked):
    with pytest.raises(Exception, match=r"Mute has no method 'tripled': .*tripled.register\(Mute\)"):
        asked(Mute(5))


def namesake(factor):
    """A class like others made here, as when a cell of a notebook is run again."""

    class Loud(NamedTuple):
        number: int

    @tripled.register(Loud)
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


def test_a_class_has_one_method():
    with pytest.raises(TypeError, match=r"Loud has a method 'tripled' already.*define Loud anew"):
        tripled.register(Loud)(_tripled)
