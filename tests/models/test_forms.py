"""Canonical forms: the same for the same content, and for nothing else."""

import collections
import copy
import dataclasses
import enum
import functools
import itertools
import random
import threading
from fractions import Fraction

import numpy as np
import pytest

from pacplan.models import forms
from pacplan.models.forms import UnidentifiedError, form


class Plain:
    def __init__(self, **attributes):
        vars(self).update(attributes)


class Slots:
    __slots__ = ("__dict__", "__hidden", "left", "right")

    def __init__(self, left, hidden=None):
        self.left, self.__hidden = left, hidden


class Ezpickled(Plain):
    """Says nothing of its state when it is pickled."""

    def __getstate__(self):
        return {}


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: float


class Colour(enum.Enum):
    RED = enum.auto()
    BLUE = enum.auto()


class Listed(list):
    pass


Point = collections.namedtuple("Point", "x y")
SHARED = [1]
STRUCTURED = np.zeros(2, [("a", "i4"), ("b", "f8")])


def listed(content, **attributes):
    made = Listed(content)
    vars(made).update(attributes)
    return made


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
    ([1, [2.5, "x"]], [1, [2.5, "x"]]),
    ({3, 1, 2}, {1, 2, 3}),
    (frozenset({("a", 1), ("b", 2)}), frozenset({("b", 2), ("a", 1)})),
    (np.arange(6).reshape(2, 3), np.asfortranarray(np.arange(6).reshape(2, 3))),
    (np.arange(8)[::2], np.array([0, 2, 4, 6])),
    ([Frozen(1.0)] * 2, [Frozen(1.0), Frozen(1.0)]),
    (((1, 2),) * 2, ((1, 2), (1, 2))),
    (Plain(a=1, b=[2]), Plain(b=[2], a=1)),
    (looped(), looped()),
    (np.random.default_rng(1), np.random.default_rng(2)),
    (Plain(dice=random.Random(1)), Plain(dice=random.Random(2))),
    (collections.deque([1], 3), collections.deque([1], 3)),
    (itertools.count(3), itertools.count(3)),
    (Slots(1, 2), Slots(1, 2)),
    (functools.partial(max, 3), functools.partial(max, 3)),
    (Fraction(1, 2), Fraction(2, 4)),
    (STRUCTURED[0], STRUCTURED.copy()[0]),
]
DIFFERENT = [
    (0.0, -0.0),
    ([0.0], [-0.0]),
    (np.zeros(1), -np.zeros(1)),
    (1, 1.0),
    (1, True),
    ([1, 2], (1, 2)),
    ([1, 0], [True, False]),
    (np.float64(1.0), 1.0),
    (np.int32(1), np.int64(1)),
    (np.zeros(2, np.int64), np.zeros(2, np.float64)),
    (np.zeros((2, 3)), np.zeros((3, 2))),
    ([np.zeros((2, 3))], [np.zeros((3, 2))]),
    (np.array([SHARED, None], object), np.array([[2], None], object)),
    ([SHARED, SHARED], [[1], [1]]),
    (looped(), Plain(itself=looped())),
    (Plain(a=1), Plain(b=1)),
    (Plain(a="b", c=[]), Plain(a=[], b="c")),
    (Plain(), Slots(None)),
    (Slots(1, 2), Slots(1, 3)),
    (Slots(1), Slots(None)),
    (Ezpickled(a=1), Ezpickled(a=2)),
    (listed([1], tag=1), listed([1], tag=2)),
    (listed([1]), listed([2])),
    (listed([1]), [1]),
    (Point(1, 2), (1, 2)),
    (Colour.RED, Colour.BLUE),
    (collections.deque([1], 3), collections.deque([1], 4)),
    (itertools.count(3), itertools.count(4)),
    (collections.defaultdict(list), collections.defaultdict(set)),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    (range(3), range(4)),
    (bytearray(b"a"), bytearray(b"b")),
    (STRUCTURED[0], np.ones(2, STRUCTURED.dtype)[0]),
    (lambda: 1, lambda: 1),
    (local_class(), local_class()),
    (Plain().__repr__, Plain(a=1).__repr__),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same(one, other):
    assert form(one) == form(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different(one, other):
    assert form(one) != form(other)


@pytest.mark.parametrize(
    "thing", [one for one, _ in SAME + DIFFERENT if not isinstance(one, Ezpickled)]
)
def test_copies_have_the_form_of_the_original(thing):
    assert form(copy.deepcopy(thing)) == form(thing)


def deep():
    nested = []
    for _ in range(10_000):
        nested = [nested]
    return nested


class Raises:
    __slots__ = ()

    @property
    def __dict__(self):
        raise RuntimeError("no")


@pytest.mark.parametrize(
    "thing", [object(), threading.Lock(), (i for i in ()), memoryview(b"a"), deep(), Raises()]
)
def test_what_cannot_be_seen_has_no_form(thing):
    with pytest.raises(UnidentifiedError):
        form([1, thing])
    with pytest.raises(UnidentifiedError, match="inside holds"):
        form(Plain(inside=thing))


def test_long_forms_are_digests():
    long = [0.0] * 10_000
    assert len(form(long)) == 20
    assert form(long) == form(list(long)) != form([*long[:-1], -0.0])
    with pytest.raises(UnidentifiedError, match="too many parts"):
        form([[i] for i in range(1000)], most=100)


def test_known_objects_stand_for_themselves():
    one, other = Plain(a=1), Plain(a=1)
    known = {id(one): 0, id(other): 1}
    assert form([one], known) != form([other], known)
    changed = form([one], known)
    one.a = 2
    assert form([one], known) == changed


def test_what_is_mutable():
    assert all(map(forms.mutable, ([], {}, set(), np.zeros(1), Plain(), listed([]))))
    assert not any(map(forms.mutable, (1, "a", (1,), frozenset(), np.float64(1), Frozen(1.0))))
