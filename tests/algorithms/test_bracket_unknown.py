"""Bracket without a number of successors: the set of transitions, its shares, and what they rest on."""

import math

import numpy as np
import pytest
from scipy.special import gammaln

import pacplan
from hard_problems import Kind, check_bounds, lens_on_searches, most, violations
from pacplan.algorithms.bracket.constants import DISCOUNT, STRENGTH
from pacplan.testing.problems import Hidden

lens = pytest.fixture(lens_on_searches)

LAWS = {
    "one": np.ones(1),
    "two": np.array([0.97, 0.03]),
    "uniform": np.full(60, 1 / 60),
    "Zipf": 1.0 / np.arange(1, 500) ** 1.5,
    "geometric": 0.5 ** np.arange(1, 40),
}


def log_predicted(counts):
    """The log of Pitman and Yor's probability of a sequence, by its counts, in closed form."""
    n, m = counts.sum(), len(counts)
    return (
        gammaln(counts - DISCOUNT).sum()
        - m * gammaln(1.0 - DISCOUNT)
        + np.log(STRENGTH + DISCOUNT * np.arange(1, m)).sum()
        - gammaln(STRENGTH + n)
        + gammaln(STRENGTH + 1.0)
    )


def entropy(counts):
    counts = np.maximum(counts, 1)
    return float((counts * np.log(counts)).sum())


def fan(width):
    """One step to one of many states, then a reward that depends on the state."""

    def step(state, action, rng):
        if state < 0:
            return int(rng.geometric(0.3 + 0.1 * action)) % width, 0.5, False
        return state, (state % 3) / 2.0, False

    return pacplan.Simulator(step, actions=2)


def test_what_was_predicted_is_the_closed_form(lens):
    pacplan.Bracket(epsilon=0.1, delta=0.1, gamma=0.9, horizon=2).plan(fan(40), -1, seed=0, budget=3000)
    (search,) = lens.last
    tree, checked = search.tree, 0
    for link in tree.tried(0):
        counts = np.array([tree.nodes[outcome.node]["count"] for outcome in tree.outcomes(link)])
        assert counts.sum() == tree.pairs[link]["n"] and len(counts) > 5
        assert tree.pairs[link]["predicted"] == pytest.approx(log_predicted(counts), rel=1e-12)
        checked += 1
    assert checked == 2


def wealth(law, runs, calls, rng, forgotten):
    """Largest log of Pred / prod p_k^(n_k - forgotten), at some times, of each run."""
    p = law / law.sum()
    largest = np.full(runs, -np.inf)
    for run in range(runs):
        draws = rng.choice(len(p), size=calls, p=p)
        for n in np.unique(np.geomspace(1, calls, 12).astype(int)):
            outcomes, counts = np.unique(draws[:n], return_counts=True)
            truth = ((counts - forgotten) * np.log(p[outcomes])).sum()
            largest[run] = max(largest[run], log_predicted(counts) - truth)
    return largest


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_the_truth_is_seldom_outside_the_ball(law):
    # By Ville's inequality the wealth exceeds 1/delta with probability delta at most.
    runs, rng = 800, np.random.default_rng(1)
    largest = wealth(law, runs, 300, rng, forgotten=1)
    for delta in (0.5, 0.1):
        assert (largest >= math.log(1 / delta)).sum() <= most(runs, delta)


@pytest.mark.parametrize("law", ["uniform", "Zipf"])
def test_first_calls_of_an_outcome_must_not_be_counted(law):
    # A new outcome is predicted as new, not as the one that it is: its own probability is smaller.
    largest = wealth(LAWS[law], 200, 300, np.random.default_rng(1), forgotten=0)
    assert (largest >= math.log(2)).sum() > most(200, 0.5)


def prices(search):
    """Of each node that holds a state's actions: its depth, number of actions, and exp(price)."""
    tree = search.tree
    for node in range(len(tree.nodes)):
        record = tree.nodes[node]
        if record["actions"] > 0:
            yield node, int(record["depth"]), int(record["actions"]), math.exp(record["price"])


def plan_untold(lens):
    planner = pacplan.Bracket(epsilon=0.1, delta=0.1, gamma=0.9, horizon=4)
    table = Hidden(pacplan.envs.garnet(states=12, actions=3, successors=4, seed=3))
    planner.plan(table, 0, seed=0, budget=4000)
    return lens.last[0]


def test_shares_of_a_tree_are_those_of_its_order_of_discovery(lens):
    search = plan_untold(lens)
    tree, sums = search.tree, {}
    for node, depth, _, inverse in prices(search):
        assert (inverse == 1.0) == (node == 0)
        for link in tree.tried(node):
            outcomes = [outcome.node for outcome in tree.outcomes(link)]
            shares = sorted(math.exp(-tree.nodes[child]["price"]) * inverse for child in outcomes)
            expected = sorted(1 / (j * (j + 1)) for j in range(1, len(outcomes) + 1))
            assert shares == pytest.approx(expected)
            sums[depth] = max(sums.get(depth, 0.0), sum(shares))
    assert set(sums) >= {0, 1, 2} and max(sums.values()) <= 1.0


KINDS = (Kind(2, 2, 3), Kind(3, 2, 2, noise="none"), Kind(3, 2, 4, ends=True, reward_range=(-1.0, 1.0)))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_bounds_hold(lens, kind):
    check_bounds(kind, 150, 0.5, told=False)


@pytest.mark.statistical
@pytest.mark.parametrize("delta", [0.1, 0.5])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_bounds_hold_in_thousands_of_runs(lens, kind, delta):
    check_bounds(kind, 2000, delta, budget=3000, seed=1, told=False)


def test_the_check_fails_when_bounds_are_sold_below_cost(lens):
    lens.above = 12.0
    assert violations(KINDS[0], 100, delta=0.5, told=False)[0] > most(100, 0.125)


def test_unboundedly_many_successors():
    def poisson(stock, order, rng):
        sold = min(stock + order, int(rng.poisson(3.0)))
        return stock + order - sold, min(1.0, sold / 10), False

    model = pacplan.Simulator(poisson, actions=4)
    plan = pacplan.Bracket(epsilon=0.5, delta=0.1, gamma=0.8, horizon=3).plan(model, 2, seed=0)
    assert plan.certified and not any("successor" in clause for clause in plan.assumptions)


def test_wide_pairs_make_room(lens):
    planner = pacplan.Bracket(epsilon=0.05, delta=0.1, gamma=0.9, horizon=2)
    planner.plan(
        pacplan.Simulator(lambda s, a, rng: (int(rng.integers(5000)), 0.5, False), actions=2),
        0,
        seed=0,
        budget=3000,
    )
    assert lens.last[0].arrays["settings"][0]["widest"] > 600
