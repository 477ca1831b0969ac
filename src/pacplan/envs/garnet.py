"""Random MDPs with few successors: the family of the paper's section 5."""

from typing import Literal

import numpy as np

from pacplan.core import checks
from pacplan.models.tabular import TabularMDP


def garnet(
    states: int = 200,
    actions: int = 5,
    successors: int = 2,
    reward_density: float = 0.5,
    seed: int | None = 0,
    *,
    noise: Literal["none", "bernoulli"] = "none",
) -> TabularMDP:
    """A random MDP, by default with the sizes of the paper's section 5.

    Every state-action pair leads to `successors` distinct states, picked uniformly; the cumulative
    probabilities of these are uniform numbers, sorted. A proportion `reward_density` of the pairs
    has a reward, its mean uniform in (0, 1).

    Args:
        states: their number, S.
        actions: how many each state has, K.
        successors: B, at most S.
        reward_density: proportion of pairs with a reward, in [0, 1].
        seed: the same seed gives the same MDP; None draws a fresh one.
        noise: "none": a pair always pays its mean, as in the paper's runs; "bernoulli": it pays 0 or
            1 with that mean.
    """
    s = checks.integer("states", states, least=1)
    k = checks.integer("actions", actions, least=1)
    b = checks.integer("successors", successors, least=1)
    if b > s:
        raise ValueError(f"successors={b} must be distinct states, but there are only {s}")
    density = checks.within_one("reward_density", reward_density)
    if seed is not None:
        checks.integer("seed", seed, least=0)
    rng = np.random.default_rng(seed)
    if s * k * s <= 10_000_000:
        order = rng.permuted(np.broadcast_to(np.arange(s), (s, k, s)), axis=-1)
    else:  # The same, without a table of all states for every pair.
        order = np.array([rng.choice(s, b, replace=False) for _ in range(s * k)]).reshape(s, k, b)
    cuts = np.sort(rng.random((s, k, b - 1)), axis=-1)
    edges = np.concatenate([np.zeros((s, k, 1)), cuts, np.ones((s, k, 1))], axis=-1)
    rewards = np.zeros(s * k)
    paying = rng.choice(s * k, size=round(s * k * density), replace=False)
    rewards[paying] = rng.random(len(paying))
    return TabularMDP(
        np.diff(edges, axis=-1), rewards.reshape(s, k), successors=order[..., :b], noise=noise
    )
