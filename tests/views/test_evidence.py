"""What the tree tells of a pair is what the search saw."""

import math
import pickle

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import entropy

import pacplan
from every_planner import make, problem
from trees import HIGH, LOW, WITH_TREE, Recorder, pairs_of


def kl_interval(mean, radius):
    """All q with kl(mean, q) <= radius, by bisection on SciPy's entropy."""

    def excess(q):
        return entropy([mean, 1 - mean], [q, 1 - q]) - radius

    tiny = 1e-12
    low = brentq(excess, tiny, mean) if mean > 0 and excess(tiny) > 0 else 0.0
    high = brentq(excess, mean, 1 - tiny) if mean < 1 and excess(1 - tiny) > 0 else 1.0
    return low, high


def test_the_evidence_of_mdp_gape_is_what_the_model_did():
    seen = Recorder()
    planner = pacplan.MDPGapE(epsilon=0.1, delta=0.1, gamma=0.9, horizon=3)
    plan = planner.plan(seen.model(), (), seed=0, budget=3000)
    checked = 0
    for path, pair in pairs_of(plan.tree):
        state, action = plan.tree.state(path[-1]), plan.tree.action(path[-1], pair)
        rewards = seen.rewards[state, action]
        n = len(rewards)
        assert plan.tree.pairs[pair]["n"] == n
        outcomes = {outcome.state: outcome.count for outcome in plan.tree.outcomes(pair)}
        assert outcomes == ({} if len(path) == 3 else seen.successors[state, action])
        # The thresholds of the paper's Lemma 2.
        size = math.log(3 / 0.1) + 3 * math.log(2 * 3)
        mean = (np.mean(rewards) - LOW) / (HIGH - LOW)
        low, high = kl_interval(mean, (size + math.log(math.e * (1 + n))) / n)
        known = plan.tree.evidence(pair, path)
        assert known.reward == pytest.approx(np.mean(rewards))
        expected = LOW + (HIGH - LOW) * low, LOW + (HIGH - LOW) * high
        assert known.reward_interval == pytest.approx(expected, abs=1e-6)
        if len(path) == 3:  # After the last step nothing is earned: the reward is the value.
            assert (known.lower, known.upper) == pytest.approx(expected, abs=1e-6)
        checked += 1
    assert checked > 50
    roots = {plan.tree.action(0, pair): plan.tree.evidence(pair, (0,)) for pair in plan.tree.tried(0)}
    assert [roots[a].lower for a in plan.actions] == plan.lower.tolist()
    assert [roots[a].upper for a in plan.actions] == plan.upper.tolist()


@pytest.mark.parametrize("name", WITH_TREE)
def test_the_root_tells_what_the_plan_tells(name):
    plan = make(name).plan(problem(name), 0, seed=3, budget=2000)
    copy = pickle.loads(pickle.dumps(plan))
    for pair in plan.tree.tried(0):
        known = plan.tree.evidence(pair, (0,))
        assert copy.tree.evidence(pair, (0,)) == known
        i = plan.actions.index(plan.tree.action(0, pair))
        assert (known.lower is None) == (plan.lower is None)
        if plan.lower is not None:
            assert (known.lower, known.upper) == pytest.approx((plan.lower[i], plan.upper[i]))
        if known.value is not None:
            assert known.value == pytest.approx(plan.values[i])
