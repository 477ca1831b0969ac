"""The lemmas of Atlas's proof by brute force, and wrong versions of them, each of which must be caught.

Small random problems are solved exactly. A round's functions are the least (below: the largest) that
its claims allow, found by iterating from what is known outside the chart: every iterate meets the
claims, so these hold with next to nothing to spare. Then what the lemmas conclude must hold.

A problem of H steps is one whose states are (h, s). Its last step leads to states that are worth 0.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

N, STATES, ACTIONS = 5000, 4, 2
STEPS, PER_STEP = 3, 3  # of the problems of H steps: H, and the states of each step
ROWS = np.arange(N)
EQUAL = 1e-7  # of the width of the values: less is no difference


@dataclass(frozen=True)
class Rules:
    """The statement under test. The defaults are the page's; anything else is wrong."""

    kind: str = "plain"  # or "reference", with z; or "steps"
    dropped: str = ""  # a claim
    all_actions: bool = True  # claim 1 is for all actions, not for the policy's alone
    outside: str = "bounds"  # what stands for other states; wrong: the extremes of what was "seen"
    shifted_ends: bool = True  # with z an end is worth c_- above and -c_+ below, not 0
    shifted_bounds: bool = True  # with z the bounds of other states move by as much
    shift_from_f: bool = True  # c_- and c_+ come from F and f, not from F' and f'
    last: str = "zero"  # F_H = f_H = 0; wrong: "bounds" of the step before, or "free"


@dataclass(frozen=True)
class Problems:
    """Many at once: discounts (N), laws (N, S, A, S + 1) with the end last, mean rewards (N, S, A)."""

    gamma: Any
    p: Any
    r: Any
    charted: Any  # K, (N, S); state 0 is s0
    least: Any  # every policy's values lie from `least` to `most`, (N, 1)
    most: Any
    sweeps: int

    def backup(self, g, outside, end):
        """T_e g for every pair e, of what is g on K, `outside` elsewhere, `end` at the end."""
        on_all = np.concatenate([np.where(self.charted, g, outside), end[:, None]], 1)
        return self.r + self.gamma[:, None, None] * np.einsum("nsat,nt->nsa", self.p, on_all)

    def pairs(self, values):
        """What every pair is worth, if the states are worth `values`."""
        return self.backup(values, values, np.zeros(N))

    def limit(self, step):
        """What a step makes of the value 0 in the end."""
        values = np.zeros(self.charted.shape)
        for _ in range(self.sweeps):
            values = step(values)
        return values


def by_problem(values, dimensions):
    """N numbers, to go with arrays of that many dimensions."""
    return values.reshape(-1, *(1,) * (dimensions - 1))


def laws(rng, states):
    """Laws, mean rewards, and the least and the largest that a step pays, 0 after an end."""
    p = rng.gamma(by_problem(rng.choice([0.2, 0.5, 2.0], N), 4), size=(N, states, ACTIONS, states + 1))
    p[rng.random(p.shape) < 0.3] = 0.0
    ends = rng.random(N) < 0.5
    p[~ends, ..., -1] = 0.0
    p[..., 0] += p.sum(-1) < 1e-3
    low, high = np.sort(rng.normal(size=(2, N)) * rng.choice([0.3, 1.0, 3.0], N), 0)
    sign = rng.choice([-1, 0, 1], N)  # costs, both, gains
    low, high = np.where(sign > 0, 0.0, low), np.where(sign < 0, 0.0, np.maximum(high, 0.0))
    low, high = np.minimum(low, high), np.maximum(low, high)
    r = low[:, None, None] + (high - low)[:, None, None] * rng.beta(0.4, 0.4, p.shape[:3])
    # Some states, often not charted ones, are as good or as bad as can be for ever.
    n, s = np.nonzero(rng.random((N, states)) < 0.3)
    n, s = n[s > 0], s[s > 0]
    p[n, s] = np.eye(states + 1)[s][:, None]
    r[n, s] = np.where(rng.random(len(n)) < 0.5, low[n], high[n])[:, None]
    widened = np.where(ends, np.minimum(low, 0.0), low), np.where(ends, np.maximum(high, 0.0), high)
    return p / p.sum(-1, keepdims=True), r, widened


