"""Merged searches: one node for all ways to a state, bounds that hold, fewer calls."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pacplan
from pacplan import exact
from pacplan.algorithms.mdp_gape.search import _merged_pairs
from pacplan.compiled import interpreted as kernels
from pacplan.engine import merge_table
from pacplan.engine.memory import MemoryBudget
from pacplan.engine.tree import NONE

find, merge = kernels.interpreted(merge_table.find), kernels.interpreted(merge_table.merge)
has_room = kernels.interpreted(merge_table.has_room)

GAMMA, HORIZON = 0.9, 6
# Small enough for no bound of a correct search to fail in any run of this file.
DELTA = 1e-9


def recurring(seed, *, states=5, actions=2, successors=2, noise="bernoulli", ends=False, low=0.0):
    """An MDP with so few states that most are met again and again."""
    rng = np.random.default_rng(seed)
    shape = (states, actions)
    to = rng.permuted(np.broadcast_to(np.arange(states), (*shape, states)), axis=-1)
    return pacplan.TabularMDP(
        rng.dirichlet(np.ones(successors), size=shape),
        low + rng.random(shape),
        successors=to[..., :successors],
        noise=noise,
        reward_range=(low, low + 1.0),
        terminal=[states - 1] if ends else None,
    )


CASES = {
    "two outcomes": ({}, {}),
    "three outcomes, three actions": ({"actions": 3, "successors": 3}, {}),
    "ends": ({"ends": True, "low": -2.0}, {}),
    "goal value": ({}, {"goal": "value"}),
    "one outcome": ({"successors": 1}, {"transitions": "deterministic"}),
    "fixed rewards": ({"noise": "none", "ends": True}, {"rewards": "deterministic"}),
}


def merged(planner=pacplan.MDPGapE, *, epsilon=0.8, delta=DELTA, **options):
    return planner(
        epsilon=epsilon, delta=delta, gamma=GAMMA, **{"horizon": HORIZON, "merge": "depth"} | options
    )


def nodes_with_actions(tree):
    """(depth, node) of all nodes that had an action tried, each once, from the root on."""
    level = [0]
    for depth in range(tree.horizon):
        yield from ((depth, node) for node in level if tree.nodes[node]["first"] != NONE)
        pairs = [pair for node in level for pair in tree.tried(node)]
        level = [outcome.node for pair in pairs for outcome in tree.outcomes(pair)]


@pytest.mark.parametrize(("problem", "options"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("seed", range(3))
def test_bounds_of_all_pairs_hold_and_answers_are_right(problem, options, seed):
    model = recurring(seed, **problem)
    values = exact.finite_horizon(model, gamma=GAMMA, horizon=HORIZON)
    q = values[0, 0]
    plan = merged(**options).plan(model, 0, seed=seed)
    assert plan.certified and q[plan.action] >= q.max() - 0.8
    assert (plan.curve.lower <= q + 1e-9).all() and (plan.curve.upper >= q - 1e-9).all()
    if options.get("goal") == "value":
        assert abs(plan.value - q.max()) <= 0.8
    for depth, node in nodes_with_actions(plan.tree):
        for pair in plan.tree.tried(node):
            record = plan.tree.pairs[pair]
            value = values[depth, plan.tree.state(node), record["action"]]
            assert record["lower"] - 1e-9 <= value <= record["upper"] + 1e-9


@pytest.mark.parametrize(("problem", "options"), CASES.values(), ids=CASES)
def test_a_state_has_one_node_a_depth_and_nothing_reported_is_stale(problem, options):
    plan = merged(**{"epsilon": 0.0} | options).plan(recurring(3, **problem), 0, seed=3, budget=4001)
    tree = plan.tree
    canonical = {}
    for depth, node in nodes_with_actions(tree):
        assert canonical.setdefault((depth, tree.state(node)), node) == node
    visits = 0
    for (depth, _), node in canonical.items():
        for pair in tree.tried(node):
            visits += tree.pairs[pair]["n"]
            for outcome in tree.outcomes(pair):
                state = canonical.get((depth + 1, outcome.state))
                if not outcome.ended and state is not None:
                    for bound in ("lower", "upper"):
                        assert tree.nodes[outcome.node][bound] == tree.nodes[state][bound]
    assert visits == plan.samples
    for pair in tree.tried(0):
        record = tree.pairs[pair]
        assert record["upper"] == plan.upper[record["action"]]
        assert record["lower"] == plan.lower[record["action"]]


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize(("actions", "successors", "horizon"), [(2, 2, 6), (3, 1, 4), (2, 5, 3)])
def test_delta_is_shared_by_all_pairs_in_reach(actions, successors, horizon, ends):
    model = recurring(0, actions=actions, successors=successors, ends=ends)
    _, p, to = model.sparse()
    states, reached = {0}, 0
    for _ in range(horizon):
        reached += actions * len(states)
        states = set(to[sorted(states)][p[sorted(states)] > 0].tolist())
    bound = _merged_pairs(model.states, model.max_actions, model.successors, horizon)
    assert reached <= bound <= actions * model.states * horizon


NUMBERS = st.one_of(
    st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1), st.integers(0, 40).map(lambda k: k << 32)
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(NUMBERS, st.integers(0, 5)), max_size=120))
def test_the_table_is_a_dictionary(keys):
    table, known, room = merge_table.empty_table(2), {}, MemoryBudget()
    for node, (state, depth) in enumerate(keys):
        table = merge_table.grown(table, 1, room)
        assert has_room(table, 1)
        assert find(table, state, depth) == known.get((state, depth), NONE)
        assert merge(table, state, depth, node) == known.setdefault((state, depth), node)
    assert table.used[0] == len(known)
    for (state, depth), node in known.items():
        assert find(table, state, depth) == node
    # A key of another depth is another key.
    for state, depth in known:
        assert find(table, state, depth + 6) == NONE
