"""What the proof of Atlas forbids is noticed: an Atlas that does it gives wrong answers.

The honest one may be given any functions and any claims (docs/atlas.md): no false one is accepted, but
with probability delta.
"""

import math
from contextlib import ExitStack
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from scipy.stats import binom

import pacplan
from pacplan.algorithms.atlas import claims as claims_module
from pacplan.algorithms.atlas import design, records, search
from pacplan.algorithms.atlas.system import Sides
from pacplan.testing import verify

LUCK = 1e-6
RIGHT, WRONG = 0, 1


def certified(model, plans, *patches, budget=20_000, **settings):
    """How many plans are certified, if attributes (owner, name, value) are others."""
    planner = pacplan.Atlas(**settings)
    with ExitStack() as stack:
        for patch in patches:
            stack.enter_context(mock.patch.object(*patch))
        found = [planner.plan(model, 0, seed=seed, budget=budget) for seed in range(plans)]
    return sum(plan.certified for plan in found)


def too_many(wrong, plans, delta):
    return wrong > binom.isf(LUCK, plans, delta)


# Claims left out: the planner insists on the wrong action, and on functions that make it look good.

# The root; where its actions lead; and a state that all return to.
ROOT, GOOD, BAD, HUB = range(4)
GAMMA, MARGIN = 0.8, 0.03
REWARDS = np.full((4, 2), 0.5)
REWARDS[GOOD], REWARDS[BAD] = 0.9, 0.3
AFTER = np.array([[GOOD, BAD], [HUB, HUB], [HUB, HUB], [ROOT, ROOT]])
SETTINGS = {"epsilon": 0.2, "delta": 1e-3, "gamma": GAMMA}


def fork():
    return pacplan.TabularMDP(np.ones((4, 2, 1)), REWARDS, AFTER[..., np.newaxis])


def function(sign, horizon, *, lie=None, shift=0.0, z=None, v=0.0):
    """What claims from above (sign 1) or below allow with a margin, [step, state].

    It believes that the actions of one state pay more than they do, or less.
    """
    rewards = REWARDS.copy()
    if lie is not None:
        rewards[lie[0]] += lie[1]
    values, rows = np.zeros(4), []
    for _ in range(horizon or 200):
        if z is not None:
            values[z] = v
        pairs = rewards + sign * (MARGIN + shift) + GAMMA * values[AFTER]
        values = pairs.max(1) if sign > 0 else np.append(pairs[ROOT, WRONG], pairs[1:, 0])
        rows.insert(0, values)
    if z is not None:
        values[z] = v
    return np.array(rows if horizon else rows[:1])


# What is left out, by its place among the parts of the claims; the reference; and the lie about it.
LEFT_OUT = {
    "1": (0, None, {"above": (GOOD, -2.0)}),
    "2": (1, None, {"below": (BAD, 2.0)}),
    "5 others": (2, None, {}),
    "5 own": (3, None, {"low": 1.5}),
    "3": (2, HUB, {"over": (GOOD, -2.0)}),
    "4": (3, HUB, {"under": (BAD, 2.0)}),
    "5 others, around": (4, HUB, {}),
    "5 own, around": (5, HUB, {"low": 1.5}),
}


def misled(z, lies, horizon):
    """A designer that claims what the lies say."""

    class Misled(design.Designer):
        def best_design(self, accuracy, evidence, references):
            yield
            self.best = WRONG
            self.policy[:, ROOT] = WRONG
            above, below = (
                function(sign, horizon, lie=lies.get(name))
                for sign, name in ((1, "above"), (-1, "below"))
            )
            over, under = above[0], below[0]
            first = min(1, len(above) - 1)
            own = below[first, BAD]
            if z is not None:
                v = self.values[0, z]
                loss, gain = (1.0 - GAMMA) * (v - below[0, z]), (1.0 - GAMMA) * (above[0, z] - v)
                over = function(1, None, lie=lies.get("over"), shift=loss, z=z, v=v)[0]
                under = function(-1, None, lie=lies.get("under"), shift=gain, z=z, v=v)[0]
                own = under[BAD]
            low = REWARDS[ROOT, WRONG] + GAMMA * own - MARGIN + lies.get("low", 0.0)
            return self._claimed(Sides(above, below, over, under, low), evidence, z, accuracy)

    return search, "Designer", Misled


