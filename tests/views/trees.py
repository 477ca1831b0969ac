"""Trees of searches: what they saw, and what they hold, by plain recursion."""

from collections import defaultdict

import pacplan
from every_planner import NAMES

LOW, HIGH = -1.0, 3.0
WITHOUT_TREE = ("atlas", "sparse-sampling", "stop", "trailblazer", "smooth-cruiser")
WITH_TREE = [name for name in NAMES if name not in WITHOUT_TREE]


class Recorder:
    """A simulator whose states are their own histories, so that it can count what a search saw."""

    def __init__(self):
        self.rewards = defaultdict(list)
        self.successors = defaultdict(lambda: defaultdict(int))

    def actions(self, state):
        return ["left", "right", "wait"][: 2 + len(state) // 2 % 2]

    def step(self, state, action, rng):
        to = (*state, action, int(rng.random() < 0.3))
        reward = LOW + (HIGH - LOW) * float(rng.random() < (0.2 if action == "left" else 0.7))
        self.rewards[state, action].append(reward)
        self.successors[state, action][to] += 1
        return to, reward, False

    def model(self):
        promised = {"successors": 2, "max_actions": 3, "reward_range": (LOW, HIGH)}
        return pacplan.Simulator(self.step, actions=self.actions, **promised)


def pairs_of(tree):
    """Every pair of a tree with the nodes from the root to its own, by plain recursion."""
    waiting = [(0,)]
    while waiting:
        path = waiting.pop()
        for pair in tree.tried(path[-1]):
            yield path, pair
            waiting.extend((*path, outcome.node) for outcome in tree.outcomes(pair))