def unrolled(p, r):
    """The problem of H steps: the states (0, s), (1, s), ..., (H, s). The last ones pay 0 and end."""
    layers = np.zeros((N, STEPS + 1, PER_STEP, ACTIONS, (STEPS + 1) * PER_STEP + 1))
    for h in range(STEPS):
        layers[:, h, ..., (h + 1) * PER_STEP : (h + 2) * PER_STEP] = p[..., :-1]
        layers[:, h, ..., -1] = p[..., -1]
    layers[:, STEPS, ..., -1] = 1.0
    return layers.reshape(N, -1, *layers.shape[3:]), np.concatenate([r] * STEPS + [0.0 * r], 1)


def problems(rng, steps):
    p, r, (low, high) = laws(rng, PER_STEP if steps else STATES)
    if steps:
        gamma = rng.choice([0.5, 0.9, 1.0], N)
        most, sweeps = sum(gamma**h for h in range(STEPS)), STEPS + 1
        low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
        p, r = unrolled(p, r)
    else:
        gamma = rng.choice([0.3, 0.6, 0.8], N)
        most, sweeps = 1.0 / (1.0 - gamma), 100
    charted = rng.random(r.shape[:2]) < rng.choice([0.5, 1.0], N, p=[0.7, 0.3])[:, None]
    charted[:, 0] = True
    return Problems(gamma, p, r, charted, (low * most)[:, None], (high * most)[:, None], sweeps)


def bounds(rng, problem, best, rules):
    """Bounds on optimal values, often without slack, and whether those below are for all policies."""
    slack = rng.exponential(0.2, (2, *best.shape)) * (rng.random((2, *best.shape)) < 0.5)
    slack *= problem.most - problem.least
    user = rng.random((2, N, 1)) < 0.5
    below = np.where(user[0], np.maximum(best - slack[0], problem.least), problem.least)
    above = np.where(user[1], np.minimum(best + slack[1], problem.most), problem.most)
    if rules.outside == "seen":
        below = np.where(problem.charted, best, np.inf).min(1, keepdims=True) + 0.0 * best
        above = np.where(problem.charted, best, -np.inf).max(1, keepdims=True) + 0.0 * best
    if rules.kind == "steps":
        last, before = slice(-PER_STEP, None), slice(-2 * PER_STEP, -PER_STEP)
        for bound in (below, above):
            lie = rng.uniform(problem.least, problem.most, bound[:, last].shape)
            known = {"zero": 0.0, "bounds": bound[:, before], "free": lie}
            bound[:, last] = known[rules.last]
    return below, above, ~user[0]


@dataclass(frozen=True)
class Side:
    """Above (sign 1) or below (sign -1): the claims sign (g - T g) >= shift on K."""

    problems: Problems
    sign: float
    bounds: Any
    end: Any
    policy: Any  # whose actions the claims are for; None for all
    z: Any = None  # where there is no claim, and the function is v
    v: Any = None

    def step(self, g):
        pairs = self.sign * self.problems.backup(g, self.bounds, self.end)
        return self.sign * (pairs.max(-1) if self.policy is None else taken(pairs, self.policy))

    def solve(self, shift):
        """The function that leaves no slack. On the way to it every iterate is one that has some."""
        nearest, g = (np.minimum if self.sign > 0 else np.maximum), self.bounds
        for _ in range(self.problems.sweeps):
            g = self.at_z(nearest(self.bounds, self.step(g) + self.sign * shift))
        return g

    def at_z(self, g):
        if self.z is not None:
            g[ROWS, self.z] = self.v
        return g

    def hold(self, g, shift):
        """Whether the claims of a function are true. There is none where g is beyond the bounds."""
        exempt = ~self.problems.charted | (self.sign * (g - self.bounds) >= 0.0)
        if self.z is not None:
            exempt[ROWS, self.z] = True
        spare = self.sign * (g - self.step(g)) - shift
        return (exempt | (spare >= -1e-12 * (1.0 + self.problems.most - self.problems.least))).all(1)


