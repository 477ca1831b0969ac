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
from pacplan.testing import verify

LUCK = 1e-6
RIGHT, WRONG = 0, 1


def certified(model, plans, *patches, **settings):
    """How many plans are certified, if attributes (owner, name, value) are others."""
    planner = pacplan.Atlas(**settings)
    with ExitStack() as stack:
        for patch in patches:
            stack.enter_context(mock.patch.object(*patch))
        found = [planner.plan(model, 0, seed=seed, budget=2000) for seed in range(plans)]
    return sum(plan.certified for plan in found)


def too_many(wrong, plans, delta):
    return wrong > binom.isf(LUCK, plans, delta)


# Claims left out: the planner insists on the wrong action, and on functions that make it look good.

# The root; where its actions lead; and a state that all return to.
ROOT, GOOD, BAD, HUB = range(4)


def fork():
    """The root's actions lead to states that pay more and less."""
    p = np.zeros((4, 2, 4))
    p[ROOT, RIGHT, GOOD] = p[ROOT, WRONG, BAD] = 1.0
    p[[GOOD, BAD], :, HUB] = p[HUB, :, ROOT] = 1.0
    rewards = np.full((4, 2), 0.5)
    rewards[GOOD], rewards[BAD] = 0.9, 0.3
    return pacplan.TabularMDP(p, rewards)


def misled(part, pairs, shift, kind):
    """A designer that insists on the wrong action, and on one kind of design.

    In one part of its work it believes that some pairs pay more than they do, or less.
    """

    class Misled(design.Designer):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            self.best = WRONG
            self.policy[:, ROOT] = WRONG
            self.worth[0, [RIGHT, WRONG]] = self.worth[0, [WRONG, RIGHT]]

        def best_design(self, accuracy, evidence, _=None):
            return super().best_design(accuracy, evidence, kind)

    def lying(self, *arguments):
        honest = self._reward
        self._reward = honest.copy()
        self._reward[pairs] += shift
        try:
            return getattr(design.Designer, part)(self, *arguments)
        finally:
            self._reward = honest

    setattr(Misled, part, lying)
    return Misled


def without(number):
    """All parts of the claims but one."""
    honest = claims_module.claims_of

    def claims_of(parts, *others):
        return honest(parts[:number] + parts[number + 1 :], *others)

    return design, "claims_of", claims_of


def pairs_of(state):
    return slice(2 * state, 2 * state + 2)


PLAIN, AROUND, WALK = (
    design.Kind(None, 0.3, 0.0),
    design.Kind(HUB, 0.3, 0.0),
    design.Kind(None, 0.3, 0.3),
)
GOOD_IS_BAD, BAD_IS_GOOD = (pairs_of(GOOD), -0.8), (pairs_of(BAD), 0.8)
RIGHT_IS_BAD, WRONG_IS_GOOD = (slice(RIGHT, RIGHT + 1), -1.5), (slice(WRONG, WRONG + 1), 1.5)
DESIGN = design.Design
NOTHING = (slice(0), 0.0)  # Episodes of the policy are compared with what the best one earns.
NO_WALK = (
    design,
    "Design",
    lambda *, walk, **others: DESIGN(walk=None, **others),
)

LEFT_OUT = {
    "1": (PLAIN, "_bounds", *GOOD_IS_BAD, without(0)),
    "2": (PLAIN, "_bounds", *BAD_IS_GOOD, without(1)),
    "5 others": (PLAIN, "_at_root", *RIGHT_IS_BAD, without(2)),
    "5 own": (PLAIN, "_at_root", *WRONG_IS_GOOD, without(3)),
    "episodes": (WALK, "_bounds", *NOTHING, NO_WALK),
    "3": (AROUND, "_around", *GOOD_IS_BAD, without(2)),
    "4": (AROUND, "_around", *BAD_IS_GOOD, without(3)),
    "5 others, around": (AROUND, "_at_root", *RIGHT_IS_BAD, without(4)),
    "5 own, around": (AROUND, "_at_root", *WRONG_IS_GOOD, without(5)),
}


# With a horizon there are no references.
WITH_HORIZON = [(name, 3) for name, (kind, *_) in LEFT_OUT.items() if kind.reference is None]


