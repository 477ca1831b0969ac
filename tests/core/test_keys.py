"""Actions and observations are compared by what they hold."""

import dataclasses

import numpy as np
import pytest

from pacplan.core.keys import all_distinct, key_of, place, same, told_apart


class Unhashable:
    __hash__ = None

    def __eq__(self, other):
        return True


def test_what_holds_the_same_is_the_same():
    one = {"b": np.arange(3), "a": [1, (2.0, "x")]}
    other = {"a": (np.int64(1), [2.0, "x"]), "b": np.arange(3)}
    assert same(one, other) and key_of(one) == key_of(other)
    assert not same(one, {**one, "b": np.arange(3.0)})
    assert not same(np.zeros(2), np.zeros((2, 1)))
    assert same(np.array([np.nan]), np.array([np.nan]))
    large = np.zeros(5000)
    assert same(large, large.copy()) and not same(large, large + 1.0)


@dataclasses.dataclass(frozen=True)
class Point:
    x: float
    y: tuple


def test_zeros_of_both_signs_are_told_apart():
    for make in (
        lambda zero: zero,
        np.float64,
        lambda zero: complex(1.0, zero),
        lambda zero: ("x", (1, zero)),
        lambda zero: frozenset([zero]),
        lambda zero: Point(1.0, (zero, 0.0)),
    ):
        plus, minus = make(0.0), make(-0.0)
        assert plus == minus and told_apart(plus) is plus
        keys = {told_apart(plus): "+", told_apart(minus): "-"}
        assert keys[told_apart(make(0.0))] == "+" and keys[told_apart(make(-0.0))] == "-"
        assert not same(plus, minus) and same(minus, make(-0.0))
    assert told_apart((0.0, -0.0)) != told_apart((-0.0, 0.0))
    assert told_apart(("a", 1, None, 2.5)) == ("a", 1, None, 2.5)


def test_what_cannot_be_hashed_is_the_same_only_as_itself():
    thing = Unhashable()
    assert same(thing, thing) and not same(thing, Unhashable())
    assert all_distinct([thing, Unhashable()])
    with pytest.raises(TypeError):
        key_of([thing])


def test_places():
    actions = ({"x": np.array([0])}, {"x": np.array([1])}, {})
    assert [place(action, actions) for action in actions] == [0, 1, 2]
    assert place({"x": np.array([1])}, actions) == 1
    last = actions[-1]
    assert place(last, ({}, last)) == 1  # itself before what holds the same
    with pytest.raises(ValueError, match="not among"):
        place({"x": 1}, actions)
    assert all_distinct(actions) and not all_distinct([*actions, {}])
