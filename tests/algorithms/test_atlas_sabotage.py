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


def wrong_answers(model, plans, *patches, **settings):
    """How many plans certify the wrong action, if attributes (owner, name, value) are others."""
    planner = pacplan.Atlas(**settings)
    with ExitStack() as stack:
        for patch in patches:
            stack.enter_context(mock.patch.object(*patch))
        found = [planner.plan(model, 0, seed=seed, budget=2000) for seed in range(plans)]
    return sum(plan.certified and plan.action == WRONG for plan in found)


def too_many(wrong, plans, delta):
    return wrong > binom.isf(LUCK, plans, delta)


# -- claims left out: the planner insists on the wrong action, and on functions that make it look good ---

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


@pytest.mark.parametrize("horizon", [None, 3])
@pytest.mark.parametrize("left_out", LEFT_OUT)
def test_no_claim_may_be_left_out(left_out, horizon):
    kind, part, pairs, shift, sabotage = LEFT_OUT[left_out]
    if kind.reference is not None and horizon is not None:
        pytest.skip("there is no reference with a horizon")
    deceived = search, "Designer", misled(part, pairs, shift, kind)
    settings = {"epsilon": 0.2, "delta": 1e-3, "gamma": 0.8, "horizon": horizon}
    assert wrong_answers(fork(), 3, deceived, **settings) == 0
    assert too_many(wrong_answers(fork(), 3, deceived, sabotage, **settings), 3, 1e-3)
