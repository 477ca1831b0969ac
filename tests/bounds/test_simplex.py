"""Simplex confidence sets against independent solvers: accurate, and never too narrow."""

import math
from collections.abc import Iterator
from decimal import Decimal, localcontext
from typing import NamedTuple

import numpy as np

from pacplan.bounds.intervals import ball_max as kl_ball_max
from references import ACCURACY, DIGITS, REFERENCE_ERROR, random_radius


class Ball(NamedTuple):
    """Counts and values of the outcomes seen, the value of the others (None: all seen), the radius."""

    counts: list[int]
    values: list[float]
    unseen: float | None
    c: float

    @property
    def spread(self) -> float:
        """Between the values that p can put mass on."""
        every = [*self.values, self.values[0] if self.unseen is None else self.unseen]
        return max(every) - min(every)

    @property
    def size(self) -> float:
        return max(map(abs, [*self.values, 0.0 if self.unseen is None else self.unseen]))

    @property
    def slack(self) -> float:
        """ACCURACY relative to the spread, and the rounding of numbers of the size of the values."""
        return ACCURACY * self.spread + 2e-14 * self.size

    def mirrored(self) -> "Ball":
        unseen = None if self.unseen is None else -self.unseen
        return self._replace(values=[-f for f in self.values], unseen=unseen)


def ball_max(ball: Ball) -> float:
    p = [count / sum(ball.counts) for count in ball.counts]
    unseen = -math.inf if ball.unseen is None else ball.unseen
    return kl_ball_max(p, ball.values, len(p), unseen, ball.c)


# The optimal p is p_hat_k / (v - f_k), normalised, for the v >= max f at which KL(p_hat, p) = c; or it
# is that at v = `unseen` > max f, scaled down to KL = c, with the rest of the mass on the unseen.
# Written with t = v - max f, and log t as the unknown.
_LEAST_T, _LARGEST_T = 1e-30, 1e12


def exact_max(ball: Ball) -> Decimal:
    """The maximum in high precision, with the exact p_hat."""
    n = sum(ball.counts)
    p = [Decimal(k) / n for k in ball.counts]
    f = [Decimal(x) for x in ball.values]
    c, best = Decimal(ball.c), max(f)
    mixing = ball.unseen is not None and Decimal(ball.unseen) > best
    top = Decimal(ball.unseen) if mixing else best
    if c == 0 or top == min(f):
        return sum(a * b for a, b in zip(p, f, strict=True))

    def primal(t: Decimal) -> tuple[Decimal, Decimal]:
        q = [a / (top - b + t) for a, b in zip(p, f, strict=True)]
        q = [x / sum(q) for x in q]
        distance = sum(a * (a / b).ln() for a, b in zip(p, q, strict=True))
        return distance, sum(a * b for a, b in zip(q, f, strict=True))

    if mixing:
        distance, value = primal(Decimal(0))
        if distance <= c:
            kept = (distance - c).exp()
            return kept * value + (1 - kept) * top

    # Regula falsi (with Illinois' trick, and some bisection) for log KL, nearly straight in log t.
    def excess(z: Decimal) -> Decimal:
        return primal(z.exp())[0].ln() - c.ln()

    low, high = ((Decimal(x) * (top - min(f))).ln() for x in (_LEAST_T, _LARGEST_T))
    below, above = excess(low), excess(high)
    if below <= 0:
        return primal(low.exp())[1]  # Even the least t is feasible, and it is the best.
    side = 0
    for k in range(300):
        z = (low + high) / 2 if k % 5 == 4 else (low * above - high * below) / (above - below)
        level = excess(z)
        if abs(level) < Decimal("1e-26"):
            return primal(z.exp())[1]
        if level > 0:
            low, below, above = z, level, above / 2 if side > 0 else above
        else:
            high, above, below = z, level, below / 2 if side < 0 else below
        side = 1 if level > 0 else -1
    raise AssertionError(f"the reference did not converge for {ball}")


