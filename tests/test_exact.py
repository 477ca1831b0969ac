"""Exact dynamic programming against the definition, by brute force."""

import math

import numpy as np
import pytest

import pacplan
from pacplan import TabularMDP, exact
from pacplan.envs.garnet import garnet
from pacplan.exact import discounted, finite_horizon, gaps

# ---------------------------------------------------------------------------- Independent solvers


class Tables:
    """A problem as plain nested tables, with what is needed to make a model of it."""

    def __init__(self, p, r, terminal=(), available=None, successors=None, reward_range=(0.0, 1.0)):
        self.p, self.r = np.asarray(p, float), np.asarray(r, float)
        self.stepwise = self.p.ndim == 4
        self.states, self.actions = self.p.shape[-3:-1]
        self.terminal = set(terminal)
        self.available = available
        self.successors = successors
        self.reward_range = reward_range

    def model(self):
        return TabularMDP(
            self.p,
            self.r,
            successors=self.successors,
            terminal=sorted(self.terminal) if self.terminal else None,
            available=self.available,
            reward_range=self.reward_range,
        )

    def offers(self, s):
        return [a for a in range(self.actions) if self.available is None or self.available[s][a]]

    def outcomes(self, h, s, a):
        """(probability, successor, reward) of what may happen at step h."""
        p = self.p[h] if self.stepwise else self.p
        r = self.r[h] if self.stepwise else self.r
        for k in range(p.shape[-1]):
            to = k
            if self.successors is not None:
                to = self.successors[h][s][a][k] if self.stepwise else self.successors[s][a][k]
            yield p[s][a][k], to, r[s][a] if r.ndim == 2 else r[s][a][k]

    def best_values(self, gamma, horizon):
        """Q by recursion from the definition."""

        def q(h, s, a):
            if s in self.terminal:
                return 0.0
            return sum(p * (r + gamma * v(h + 1, to)) for p, to, r in self.outcomes(h, s, a) if p > 0)

        def v(h, s):
            return 0.0 if h == horizon else max(q(h, s, a) for a in self.offers(s))

        found = np.full((horizon, self.states, self.actions), -np.inf)
        for h, s, a in np.ndindex(found.shape):
            if s in self.terminal or a in self.offers(s):
                found[h, s, a] = q(h, s, a)
        return found


def random_tables(
    seed,
    states=3,
    actions=2,
    steps=None,
    by_successor=False,
    terminal=(),
    masked=False,
    sparse=False,
    reward_range=(0.0, 1.0),
):
    rng = np.random.default_rng(seed)
    lead = () if steps is None else (steps,)
    columns = 2 if sparse else states
    p = rng.dirichlet(np.ones(columns), size=(*lead, states, actions))
    successors = rng.integers(0, states, (*lead, states, actions, columns)) if sparse else None
    shape = (*lead, states, actions, columns) if by_successor else (*lead, states, actions)
    r = rng.uniform(*reward_range, shape)
    available = None
    if masked:
        available = rng.random((states, actions)) < 0.5
        available[np.arange(states), rng.integers(0, actions, states)] = True
        available[0] = [True] + [False] * (actions - 1)  # One that offers a single action for sure.
    return Tables(p, r, terminal, available, successors, reward_range)


# --------------------------------------------------------------------------------- Finite horizon


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"terminal": (1,)},
        {"masked": True, "actions": 3},
        {"steps": 5},  # More steps than are planned for.
        {"sparse": True, "by_successor": True},
        {"steps": 3, "sparse": True, "by_successor": True, "terminal": (0,)},
        {"steps": 3, "masked": True, "terminal": (2,), "reward_range": (-1.0, 0.0)},
        {"terminal": (0, 1, 2)},
    ],
    ids=lambda options: "-".join(options),
)
def test_finite_horizon_is_what_the_definition_says(options):
    for gamma in (0.0, 0.8, 1.0):
        tables = random_tables(10, **options)
        found = finite_horizon(tables.model(), gamma=gamma, horizon=3)
        expected = tables.best_values(gamma, 3)
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-15)
        losses = np.where(expected > -np.inf, expected.max(-1, keepdims=True) - expected, np.inf)
        assert gaps(tables.model(), gamma=gamma, horizon=3) == pytest.approx(losses, abs=1e-12)


# ------------------------------------------------------------------------------------- Discounted


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"terminal": (1, 4)},
        {"masked": True, "terminal": (3,), "reward_range": (-2.0, 5.0)},
        {"sparse": True, "by_successor": True, "terminal": (0,)},
    ],
    ids=lambda options: "-".join(options),
)
@pytest.mark.parametrize("gamma", [0.0, 0.3, 0.99])
def test_discounted_is_the_fixed_point_of_the_definition(options, gamma):
    for seed in range(3):
        tables = random_tables(seed + 20, states=6, actions=3, **options)
        found = discounted(tables.model(), gamma=gamma)
        for s, a in np.ndindex(found.shape):
            expected = -np.inf
            if s in tables.terminal:
                expected = 0.0
            elif a in tables.offers(s):
                expected = sum(
                    p * (r + gamma * (0.0 if to in tables.terminal else found[to].max()))
                    for p, to, r in tables.outcomes(0, s, a)
                )
            assert found[s, a] == pytest.approx(expected, rel=0, abs=1e-10)


# -------------------------------------------------------------------------------------------- Gaps


# --------------------------------------------------------------------------------- Bad arguments


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"gamma": -0.1}, ValueError),
        ({"gamma": 1.1}, ValueError),
        ({"gamma": math.nan}, ValueError),
        ({"gamma": "0.5"}, TypeError),
        ({"gamma": True}, TypeError),
        ({"horizon": 0}, ValueError),
        ({"horizon": 2.0}, TypeError),
        ({"horizon": None}, TypeError),
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
        discounted(random_tables(51, steps=3).model(), gamma=0.5)


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
