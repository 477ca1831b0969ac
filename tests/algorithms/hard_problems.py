"""Small problems that are hard, and a look into Bracket's search of them."""

from dataclasses import dataclass, field

import numpy as np
from scipy.stats import binom

import pacplan
from pacplan import exact
from pacplan.algorithms.bracket.search import BracketSearch
from pacplan.algorithms.common.returns import FIRST_BET

GAMMA = 0.9
RARE = 1e-7


# Random problems, small and hard: actions that differ little, rewards that tell the successor.


@dataclass(frozen=True)
class Kind:
    """A family of problems. Where `correlated`, rewards depend on the successor."""

    horizon: int
    actions: int
    successors: int
    noise: str = "bernoulli"
    ends: bool = False
    reward_range: tuple[float, float] = (0.0, 1.0)
    correlated: bool = True
    states: int = 4

    def draw(self, rng):
        states = 1 if self.horizon == 1 else self.states
        shape = (states, self.actions, self.successors)
        p = rng.dirichlet(np.ones(self.successors), size=shape[:2])
        to = rng.permuted(np.broadcast_to(np.arange(states), (*shape[:2], states)), axis=-1)
        means = rng.uniform(0.1, 0.9) + rng.normal(0.0, 0.02, (*shape[:2], 1))
        if self.correlated:
            means = means + rng.choice([-0.4, 0.4], shape)
        low, high = self.reward_range
        return pacplan.TabularMDP(
            p,
            low + (high - low) * np.clip(np.broadcast_to(means, shape), 0.0, 1.0),
            successors=to[..., : self.successors],
            noise=self.noise,
            reward_range=self.reward_range,
            terminal=[states - 1] if self.ends else None,
        )


BANDITS = (Kind(1, 2, 1), Kind(1, 6, 1))
TREES = (
    Kind(2, 2, 2),
    Kind(2, 2, 2, noise="none"),
    Kind(3, 2, 1),
    Kind(3, 3, 3),
    Kind(3, 2, 2, ends=True, reward_range=(-2.0, -1.0)),
)


@dataclass
class Lens:
    """Sees into searches, keeps them from stopping, and can take back a part of what bounds cost."""

    above: float = 0.0  # nats
    below: float = 0.0
    joint: float = 0.0
    weight: float = 1.0  # of penalties
    last: list = field(default_factory=list)

    def __call__(self, search):
        rules, levels = search._fixed["rules"], search._fixed["levels"]
        rules["epsilon"] = -np.inf  # (`cut` is what it was.)
        rules["log_share"] -= self.above
        rules["log_joint"] -= self.joint
        levels["price"] -= self.above
        levels["weight"] *= self.weight
        rules["delta_exploit"] *= np.exp(self.below)
        rules["delta_forced"] *= np.exp(self.below)
        self.last[:] = [search]


def lens_on_searches(monkeypatch):
    """A fixture: the lens through which all searches are seen."""
    glass = Lens()
    start = BracketSearch.__init__

    def init(self, *args):
        start(self, *args)
        glass(self)

    monkeypatch.setattr(BracketSearch, "__init__", init)
    return glass


class Untold:
    """A table of which nobody knows how many successors or states there are."""

    successors = states = None
    known = False

    def __init__(self, table):
        self._table = table

    def __getattr__(self, name):
        return getattr(self._table, name)


def violations(kind, runs, *, delta, budget=1000, seed=0, merge="tree", told=True):
    """How often U(a*) < Q(a*), and how often L(a) > Q(a) for some a, at the end and so at any time."""
    rng = np.random.default_rng(seed)
    planner = pacplan.Bracket(epsilon=0.2, delta=delta, gamma=GAMMA, horizon=kind.horizon, merge=merge)
    above = below = 0
    for run in range(runs):
        model = kind.draw(rng)
        q = exact.finite_horizon(model, gamma=GAMMA, horizon=kind.horizon)[0, 0]
        plan = planner.plan(model if told else Untold(model), 0, seed=run, budget=budget)
        best = np.argmax(q)
        above += plan.upper[best] < q[best] - 1e-9
        below += (plan.lower > q + 1e-9).any()
    return above, below


def gaps_too_small(kind, runs, lens, *, delta, budget=1000, seed=0):
    """How often a joint bound of some action's loss, of any that bets, lies below that loss.

    And how often it is what bounds it: less than U(a*) - L(b).
    """
    rng = np.random.default_rng(seed)
    planner = pacplan.Bracket(epsilon=0.2, delta=delta, gamma=GAMMA, horizon=kind.horizon)
    wrong = counts = 0
    for run in range(runs):
        model = kind.draw(rng)
        q = exact.finite_horizon(model, gamma=GAMMA, horizon=kind.horizon)[0, 0]
        planner.plan(model, 0, seed=run, budget=budget)
        search, best = lens.last[0], int(np.argmax(q))
        width = search._setting.width
        failed = helped = False
        for b, arm in enumerate(search.root):
            if b != best and arm["exploits"] > FIRST_BET:
                gap = width * search._gaps[arm["account"], best]
                failed |= gap < q[best] - q[b] - 1e-9
                helped |= gap < width * (search.root["upper"][best] - arm["lower"])
        wrong += failed
        counts += helped
    return wrong, counts


def most(runs, probability):
    """A count that is exceeded with a probability of at most RARE."""
    return binom.isf(RARE, runs, probability)


def check_bounds(kind, runs, delta, **more):
    above, below = violations(kind, runs, delta=delta, **more)
    # In a tree one event covers both sides.
    share = delta if more.get("merge", "tree") == "tree" else delta / 2
    assert above <= most(runs, share)
    assert below <= most(runs, share)
