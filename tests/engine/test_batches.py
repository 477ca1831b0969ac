"""What is done in parts: in order, so many ahead."""

from concurrent.futures import Future
from itertools import count, islice

from pacplan.parallel.pools import in_order


class ByHand:
    """Computes when it is told to."""

    def __init__(self):
        self.given = []

    def submit(self, part):
        self.given.append((Future(), part))
        return self.given[-1][0]

    def compute(self, place):
        future, part = self.given[place]
        if future.set_running_or_notify_cancel():
            future.set_result(10 * part)


def test_results_are_given_in_order():
    pool, places, read = ByHand(), iter([1, 0]), []
    parts = (read.append(i) or i for i in count())
    # `given_up` is not true.
    found = in_order(pool.submit, parts, 3, given_up=lambda: pool.compute(next(places)))
    assert [future.result() for future in islice(found, 2)] == [0, 10]
    found.close()
    # What was not begun is never done, and no more is read than can be handed over.
    assert [future.cancelled() for future, _ in pool.given] == [False, False, True, True]
    assert read == [0, 1, 2, 3]


def test_nobody_waits_who_has_given_up():
    pool = ByHand()
    assert list(in_order(pool.submit, count(), 3, given_up=lambda: True)) == []
    assert [future.cancelled() for future, _ in pool.given] == [True, True, True]
