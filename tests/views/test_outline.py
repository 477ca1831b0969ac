"""What of a tree is shown."""

import pytest

from every_planner import make, problem
from pacplan.views.explorer import outline
from trees import WITH_TREE


def all_visits(tree):
    """Visits of all boxes by plain recursion, zeros included; the root first."""

    def of_node(node):
        below = [of_pair(pair) for pair in tree.tried(node)]
        own = max(int(tree.nodes[node]["count"]), sum(x[0] for x in below))
        own_box = [] if tree.open_loop and node > 0 else [own]
        return own, [*own_box, *(x for _, boxes in below for x in boxes)]

    def of_pair(pair):
        below = [of_node(outcome.node) for outcome in tree.outcomes(pair)]
        own = max(int(tree.pairs[pair]["n"]), sum(x[0] for x in below))
        return own, [own, *(x for _, boxes in below for x in boxes)]

    return of_node(0)[1]


@pytest.mark.parametrize("name", WITH_TREE)
def test_the_most_visited_boxes_are_shown(name):
    tree = make(name).plan(problem(name), 0, seed=3, budget=2000).tree
    visited = sorted((visits for visits in all_visits(tree) if visits > 0), reverse=True)
    for most in (1, 30, 10**6):
        boxes, total = outline(tree, most)
        assert sorted((box.visits for box in boxes), reverse=True) == visited[:most]
        assert total == len(visited)
