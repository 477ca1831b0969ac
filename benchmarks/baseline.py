"""The straightforward way to write MDP-GapE with Numba, as a yardstick for the package's own.

One array for each quantity, a slot for every action of every node, and a safeguarded Newton solve
from a cold start for each of the four bounds of a visit. Two successors only, the paper's practical
thresholds, deterministic rewards in [0, 1].

With `per_successor` it bounds the mean reward of each (s, a, s') by itself, as the paper's published
runs did, instead of that of (s, a), as its text says.
"""

import math

import numpy as np
from numba import njit


@njit
def upper_end(p, c):
    """max{ q : kl(p, q) <= c } to about 1e-10."""
    if p >= 1.0:
        return 1.0
    if p <= 0.0:
        return 1.0 - math.exp(-c)
    low, high = p, 1.0
    q = min(p + math.sqrt(0.5 * c), 0.5 + 0.5 * p)
    for _ in range(100):
        excess = p * math.log(p / q) + (1.0 - p) * math.log((1.0 - p) / (1.0 - q)) - c
        if excess > 0.0:
            high = q
        else:
            low = q
        new = q - excess * q * (1.0 - q) / (q - p)
        if not low < new < high:
            new = 0.5 * (low + high)
        if abs(new - q) < 1e-10:
            return new
        q = new
    return q


@njit
def reward_ends(total, visits, delta):
    """Ends of the interval of a mean reward, [0, 1] without a visit."""
    if visits == 0:
        return 0.0, 1.0
    radius = (math.log(1.0 / delta) + math.log(max(math.log(visits), 1.0))) / visits
    mean = total / visits
    return 1.0 - upper_end(1.0 - mean, radius), upper_end(mean, radius)


@njit
def plan(
    p, successors, rewards, state, horizon, gamma, epsilon, delta, seed, room, per_successor=False
):
    """Returns (action, calls to the model)."""
    np.random.seed(seed)
    actions = p.shape[1]
    sigma = np.zeros(horizon + 1)
    for k in range(horizon):
        sigma[k + 1] = 1.0 + gamma * sigma[k]
    n = np.zeros((room, actions), np.int64)
    total = np.zeros((room, actions))
    upper = np.zeros((room, actions))
    lower = np.zeros((room, actions))
    seen = np.full((room, actions, 2), -1)
    counts = np.zeros((room, actions, 2))
    children = np.full((room, actions, 2), -1)
    best_upper = np.zeros(room)
    best_lower = np.zeros(room)
    upper[0] = sigma[horizon]
    nodes = 1
    path = np.zeros(horizon, np.int64)
    played = np.zeros(horizon, np.int64)
    lows, highs = np.zeros(2), np.zeros(2)
    episodes = 0
    while True:
        best, gap = 0, np.inf
        for b in range(actions):
            rival = -np.inf
            for a in range(actions):
                if a != b:
                    rival = max(rival, upper[0, a])
            if rival - lower[0, b] < gap:
                best, gap = b, rival - lower[0, b]
        if gap <= epsilon or nodes + horizon > room:
            return best, episodes * horizon
        challenger = -1
        for a in range(actions):
            if a != best and (challenger < 0 or upper[0, a] > upper[0, challenger]):
                challenger = a
        action = best
        if upper[0, challenger] - lower[0, challenger] > upper[0, best] - lower[0, best]:
            action = challenger
        node, at = 0, state
        for h in range(horizon):
            if h > 0:
                ties = 1
                action = 0
                for a in range(1, actions):
                    if upper[node, a] > upper[node, action]:
                        action, ties = a, 1
                    elif upper[node, a] == upper[node, action]:
                        ties += 1
                        if np.random.random() * ties < 1.0:
                            action = a
            path[h], played[h] = node, action
            k = 0 if np.random.random() < p[at, action, 0] else 1
            n[node, action] += 1
            total[node, action] += rewards[at, action]
            at = successors[at, action, k]
            slot = 0
            while seen[node, action, slot] != at and seen[node, action, slot] >= 0:
                slot += 1
            if seen[node, action, slot] < 0:
                seen[node, action, slot] = at
                if h + 1 < horizon:
                    children[node, action, slot] = nodes
                    upper[nodes] = sigma[horizon - h - 1]
                    best_upper[nodes] = sigma[horizon - h - 1]
                    nodes += 1
            counts[node, action, slot] += 1
            node = children[node, action, slot]
        episodes += 1
        for h in range(horizon - 1, -1, -1):
            node, action = path[h], played[h]
            visits = n[node, action]
            down, up = 0.0, 0.0
            if not per_successor:
                down, up = reward_ends(total[node, action], visits, delta)
            if h + 1 < horizon or per_successor:
                radius = (math.log(1.0 / delta) + math.log(visits)) / visits
                for slot in range(2):
                    child = children[node, action, slot]
                    low, high = 0.0, gamma * sigma[horizon - h - 1]
                    if child >= 0:
                        low, high = gamma * best_lower[child], gamma * best_upper[child]
                    if per_successor:
                        # A pair always pays its mean reward, whatever the successor.
                        times = counts[node, action, slot]
                        paid = times * total[node, action] / visits
                        reward_low, reward_high = reward_ends(paid, times, delta)
                        low += reward_low
                        high += reward_high
                    lows[slot], highs[slot] = low, high
                share = counts[node, action, 0] / visits
                better = 0 if highs[0] >= highs[1] else 1
                q = upper_end(share if better == 0 else 1.0 - share, radius)
                up += q * highs[better] + (1.0 - q) * highs[1 - better]
                worse = 0 if lows[0] <= lows[1] else 1
                q = upper_end(share if worse == 0 else 1.0 - share, radius)
                down += q * lows[worse] + (1.0 - q) * lows[1 - worse]
            upper[node, action] = up
            lower[node, action] = down
            best_upper[node] = upper[node].max()
            best_lower[node] = lower[node].max()