def taken(pairs, policy):
    return np.take_along_axis(pairs, policy[..., None], -1)[..., 0]


def moved(rng, side, g, lie):
    """A function with something added: mostly nothing, or what its claims may survive, or a lie."""
    width = side.problems.most - side.problems.least
    often = rng.random((N, 1)) < (0.9 if lie else 0.2)
    noise = often * width * rng.random(g.shape) * rng.choice([0.05, 0.5], (N, 1))
    return side.at_z(g - side.sign * noise if lie else g + side.sign * noise)


def functions(rng, problem, rules, sides):
    """F, f, F', f', the sides of the latter, and where all claims about them are true."""
    zero = np.zeros((N, 1))
    upper, lower = (
        moved(rng, side, side.solve(zero), rules.dropped == n)
        for side, n in zip(sides, "12", strict=True)
    )
    true = {n: side.hold(g, zero) for side, g, n in zip(sides, (upper, lower), "12", strict=True)}
    if rules.kind != "reference":
        true.pop(rules.dropped, None)
        return upper, lower, upper, lower, sides, np.all([*true.values()], 0)
    # Any state of K may be z, s0 too, and v may even lie outside [f(z), F(z)].
    z = np.where(problem.charted, rng.random(upper.shape), -1.0).argmax(1)
    part = np.where(rng.random(N) < 0.5, rng.choice([0.0, 1.0], N), rng.uniform(-0.2, 1.2, N))
    v = lower[ROWS, z] + part * (upper - lower)[ROWS, z]
    c = np.array([v - lower[ROWS, z], upper[ROWS, z] - v]) * rules.shift_from_f
    primed, found = [], []
    for side, c_side, n in zip(sides, c, "34", strict=True):
        move = side.sign * c_side
        wide = side.bounds + rules.shifted_bounds * move[:, None]
        side = replace(side, bounds=wide, end=rules.shifted_ends * move, z=z, v=v)
        shift = ((1.0 - problem.gamma) * c_side)[:, None]
        primed.append(side)
        found.append(moved(rng, side, side.solve(shift), rules.dropped == n))
        true[n] = side.hold(found[-1], shift)
    true.pop(rules.dropped, None)
    return upper, lower, *found, primed, np.all([*true.values()], 0)


