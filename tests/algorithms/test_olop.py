"""OLOP and KL-OLOP: what defines them."""

import math
from collections import defaultdict
from itertools import product

import pytest
from scipy.optimize import brentq
from scipy.special import rel_entr

import pacplan
from bandits import pairs_of_root


def kl_upper(mean, level):
    """max{ q : kl(mean, q) <= level }, by bisection."""

    def excess(q):
        return rel_entr(mean, q) + rel_entr(1 - mean, 1 - q) - level

    if mean >= 1 or excess(1 - 1e-15) <= 0.0:
        return 1.0
    return brentq(excess, max(mean, 1e-12), 1 - 1e-15, xtol=1e-14) if level > 0.0 else mean


def olop_upper(episodes):
    return lambda mean, n: mean + math.sqrt(2 * math.log(episodes) / n)


def kl_olop_upper(episodes):
    level = 2 * math.log(episodes) + 2 * math.log(max(math.log(episodes), 1.0))
    return lambda mean, n: kl_upper(mean, level / n)


UPPER = {"olop": olop_upper, "kl-olop": kl_olop_upper}


class Sequences:
    """OLOP from its definition: B-values of all sequences of L actions out of K, by enumeration.

    The bound of a sequence to a depth to which it was never played is infinite.
    """

    def __init__(self, actions, depth, gamma, upper):
        self.all = list(product(range(actions), repeat=depth))
        self.gamma, self.upper = gamma, upper
        self.n, self.rewards = defaultdict(int), defaultdict(float)

    def b_value(self, sequence):
        total, best = 0.0, math.inf
        for h in range(1, len(sequence) + 1):
            n = self.n[sequence[:h]]
            if n == 0:
                break
            total += self.gamma ** (h - 1) * self.upper(self.rewards[sequence[:h]] / n, n)
            best = min(best, total + self.gamma**h / (1 - self.gamma))
        return best

    def learn(self, sequence, rewards):
        for h, reward in enumerate(rewards, 1):
            self.n[sequence[:h]] += 1
            self.rewards[sequence[:h]] += reward


def recorded(table, actions):
    """A simulator over a table, and the actions and rewards of all its calls."""
    calls = []

    def step(state, action, rng):
        successor, reward, ended = table.step(state, action, rng)
        calls.append((action, reward))
        return successor, reward, ended

    return pacplan.Simulator(step, actions=actions, successors=table.successors), calls


@pytest.mark.parametrize("planner", ["olop", "kl-olop"])
@pytest.mark.parametrize("noise", ["bernoulli", "none"])
@pytest.mark.parametrize("gamma", [0.6, 0.95])
def test_every_sequence_played_has_the_largest_b_value(planner, noise, gamma):
    # Sequences and first actions never played included.
    actions, depth, episodes = 3, 3, 40
    table = pacplan.envs.garnet(states=20, actions=actions, seed=5, noise=noise)
    made = pacplan.planners[planner](gamma=gamma, horizon=depth)
    for seed in range(4):
        model, calls = recorded(table, actions)
        plan = made.plan(model, 0, seed=seed, budget=depth * episodes)
        defined = Sequences(actions, depth, gamma, UPPER[planner](episodes))
        for start in range(0, depth * episodes, depth):
            played, rewards = zip(*calls[start : start + depth], strict=True)
            largest = max(map(defined.b_value, defined.all))
            own = defined.b_value(played)
            assert own == largest or own == pytest.approx(largest, abs=1e-8)
            defined.learn(played, rewards)
        counts = {action: defined.n[(action,)] for action in range(actions)}
        assert counts == {action: int(pair["n"]) for action, pair in pairs_of_root(plan).items()}
        assert counts[plan.action] == max(counts.values())
        for action, pair in pairs_of_root(plan).items():
            best = max(defined.b_value(s) for s in defined.all if s[0] == action)
            assert pair["bound"] == pytest.approx(best, abs=1e-8)
        assert plan.sequence[0] == plan.action
        assert len(plan.sequence) == depth
        # The most played sequence, step by step.
        for h in range(1, depth):
            among = [defined.n[(*plan.sequence[:h], action)] for action in range(actions)]
            assert defined.n[plan.sequence[: h + 1]] == max(among)