@pytest.mark.parametrize(("left_out", "horizon"), [*((name, None) for name in LEFT_OUT), *WITH_HORIZON])
def test_no_claim_may_be_left_out(left_out, horizon):
    kind, part, pairs, shift, sabotage = LEFT_OUT[left_out]
    deceived = search, "Designer", misled(part, pairs, shift, kind)
    settings = {"epsilon": 0.2, "delta": 1e-3, "gamma": 0.8, "horizon": horizon}
    assert certified(fork(), 3, deceived, **settings) == 0
    assert too_many(certified(fork(), 3, deceived, sabotage, **settings), 3, 1e-3)


# -- an end that is worth 0 where values are counted from a reference on


def exit_or_stay():
    """The root's right action stays, the wrong one ends."""
    p = np.zeros((2, 2, 2))
    p[0, RIGHT, 0] = p[0, WRONG, 1] = p[1, :, 1] = 1.0
    return pacplan.TabularMDP(p, np.array([[0.5, 1.0], [0.0, 0.0]]), terminal=[1])


class Exiting(misled("_at_root", slice(0), 0.0, design.Kind(0, 0.3, 0.0))):
    """It takes the reference, which is the root, for worth less than it is."""

    def _around(self, bounds, margins, reference):
        honest = self.values
        self.values = honest - 2.0
        try:
            return super()._around(bounds, margins, reference)
        finally:
            self.values = honest


class Forgetful(Exiting):
    """It forgets that with a reference an end is worth something."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.found.__dict__["ends"] = np.zeros(len(self.found.state))

    def _functions(self, kinds):
        return super()._functions([(rows, 0.0, outside) for rows, _, outside in kinds])


def test_with_a_reference_an_end_is_worth_something():
    settings = {"epsilon": 0.2, "delta": 1e-3, "gamma": 0.8}
    assert certified(exit_or_stay(), 3, (search, "Designer", Exiting), **settings) == 0
    assert too_many(certified(exit_or_stay(), 3, (search, "Designer", Forgetful), **settings), 3, 1e-3)


# -- evidence: every round has one claim, false by nearly nothing, about the luckiest arm so far

ARMS, MEAN, PLANS, DELTA = 20, 0.5, 50, 0.2


class Lucky(design.Designer):
    """Of many claims that are false by nearly nothing it chooses the one that seems to be truest."""

    def best_design(self, accuracy, evidence, kind=None):
        found = super().best_design(accuracy, evidence, PLAIN)
        luckiest = self.found.mean(self.found.reward).argmin()
        part = np.array([luckiest]), np.array([1]), np.array([MEAN - 1e-6]), 1.0
        one = claims_module.claims_of([part], found.functions, (0.0, 1.0), 1.0)
        need = np.where(np.arange(ARMS) == luckiest, 20.0, 0.0)
        return replace(found, claims=one, need=need, learn=np.zeros_like(need), walk=None)


def bold(claims, *_):
    """Always the same stake; what has lost much seems hopeless."""
    return claims.sign * 0.25 / claims.room, np.full(len(claims.sign), 2e-3)


def counts_what_was_before(self, found, problem, room):
    """A round in which the calls before it are evidence."""
    BEGIN(self, found, problem, room)
    low, high = problem.rewards
    before = self.estimate(low, high - low)
    every = np.ones(len(self.claims), bool)
    _, rate = claims_module.stakes(found.claims, self.functions, every, before, problem.gamma)
    self.claims["wealth"] = rate * before.calls[found.claims.pair]


def looks_ahead(self, todo, episodes=0.0):
    """Batches that lost were not bet on."""
    if len(self.claims):
        now = self.claims["wealth"]
        now[:] = np.maximum(now, self.kept if now.any() else now)
        self.kept = now.copy()
    ORDER(self, todo, episodes)


def does_not_share(self, found, evidence):
    """Every round has all of delta."""
    return PROVE(self, found, -math.log(self._delta))


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
    return certified(arms, PLANS, *rules, *patches, **settings)


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
    fails = sabotage != "nothing" and (sabotage, family) != ("impossible", "late-steps")
    assert verdict(sabotage, family, 400).ok != fails