def conclusions(rules, seed):
    """By how much each conclusion holds where all claims are true, and the loss, in units of EQUAL."""
    rng = np.random.default_rng(seed)
    problem = problems(rng, rules.kind == "steps")
    best = problem.limit(lambda values: problem.pairs(values).max(-1))
    worth = problem.pairs(best)
    below, above, for_all = bounds(rng, problem, best, rules)
    policy = np.where(rng.random((N, 1)) < 0.5, worth.argmax(-1), rng.integers(0, ACTIONS, best.shape))
    b = policy[:, 0] = np.where(rng.random(N) < 0.7, worth[:, 0].argmin(-1), policy[:, 0])
    sides = (
        Side(problem, 1.0, above, np.zeros(N), None if rules.all_actions else policy),
        Side(problem, -1.0, below, np.zeros(N), policy),
    )
    upper, lower, upper_z, lower_z, (up, down), true = functions(rng, problem, rules, sides)
    # Claim 5 holds by nothing, or is not made.
    rivals = problem.backup(upper_z, up.bounds, up.end)[:, 0]
    rivals[ROWS, b] = -np.inf
    own = problem.backup(lower_z, down.bounds, down.end)[ROWS, 0, b]
    lie = rng.random(N) * (problem.most - problem.least)[:, 0]
    top = rivals.max(1) - lie * (rules.dropped == "5, other actions")
    level = own + lie * (rules.dropped == "5, b")
    # The chart's policy goes on where claim 2 is made, and then plays its best or its worst.
    live = problem.charted & (lower > below)
    then_best = problem.limit(lambda v: np.where(live, taken(problem.pairs(v), policy), best))
    careless = np.where(live, policy, worth.argmin(-1))
    then_worst = problem.limit(lambda v: taken(problem.pairs(v), careless))
    followed = np.where(problem.charted, policy, worth.argmin(-1))
    then_all = problem.limit(lambda v: taken(problem.pairs(v), followed))
    first = level - problem.gamma * up.end  # the end is worth c_- there
    loss = best[:, 0] - worth[ROWS, 0, b]
    spare = {
        "action": np.maximum(top - level, 0.0) - loss,
        "value": np.where(problem.charted, np.minimum(upper - best, best - lower), np.inf).min(1),
        "action of a value": np.where(
            live[:, 0] | for_all[:, 0], upper[:, 0] - lower[:, 0] - loss, np.inf
        ),
        "untested action": upper[:, 0] - lower[:, 0] - loss,
        "policy": np.where(problem.charted, then_best - lower, np.inf).min(1),
        "any policy": np.where(problem.charted & for_all, then_worst - lower, np.inf).min(1),
        "whole policy": np.where(for_all[:, 0], then_all[:, 0] - first, np.inf),
        "careless policy": np.where(problem.charted, then_worst - lower, np.inf).min(1),
    }
    unit = EQUAL * (1.0 + problem.most - problem.least)[:, 0]
    return {name: np.where(true, x, np.inf) / unit for name, x in spare.items()}, loss / unit


KINDS = ("plain", "reference", "steps")
PROMISED = ("action", "value", "action of a value", "policy", "any policy", "whole policy")


@pytest.mark.parametrize("kind", KINDS)
def test_true_claims_imply_what_is_promised(kind):
    near = 0
    for seed in range(4):
        spare, loss = conclusions(Rules(kind), seed)
        assert np.isfinite(spare["action"]).mean() > 0.8  # most designs have true claims
        for name in PROMISED:
            assert spare[name].min() > -1.0, name
        # A wrong action whose loss is the epsilon that the claims prove, to six digits.
        near += ((spare["action"] < 10.0) & (loss > 1e4)).sum()
    assert near > 200


WRONG = [
    *(
        (Rules(kind, dropped=n), "action")
        for kind in KINDS
        for n in ("1", "2", "5, b", "5, other actions")
    ),
    *((Rules("reference", dropped=n), "action") for n in "34"),
    *((Rules(kind, dropped=n), "value") for kind in ("plain", "steps") for n in "12"),
    *((Rules(kind, dropped="2"), name) for kind in KINDS for name in ("any policy", "whole policy")),
    *((Rules("reference", dropped=n), "whole policy") for n in ("1", "4", "5, b")),
    *((Rules(kind, all_actions=False), "action") for kind in KINDS),
    *((Rules(kind, outside="seen"), name) for kind in KINDS for name in ("action", "value", "policy")),
    (Rules("reference", shifted_ends=False), "action"),
    (Rules("reference", shifted_bounds=False), "action"),
    (Rules("reference", shift_from_f=False), "action"),
    *((Rules("steps", last=last), name) for last in ("bounds", "free") for name in ("action", "value")),
    # A bound on the optimal value of s0 says nothing of b; one of other states nothing of bad policies.
    *((Rules(kind), name) for kind in KINDS for name in ("untested action", "careless policy")),
]


@pytest.mark.parametrize(("rules", "conclusion"), WRONG)
def test_less_does_not_imply_it(rules, conclusion):
    spare, _ = conclusions(rules, 0)
    assert (spare[conclusion] < -1e3).sum() >= 5
