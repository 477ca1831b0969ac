"""Small problems that are hard, and a look into Bracket's search of them."""

from dataclasses import dataclass, field

import numpy as np
from scipy.stats import binom

import pacplan
from pacplan import exact
from pacplan.algorithms.bracket.search import BracketSearch
from pacplan.bounds import product
from pacplan.testing.problems import Hidden

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
UNTOLD = (
    Kind(2, 2, 3),
    Kind(3, 2, 2, noise="none"),
    Kind(3, 2, 4, ends=True, reward_range=(-1.0, 1.0)),
)


@dataclass
class Lens:
    """Sees into searches, keeps them from stopping, and can take back a part of what bounds cost."""

    above: float = 0.0  # nats
    below: float = 0.0
    joint: float = 0.0
    last: list = field(default_factory=list)

    def __call__(self, search):
        rules, levels = search.arrays["settings"], search.arrays["levels"]
        rules["epsilon"] = -np.inf  # (`cut` is what it was.)
        rules["log_share"] -= self.above
        rules["log_joint"] -= self.joint
        levels["price"] -= self.above
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


def violations(kind, runs, *, delta, budget=1000, seed=0, told=True):
    """How often U(a*) < Q(a*), and how often L(a) > Q(a) for some a, at the end and so at any time."""
    rng = np.random.default_rng(seed)
    planner = pacplan.Bracket(epsilon=0.2, delta=delta, gamma=GAMMA, horizon=kind.horizon)
    above = below = 0
    for run in range(runs):
        model = kind.draw(rng)
        q = exact.finite_horizon(model, gamma=GAMMA, horizon=kind.horizon)[0, 0]
        plan = planner.plan(model if told else Hidden(model), 0, seed=run, budget=budget)
        best = np.argmax(q)
        above += plan.upper[best] < q[best] - 1e-9
        below += (plan.lower > q + 1e-9).any()
    return above, below


def evidence(search, model, horizon, counted=1.0):
    """Sum over the pairs of pi* of reach log M at the truth, from what the search has recorded.

    `counted` is the part of d that is taken into account.
    """
    rewards, probabilities, successors = model.sparse()
    q = exact.finite_horizon(model, gamma=GAMMA, horizon=horizon)
    tree, stakes = search.tree, search.arrays["stakes"]
    total = 0.0
    todo = [(0, 0, 1.0)]
    while todo:
        at, h, reach = todo.pop()
        state = tree.state(at)
        best = int(np.argmax(q[h, state]))
        links = [i for i in tree.tried(at) if tree.pairs[i]["action"] == best]
        if not links or tree.pairs[links[0]]["n"] == 0:
            continue
        link = links[0]
        n = int(tree.pairs[link]["n"])
        seen = {outcome.state: outcome.node for outcome in tree.outcomes(link)}
        # (Rewards that are told are not bet on.)
        y = 1.0 if search.arrays["settings"][0]["told"] else rewards[state, best]
        for p, to in zip(probabilities[state, best], successors[state, best], strict=True):
            if h + 1 < horizon and p > 0.0:
                child = seen.get(int(to))
                drift = tree.pairs[link]["drift"] if child is None else tree.nodes[child]["drift"]
                y -= counted * p * drift / n
                if child is not None:
                    todo.append((child, h + 1, reach * p))
        held = search.arrays["bets"][link] > product.LOST
        bets = search.arrays["bets"][link][held] - n * np.log1p(-y / stakes[h][held])
        cash = search.arrays["levels"]["cash"][h]
        total += reach * np.logaddexp(
            np.log(cash), np.log((1 - cash) / len(held)) + np.logaddexp.reduce(bets)
        )
    return total


def pairs_of(search):
    """Every pair that was called: its depth, its node, itself, lambda, and its outcomes by state."""
    tree, todo = search.tree, [(0, 0)]
    while todo:
        h, at = todo.pop()
        for link in tree.tried(at):
            seen = {outcome.state: outcome.node for outcome in tree.outcomes(link)}
            todo += [(h + 1, outcome.node) for outcome in tree.outcomes(link) if not outcome.ended]
            if tree.pairs[link]["n"] > 0:
                first = tree.pairs[link]["action"] if h == 0 else tree.nodes[at]["branch"]
                yield h, at, link, float(search.root["penalty"][first]), seen


def most(runs, probability):
    """A count that is exceeded with a probability of at most RARE."""
    return binom.isf(RARE, runs, probability)


def check_bounds(kind, runs, delta, **more):
    above, below = violations(kind, runs, delta=delta, **more)
    # In a tree one process serves both sides, and what it says of each alone rarely fails.
    assert above <= most(runs, 0.25 * delta)
    assert below <= most(runs, 0.1 * delta)
