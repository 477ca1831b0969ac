"""What is done in parts: in order, so many ahead."""

from concurrent.futures import Executor, Future
from itertools import count, islice

from pacplan.parallel.batches import in_order
from pacplan.parallel.pools import InProcess


class ByHand(Executor):
    """Computes when it is told to."""

    def __init__(self):
        self.given = []

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        self.given.append((future, fn, args))
        return future

    def compute(self, place):
        future, fn, args = self.given[place]
        if future.set_running_or_notify_cancel():
            future.set_result(fn(*args))


def tenfold(offset, part):
    return offset + 10 * part


def test_results_are_given_in_order():
    pool, places = ByHand(), iter([1, 0])
    # `given_up` is not true.
    found = in_order(pool, (tenfold, 1), count(), 3, given_up=lambda: pool.compute(next(places)))
    assert [future.result() for future in islice(found, 2)] == [1, 11]
    found.close()
    # What was not begun is never done.
    assert [future.cancelled() for future, _, _ in pool.given[:3]] == [False, False, True]


def test_nobody_waits_who_has_given_up():
    pool = ByHand()
    assert list(in_order(pool, (tenfold, 1), count(), 3, given_up=lambda: True)) == []
    assert [future.cancelled() for future, _, _ in pool.given] == [True, True, True]


def test_no_more_is_read_than_can_be_handed_over():
    read = []
    parts = (read.append(i) or i for i in count())
    pool = ByHand()
    found = in_order(pool, (tenfold, 0), parts, 4, given_up=lambda: pool.compute(0))
    assert next(found).result() == 0
    assert read == [0, 1, 2, 3]
    here = in_order(InProcess(), (tenfold, 0), parts, 4)
    assert [future.result() for future in islice(here, 2)] == [40, 50]
    assert read == [0, 1, 2, 3, 4, 5]
