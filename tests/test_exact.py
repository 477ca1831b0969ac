"""Exact dynamic programming against the definition, by brute force."""

import math

import numpy as np
import pytest

import pacplan
from pacplan import TabularMDP, exact
from pacplan.envs.garnet import garnet
from pacplan.exact import discounted, finite_horizon, gaps


def random_tables(seed, *, steps=None, by_successor=False, masked=False, sparse=False, **settings):
    """What a random TabularMDP is made of."""
    rng, states, actions = np.random.default_rng(seed), 3, 3 if masked else 2
    shape = (() if steps is None else (steps,)) + (states, actions, 2 if sparse else states)
    low, high = settings.get("reward_range", (0.0, 1.0))
    settings["transitions"] = rng.dirichlet(np.ones(shape[-1]), size=shape[:-1])
    settings["rewards"] = rng.uniform(low, high, shape if by_successor else shape[:-1])
    if sparse:
        settings["successors"] = rng.integers(0, states, shape)
    if masked:
        settings["available"] = rng.random((states, actions)) < 0.5
        settings["available"][np.arange(states), rng.integers(0, actions, states)] = True
        settings["available"][0] = [True, False, False]  # One that offers a single action for sure.
    return settings


def by_definition(
    gamma, horizon, *, transitions, rewards, successors=None, terminal=(), available=None, **_
):
    """Q by recursion."""
    states, actions = transitions.shape[-3:-1]
    stepwise = transitions.ndim == 4

    def offers(s):
        return [a for a in range(actions) if available is None or available[s][a]]

    def q(h, s, a):
        total = 0.0
        at = (h, s, a) if stepwise else (s, a)
        for k, p in enumerate(transitions[at]):
            to = k if successors is None else successors[at][k]
            reward = rewards[at][k] if rewards.ndim == transitions.ndim else rewards[at]
            total += p * (reward + gamma * v(h + 1, to)) if p > 0 else 0.0
        return 0.0 if s in terminal else total

    def v(h, s):
        return 0.0 if h == horizon or s in terminal else max(q(h, s, a) for a in offers(s))

    found = np.full((horizon, states, actions), -np.inf)
    for h, s, a in np.ndindex(found.shape):
        if s in terminal or a in offers(s):
            found[h, s, a] = q(h, s, a)
    return found


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"terminal": [1]},
        {"masked": True},
        {"steps": 5},  # More steps than are planned for.
        {"sparse": True, "by_successor": True},
        {"steps": 3, "sparse": True, "by_successor": True, "terminal": [0]},
        {"steps": 3, "masked": True, "terminal": [2], "reward_range": (-1.0, 0.0)},
        {"masked": True, "terminal": [1], "reward_range": (-2.0, 5.0)},
        {"terminal": [0, 1, 2]},
    ],
    ids=lambda options: "-".join(options),
)
def test_values_are_what_the_definition_says(options):
    tables = random_tables(10, **options)
    model = TabularMDP(**tables)
    for gamma in (0.0, 0.8, 1.0):
        found, expected = (
            finite_horizon(model, gamma=gamma, horizon=3),
            by_definition(gamma, 3, **tables),
        )
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-15)
        losses = np.where(expected > -np.inf, expected.max(-1, keepdims=True) - expected, np.inf)
        assert gaps(model, gamma=gamma, horizon=3) == pytest.approx(losses, abs=1e-12)
        if "steps" not in options and gamma < 1.0:
            # After so many steps nothing counts any more.
            long = finite_horizon(model, gamma=gamma, horizon=200)[0]
            assert discounted(model, gamma=gamma) == pytest.approx(long, rel=0, abs=1e-10)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"gamma": -0.1}, ValueError),
        ({"gamma": "0.5"}, TypeError),
        ({"horizon": 0}, ValueError),
        ({"tolerance": math.nan}, ValueError),
    ],
    ids=str,
)
def test_wrong_arguments_are_refused(change, kind):
    solvers = [discounted] if "horizon" not in change else []
    solvers += [finite_horizon, gaps] if "tolerance" not in change else []
    for solve in solvers:
        given = ({"gamma": 0.5} if solve is discounted else {"gamma": 0.5, "horizon": 2}) | change
        with pytest.raises(kind, match=next(iter(change))):
            solve(garnet(5, 2, 2), **given)


def test_discounted_needs_a_discount_and_a_stationary_model():
    with pytest.raises(ValueError, match="gamma < 1"):
        discounted(garnet(5, 2, 2), gamma=1.0)
    with pytest.raises(ValueError, match="stationary"):
        discounted(TabularMDP(**random_tables(51, steps=3)), gamma=0.5)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("finite_horizon", {"horizon": 3}),
        ("gaps", {"horizon": 3}),
        ("discounted", {}),
        ("entropy_regularised", {"temperature": 1.0}),
    ],
)
def test_exact_values_need_the_tables_of_one_player(name, settings):
    def still(state, action, rng):
        return state, 0.5, False

    solve = getattr(exact, name)
    for model in (pacplan.Simulator(still, actions=2, successors=1, initial=0), None, "garnet"):
        with pytest.raises(TypeError, match="must be a TabularMDP"):
            solve(model, gamma=0.7, **settings)
    with pytest.raises(ValueError, match="a game of two"):
        solve(pacplan.envs.game_tree([[0.6, 0.2], 0.3]), gamma=0.7, **settings)