def random_ball(rng: np.random.Generator, least: float) -> Ball:
    outcomes = int(rng.choice([1, 2, 3, 10]))
    seen = outcomes if rng.random() < 0.4 else int(rng.integers(1, outcomes + 1))
    n = max(seen, int(rng.choice([1, 5, 30, 1000, 10**6])))
    shares = rng.dirichlet(np.full(seen, rng.choice([0.1, 1.0, 10.0])))
    counts = (1 + rng.multinomial(n - seen, shares)).tolist()
    f = rng.random(seen)
    f = rng.choice(
        [
            f,
            np.round(2 * f) / 2,  # Many equal values.
            -10 * f,
            1e6 + f * 10 ** -rng.uniform(0, 3),
            f * 10 ** rng.uniform(-8, 8),
            10 ** -rng.uniform(0, 9, seen),
        ]
    )
    low, high = f.min(), f.max()
    width = high - low or 1.0
    beyond = width * 10 ** rng.uniform(-9, 3)
    unseen = None
    if seen < outcomes:
        unseen = float(rng.choice([high, low, high + beyond, low - beyond, rng.uniform(low, high)]))
    return Ball(counts, f.tolist(), unseen, random_radius(rng, least))


def corners() -> Iterator[Ball]:
    seen = {
        1: [([1], [0.4]), ([50], [-3.0])],
        2: [([1, 1], [0.0, 1.0]), ([1, 99], [0.2, 0.2]), ([999, 1], [-5.0, 2.0])],
        3: [([1, 2, 3], [0.3, 0.1, 0.2]), ([5, 5, 5], [1e6, 1e6 + 1, 1e6 + 0.5])],
        10: [(list(range(1, 11)), [k / 7 for k in range(10)]), ([10**6] + [1] * 9, [1.0] + [0.0] * 9)],
    }
    for lists in seen.values():
        for counts, f in lists:
            middle = (max(f) + min(f)) / 2
            for unseen in (None, max(f) + 1, max(f) + 1e-3, max(f), middle, min(f), min(f) - 1):
                for c in (0.0, 1e-12, 1e-3, 0.3, 1.0, 5.0, 50.0):
                    yield Ball(counts, f, unseen, c)


def assert_outer(ball: Ball) -> None:
    """Exactly: not inside the true interval, and outside it by the slack at most."""
    with localcontext(prec=DIGITS):
        excesses = [Decimal(ball_max(b)) - exact_max(b) for b in (ball, ball.mirrored())]
        # Where the solution is a closed formula, its last rounding is all that is not covered.
        closed = len(ball.counts) == 1 or ball.c == 0 or len(set(ball.values)) == 1
        inward = Decimal(2 * math.ulp(ball.size)) if closed else REFERENCE_ERROR * Decimal(ball.size)
        for excess in excesses:
            assert -inward <= excess <= Decimal(ball.slack), ball


def test_ball_errs_outwards_at_the_corners_and_anywhere():
    rng = np.random.default_rng(7)
    for ball in [*corners(), *(random_ball(rng, least=1e-14) for _ in range(400))]:
        assert_outer(ball)


# Where the steps of Newton's method once went astray.
ASTRAY = (
    Ball([5, 7, 8], [0.978, 0.204, 0.327], 1.0, 0.6334977115731812),
    Ball([5, 9, 6], [0.99, 0.77, 0.72], 1.0, 0.8558506674716682),
    Ball([1, 1, 2, 1], [0.22, 0.99, 0.12, 0.24], 1.0, 0.8382613077987711),
    Ball([7, 16, 7, 10, 10], [0.958, 0.08, 0.533, 0.043, 0.171], 1.0, 0.499916878632842),
    Ball([1, 260984, 16320], [2.38e-14, 5.84e-14, 8.77e-10], None, 10.443219986565495),
    Ball([1, 1211, 2379651, 1], [0.9999999999964382, 0.99975, 0.99154, 0.99997], None, 1.954),
)


def test_ball_where_it_is_difficult():
    rng = np.random.default_rng(8)
    difficult = [*ASTRAY]
    for _ in range(200):
        # As early in a search, an unseen value just beyond the best one. The stationarity condition is
        # then flat near v = unseen, and steep just after.
        seen = int(rng.integers(2, 6))
        counts = (1 + rng.multinomial(int(rng.integers(0, 60)), np.full(seen, 1 / seen))).tolist()
        f = rng.random(seen)
        f[rng.integers(seen)] = 1 - 10 ** -rng.uniform(1, 6)
        difficult.append(Ball(counts, f.tolist(), 1.0, float(2 * rng.random())))
        # A radius around the one from which on the unseen outcome gets mass.
        p, f = np.array(counts) / sum(counts), rng.random(seen)
        unseen = float(f.max() + rng.random())
        q = p / (unseen - f)
        switch = float(p @ np.log(p / (q / q.sum())))
        if switch > 1e-9:
            c = switch * (1 + rng.choice([-1, 1]) * 10 ** -rng.uniform(1, 16))
            difficult.append(Ball(counts, f.tolist(), unseen, float(c)))
    for ball in difficult:
        assert_outer(ball)
