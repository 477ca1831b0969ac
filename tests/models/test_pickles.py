"""Equal content has equal bytes, different content has not, and bytes bring it back."""

import copy
import dataclasses
import enum
import random
import threading

import numpy as np
import pytest

from pacplan.models.pickles import Pickles, UnpicklableError, content, content_or_none

SHARED = [1]


class Plain:
    def __init__(self, **attributes):
        vars(self).update(attributes)


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: float


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


def looped(**attributes):
    made = Plain(**attributes)
    made.itself = made
    return made


def local_class():
    class Local:
        pass

    return Local


SAME = [
    (float("nan"), float("nan")),
    (frozenset([3, 1, 9, 17]), frozenset([17, 9, 1, 3])),
    (np.arange(6).reshape(2, 3), np.asfortranarray(np.arange(6).reshape(2, 3))),
    ([Frozen(1.0)] * 2, [Frozen(1.0), Frozen(1.0)]),
    (((1, 2),) * 2, ((1, 2), (1, 2))),
    (["word"] * 2, ["word", "".join(["wo", "rd"])]),
    (looped(), looped()),
    (Plain(dice=random.Random(1)), Plain(dice=random.Random(2))),
    (np.random.default_rng(1), np.random.default_rng(2)),
]
DIFFERENT = [
    (0.0, -0.0),
    (np.zeros(1), -np.zeros(1)),
    (1, 1.0),
    (1, True),
    ([1, 2], (1, 2)),
    (np.float64(1.0), 1.0),
    (np.zeros(2, np.int64), np.zeros(2, np.float64)),
    (np.zeros((2, 3)), np.zeros((3, 2))),
    ([SHARED, SHARED], [[1], [1]]),
    (looped(), Plain(itself=looped())),
    (Colour.RED, Colour.BLUE),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    (lambda: 1, lambda: 1),
    (local_class(), local_class()),
    (object(), object()),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same(one, other):
    assert content(one) == content(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different(one, other):
    assert Pickles().dumps(one) != Pickles().dumps(other)


@pytest.mark.parametrize("thing", [one for one, _ in SAME + DIFFERENT])
def test_what_is_brought_back_has_the_same_content(thing):
    pickles = Pickles()
    data = pickles.dumps(thing)
    assert pickles.dumps(pickles.loads(data)) == data
    assert content(copy.deepcopy(thing)) == content(thing) or type(thing) is object


@pytest.mark.parametrize("thing", [threading.Lock(), (i for i in ())])
def test_what_cannot_be_pickled(thing):
    assert content_or_none([1, thing]) is None
    with pytest.raises(UnpicklableError):
        Pickles().dumps(Plain(inside=thing))


def test_references_are_not_looked_into():
    one, other = Plain(a=1), Plain(a=1)
    pickles = Pickles([one, other])
    data = pickles.dumps([one])
    assert data != pickles.dumps([other]) and pickles.loads(data)[0] is one
    one.a = 2
    assert pickles.dumps([one]) == data
    twin = Plain(a=3)
    assert pickles.dumps([twin], {id(twin): pickles.numbers[id(one)]}) == data