def without(number):
    """All parts of the claims but one."""
    honest = claims_module.claims_of

    def claims_of(parts, *others):
        return honest(parts[:number] + parts[number + 1 :], *others)

    return design, "claims_of", claims_of


# With a horizon there are no references.
WITH_HORIZON = [(name, 3) for name, (_, z, _) in LEFT_OUT.items() if z is None]


@pytest.mark.parametrize(("left_out", "horizon"), [*((name, None) for name in LEFT_OUT), *WITH_HORIZON])
def test_no_claim_may_be_left_out(left_out, horizon):
    number, z, lies = LEFT_OUT[left_out]
    deceived, settings = misled(z, lies, horizon), SETTINGS | {"horizon": horizon}
    assert certified(fork(), 3, deceived, **settings) == 0
    assert certified(fork(), 3, deceived, without(number), **settings) == 3


class Rash(design.Designer):
    """Of the first of H steps nothing is claimed but what the actions are worth."""

    def _claimed(self, sides, *rest):
        sides.above[0, 0] = 0.0
        return super()._claimed(sides, *rest)


def test_what_is_not_claimed_bounds_nothing():
    with mock.patch.object(search, "Designer", Rash):
        plan = pacplan.Atlas(**SETTINGS, horizon=3).plan(fork(), 0, seed=0)
    best = 0.5 + GAMMA * (0.9 + GAMMA * 0.5)
    assert plan.certified and plan.upper.max() >= best and plan.policy.upper[0, 0] >= best


# -- an end that is worth 0 where values are counted from a reference on


def exit_or_stay():
    """The root's right action stays, the wrong one ends."""
    p = np.zeros((2, 2, 2))
    p[0, RIGHT, 0] = p[0, WRONG, 1] = p[1, :, 1] = 1.0
    return pacplan.TabularMDP(p, np.array([[0.5, 1.0], [0.0, 0.0]]), terminal=[1])


class Exiting(design.Designer):
    """It takes the reference, which is the root, for worth 2 less than it is."""

    def best_design(self, accuracy, evidence, references):
        yield
        self.best = self.policy[0, 0] = WRONG
        self.values = np.full_like(self.values, 0.5)
        above, below = np.full_like(self.values, 2.6), np.full_like(self.values, 0.9)
        return self._claimed(Sides(above, below, above[0], below[0], 0.9), evidence, 0, accuracy)


class Forgetful(Exiting):
    """It forgets that with a reference an end is worth something."""

    def _functions(self, kinds):
        return super()._functions([(rows, 0.0, outside) for rows, _, outside in kinds])


def test_with_a_reference_an_end_is_worth_something():
    assert certified(exit_or_stay(), 3, (search, "Designer", Exiting), **SETTINGS) == 0
    assert certified(exit_or_stay(), 3, (search, "Designer", Forgetful), **SETTINGS) == 3


# -- evidence: every round has one claim, false by nearly nothing, about the luckiest arm so far

ARMS, MEAN, PLANS, DELTA = 20, 0.5, 50, 0.2


class Lucky(design.Designer):
    """Of many claims that are false by nearly nothing it chooses the one that seems to be truest."""

    def best_design(self, accuracy, evidence, references):
        found = yield from super().best_design(accuracy, evidence, references)
        luckiest = self.found.mean(self.found.reward).argmin()
        part = np.array([luckiest]), np.array([1]), np.array([MEAN - 1e-6]), 1.0
        one = claims_module.claims_of([part], found.functions, (0.0, 1.0), 1.0)
        need = np.where(np.arange(ARMS) == luckiest, 20.0, 0.0)
        return replace(found, claims=one, need=need, learn=np.zeros_like(need))


