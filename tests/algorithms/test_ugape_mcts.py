"""UGapE-MCTS and LUCB-MCTS, against minimax."""

import numpy as np
import pytest

import pacplan


def minimax(node, maximises=True):
    if not isinstance(node, list):
        return node
    values = [minimax(child, not maximises) for child in node]
    return max(values) if maximises else min(values)


def moves(tree):
    return np.array([minimax(child, maximises=False) for child in tree])


def random_tree(rng, depth):
    if depth == 0 or (depth < 3 and rng.random() < 0.2):
        return float(rng.random())
    return [random_tree(rng, depth - 1) for _ in range(rng.integers(2, 4))]


@pytest.mark.parametrize("rule", ["ugape", "lucb"])
def test_the_move_is_good_and_the_bounds_hold(rule):
    planner = pacplan.UGapEMCTS(epsilon=0.1, delta=0.1, rule=rule)
    rng = np.random.default_rng(0)
    wrong = 0
    for seed in range(150):
        tree = random_tree(rng, depth=int(rng.integers(1, 5)))
        while not isinstance(tree, list):
            tree = random_tree(rng, depth=3)
        plan = planner.plan(pacplan.envs.game_tree(tree), seed=seed)
        values = moves(tree)
        assert plan.certified
        assert plan.gap <= 0.1
        wrong += values.max() - values[plan.action] > 0.1
        wrong += np.any(plan.lower > values) or np.any(plan.upper < values)
    # Promised is an error in 15 games at most, on average.
    assert wrong <= 4


def test_sure_payoffs_are_solved():
    tree = [[0.6, [0.2, 0.3]], [[0.9, 0.1], 0.45], 0.4]
    game = pacplan.envs.game_tree(tree, noise="none")
    plan = pacplan.UGapEMCTS(epsilon=0.01, delta=0.1).plan(game, seed=0)
    np.testing.assert_allclose(plan.values, [0.3, 0.45, 0.4])
    assert plan.action == 1
    assert plan.value == pytest.approx(0.45)
    assert plan.lower.max() <= 0.45 <= plan.upper.max()


def test_moves_whose_outcome_is_known_are_not_asked_for_again():
    asked = []

    def step(path, move, rng):
        asked.append((path, move))
        path = (*path, move)
        if len(path) < 3:
            return path, 0.0, False
        return None, float(rng.random() < 0.3 + 0.05 * sum(path)), True

    model = pacplan.Simulator(step, actions=2, successors=1, initial=(), two_player=True)
    plan = pacplan.UGapEMCTS(epsilon=0.05, delta=0.1).plan(model, seed=0, budget=3000)
    inner = [pair for pair in asked if len(pair[0]) < 2]
    assert len(inner) == len(set(inner)) <= 6
    assert len(asked) == plan.samples
    # MAX, MIN, MAX: 0.3 + .05 (2 + 0) is the value; the second move is MIN's.
    assert plan.action == 1
    assert plan.value == pytest.approx(0.4, abs=0.1)


def test_payoffs_in_other_units():
    def step(state, move, rng):
        return None, 3.0 if rng.random() < (0.8, 0.3)[move] else -1.0, True

    model = pacplan.Simulator(
        step, actions=2, successors=1, reward_range=(-1, 3), initial=0, two_player=True
    )
    plan = pacplan.UGapEMCTS(epsilon=0.4, delta=0.1).plan(model, seed=0)
    assert plan.action == 0
    assert plan.certified
    assert plan.lower[0] <= 0.8 * 3 - 0.2 <= plan.upper[0]
    assert plan.lower[1] <= 0.3 * 3 - 0.7 <= plan.upper[1]
    assert "between" in plan.guarantee


def test_one_move_needs_no_thought():
    plan = pacplan.UGapEMCTS(epsilon=0.1, delta=0.1).plan(pacplan.envs.game_tree([[0.2, 0.4]]), seed=0)
    assert plan.samples == 0
    assert plan.certified


@pytest.mark.parametrize(
    ("step", "match"),
    [
        (lambda s, a, rng: (s + 1, 0.5, s == 3), "only the last move"),
        (lambda s, a, rng: (s, 0.0, False), "not over after 20 moves"),
        (lambda s, a, rng: (1 - s, 0.0, s == 1 or rng.random() < 0.5), "more than the promised 1"),
    ],
)
def test_games_that_are_none(step, match):
    model = pacplan.Simulator(step, actions=2, successors=1, initial=0, two_player=True)
    planner = pacplan.UGapEMCTS(epsilon=0.01, delta=0.1, horizon=20)
    with pytest.raises(pacplan.BrokenPromiseError, match=match):
        planner.plan(model, seed=0, budget=1000)


@pytest.mark.parametrize(
    ("tree", "error", "match"),
    [
        (0.5, TypeError, "list of lists"),
        ([], ValueError, "no move"),
        ([0.5, [[], 0.1]], ValueError, r"\(1, 0\)"),
        ([0.5, 1.5], ValueError, r"\(1,\).*\[0, 1\]"),
        ([0.5, "x"], TypeError, "number"),
        ("0.5", TypeError, "list of lists"),
    ],
)
def test_bad_trees(tree, error, match):
    with pytest.raises(error, match=match):
        pacplan.envs.game_tree(tree)


def test_bad_settings():
    with pytest.raises(ValueError, match="rule"):
        pacplan.UGapEMCTS(epsilon=0.1, delta=0.1, rule="ucb")
    with pytest.raises(ValueError, match="epsilon"):
        pacplan.UGapEMCTS(epsilon=-0.1, delta=0.1)
    random = pacplan.Simulator(
        lambda s, a, rng: (s, 0.0, True), actions=2, successors=2, two_player=True
    )
    with pytest.raises(ValueError, match="successors=1"):
        pacplan.UGapEMCTS(epsilon=0.1, delta=0.1).plan(random, 0)
