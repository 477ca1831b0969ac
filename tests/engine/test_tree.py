"""The layout of the search tree: the pairs of a node lie side by side, also where it was cut out."""

import numpy as np
import pytest

import pacplan
from pacplan.engine.tree import BLOCK, NONE


def grown(actions):
    model = pacplan.envs.garnet(actions=actions, seed=1)
    return pacplan.UCT(gamma=0.9, horizon=8).plan(model, 0, seed=0, budget=20_000).tree


def lists(tree):
    """The pairs of each node, in the order in which they were made."""
    return [list(tree.tried(node))[::-1] for node in range(len(tree))]


def check(tree):
    """Blocks, and the links that spare a walk along the lists."""
    made = lists(tree)
    assert [len(pairs) for pairs in made] == tree.nodes["tried"].tolist()
    held = [pair for pairs in made for pair in pairs]
    assert len(set(held)) == len(held), "a pair belongs to one node"
    for pair in held:
        outcomes = [outcome.node for outcome in tree.outcomes(pair)]
        assert [*outcomes, NONE, NONE][1] == tree.pairs["other"][pair]
    for node, pairs in enumerate(made):
        assert tree.nodes["eldest"][node] == (pairs[0] if pairs else NONE)
        for start in range(1, len(pairs), BLOCK):
            block = pairs[start : start + BLOCK]
            assert block == list(range(block[0], block[0] + len(block)))
            most = min(BLOCK, int(tree.nodes["actions"][node]) - start)
            kept_free = range(block[-1] + 1, block[0] + most)
            assert not set(kept_free) & set(held), "what is kept free belongs to nobody"
            # Links are written with the pair.
            free = tree.pairs[list(kept_free)][["average", "spread", "n", "action"]]
            assert (free == np.zeros((), free.dtype)).all()
            assert block[0] + most <= len(tree.pairs)


@pytest.mark.parametrize("actions", [1, 2, 5, 11])
def test_pairs_lie_side_by_side(actions):
    tree = grown(actions)
    check(tree)
    tried = tree.nodes["tried"]
    assert actions < 3 or ((tried > 1) & (tried < actions)).any(), "some blocks are not full"