def bold(claims, *_):
    """Always the same stake; what has lost much seems hopeless."""
    return claims.sign * 0.25 / claims.room, np.full(len(claims.sign), 2e-3)


def counts_what_was_before(self, found, room):
    """A round in which the calls before it are evidence."""
    BEGIN(self, found, room)
    before, every = self.estimate(0.0, 1.0), np.ones(len(self.claims), bool)
    _, rate = claims_module.stakes(found.claims, self.functions, every, before, (0.0, 1.0), 1.0)
    self.claims["wealth"] = rate * before.calls[found.claims.pair]


def looks_ahead(self, todo):
    """Batches that lost were not bet on."""
    if len(self.claims):
        now = self.claims["wealth"]
        now[:] = np.maximum(now, KEPT.get("wealth", now) if now.any() else now)
        KEPT["wealth"] = now.copy()
    ORDER(self, todo)


def does_not_share(self, found, evidence):
    """Every round has all of delta."""
    return PROVE(self, found, -math.log(self._delta))


KEPT = {}
BEGIN, ORDER, PROVE = records.Records.begin, records.Records.order, search.AtlasSearch._prove
EVIDENCE = {
    "calls before the round count": (records.Records, "begin", counts_what_was_before),
    "stakes look ahead": (records.Records, "order", looks_ahead),
    "delta is not shared": (search.AtlasSearch, "_prove", does_not_share),
}


def luckily(*patches):
    """How many plans are certified with claims that are all false."""
    arms = pacplan.TabularMDP(
        np.ones((1, ARMS, 1)),
        np.full((1, ARMS), MEAN),
        np.zeros((1, ARMS, 1), np.int64),
        noise="bernoulli",
    )
    settings = {"epsilon": 0.2, "delta": DELTA, "gamma": 1.0, "horizon": 1}
    rules = (search, "Designer", Lucky), (search, "stakes", bold), (search, "_HARDER", 0.0)
    return certified(arms, PLANS, *rules, *patches, budget=2000, **settings)


def test_claims_that_are_false_by_nothing_are_accepted_as_seldom_as_delta_says():
    often = luckily()
    assert often > 0 and not too_many(often, PLANS, DELTA)


@pytest.mark.parametrize("sabotage", EVIDENCE)
def test_evidence_is_counted_as_the_proof_says(sabotage):
    assert too_many(luckily(EVIDENCE[sabotage]), PLANS, DELTA)


# -- states never seen


def best_seen(self, kinds):
    """States never seen are worth what the best of those that were seen is, or the worst."""
    seen = []
    for number, (rows, end, out) in enumerate(kinds):
        out = out.copy()
        out[: len(rows)] = rows.min(1) if number % 2 else rows.max(1)
        seen.append((rows, end, out))
    return FUNCTIONS(self, seen)


FUNCTIONS = design.Designer._functions
UNSEEN = {
    "nothing": (design.Designer, "_functions", FUNCTIONS),
    "worth the best seen": (design.Designer, "_functions", best_seen),
    "impossible": (records.Records, "closed", property(lambda self: True)),
}


def verdict(sabotage, family, plans):
    with mock.patch.object(*UNSEEN[sabotage]):
        return verify("atlas", families=[family], plans=plans)


@pytest.mark.parametrize("sabotage", ["worth the best seen", "impossible"])
def test_states_never_seen_count(sabotage):
    assert not verdict(sabotage, "late", 40).ok


@pytest.mark.statistical
@pytest.mark.parametrize("family", ["late", "late-bounded", "late-steps"])
@pytest.mark.parametrize("sabotage", UNSEEN)
def test_states_never_seen_count_wherever_they_come_late(sabotage, family):
    assert verdict(sabotage, family, 400).ok == (sabotage == "nothing")
