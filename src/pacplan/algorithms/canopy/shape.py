"""The shape of trees: how deep, with how many draws at each depth (docs/canopy.md, "Steering").

A shape is the depth d of the leaves, C_h draws of every pair at depth h, and D_h <= C_h of them
continued. From what was seen so far `_forecast` says what a tree of a shape would cost, by how much its
value would be too large on average, and how much it would vary. That gives the calls that it takes to
prove a bound, and `reshape` changes one number after the other as long as that makes it cheaper.
"""

from math import exp, inf, log
from typing import Any

from pacplan.algorithms.betting.bets import MOST_STAKE
from pacplan.algorithms.canopy import constants
from pacplan.compiled.jit import inlined

_KINDS = 6  # of changes at one depth
_LEAST = 1e-12  # stands for a variance of 0


@inlined
def blended(mean: float, x: float, seen: float) -> float:
    """A mean after one more observation, the `seen`-th; old ones are forgotten slowly."""
    return mean + (x - mean) / min(seen, constants.STEADY)


@inlined
def limits(level: Any, may_end: bool) -> tuple[float, float]:
    """The range to which learnt values of a depth are cut."""
    reach = constants.CLIP * level.scatter**0.5
    low, high = max(level.value - reach, 0.0), min(level.value + reach, level.cap)
    if may_end:
        low, high = min(low, level.ended), max(high, level.ended)
    return low, high


@inlined
def freeze(search: Any, which: int, leaf: int) -> None:
    """Fix everything about the next tree, which has a known shape: C, D, R, and the range of v."""
    search.task[0].leaf = leaf
    for h in range(leaf):
        level = search.levels[h]
        level.width, level.kept = search.shapes[which, 0, h], search.shapes[which, 1, h]
        if h + 1 == leaf:
            # These successors are leaves: continuing them costs nothing.
            level.kept = level.width
    _freeze_ranges(search)


@inlined
def freeze_wide(search: Any, width: int) -> None:
    """Fix a forced tree: down to the last step, C = D = `width` below its root."""
    shape = search.shapes[search.root.size]
    shape[:] = width
    shape[:, 0] = 1
    freeze(search, search.root.size, search.settings[0].horizon)


@inlined
def _freeze_ranges(search: Any) -> None:
    """R_d, the most that a leaf can be worth, and R_h, at least e_h, and u_h and l_h.

    R_h = 1 + gamma ( R_(h+1) + (1 - D_h/C_h) (u_(h+1) - l_(h+1)) ).
    """
    settings, levels, leaf = search.settings[0], search.levels, search.task[0].leaf
    levels[leaf].most = levels[leaf].high = levels[leaf].cap
    levels[leaf].low = levels[leaf].jitter = 0.0
    for h in range(leaf - 1, -1, -1):
        level, after = levels[h], levels[h + 1]
        wide = (1.0 - level.kept / level.width) * (after.high - after.low)
        level.most = 1.0 + settings.gamma * (after.most + wide)
        if settings.may_end:
            level.most = max(level.most, level.ended)
        low, high = limits(level, settings.may_end)
        level.high = min(high, level.most)
        level.low = min(low, level.high)
        rest = 0.0
        if h + 1 < leaf:
            rest = settings.gamma * settings.gamma * (max(after.misfit, 0.0) + after.jitter)
        level.jitter = level.noise / level.width + rest / level.kept
        level.spread = (max(level.misfit, 0.0) + level.jitter) ** 0.5


@inlined
def state_value(level: Any) -> float:
    """Roughly the mean value of states at a depth."""
    if level.earnings > 0.0:
        return float(level.earned)
    return float(min(constants.FIRST_VALUE * level.span, level.cap))


@inlined
def _forecast(search: Any, shape: Any, leaf: int) -> tuple[float, float, float, float]:
    """Calls, bias, variance and R_0 of a tree of a shape."""
    settings, levels = search.settings[0], search.levels
    gamma = settings.gamma
    bias = gamma**leaf * max(levels[leaf].cap - state_value(levels[leaf]), 0.0)
    most, rest, variance = levels[leaf].cap, 0.0, 0.0
    for h in range(leaf - 1, -1, -1):
        level = levels[h]
        kept = shape[1, h] if h + 1 < leaf else shape[0, h]
        if h + 1 < leaf:
            low, high = limits(levels[h + 1], settings.may_end)
            most += (1.0 - kept / shape[0, h]) * (high - low)
        most = 1.0 + gamma * most
        variance = level.noise / shape[0, h] + rest / kept
        if h > 0:
            # It grows with the variance, and for large noise with the standard deviation only.
            gain = level.curve * variance / max(level.noise, _LEAST)
            most_gain = constants.LARGEST_GAIN * max(variance, _LEAST) ** 0.5
            bias += gamma**h * gain / (1.0 + gain / most_gain)
        rest = gamma * gamma * (max(level.misfit, 0.0) + variance)
    calls = float(shape[0, 0])
    nodes = float(shape[1, 0])
    for h in range(1, leaf):
        level = levels[h]
        calls += nodes * level.actions * shape[0, h]
        nodes *= level.opened * shape[1, h]
    return calls, bias, variance, most


@inlined
def _price(search: Any, shape: Any, leaf: int, mean: float, slack: float) -> float:
    """Calls that it takes to prove that an action of value `mean` is below that plus the slack."""
    settings = search.settings[0]
    calls, bias, variance, most = _forecast(search, shape, leaf)
    if calls > max(constants.PILOT_CALLS, constants.MOST_PART * search.report[0].calls):
        return inf
    edge = slack - bias
    least = constants.LEAST_EDGE * settings.resolution
    if edge < least:
        edge = least * exp(max((edge - least) / least, -300.0))
    square = variance + edge * edge
    room = max(most - mean - slack, settings.step)
    stake = min(edge / square, MOST_STAKE / room)
    rate = stake * edge - 0.5 * stake * stake * square
    return float(calls * (constants.PATIENCE - log(settings.delta_tree)) / rate)


@inlined
def _copy(search: Any, source: int, target: int, leaf: int) -> None:
    for h in range(leaf):
        search.shapes[target, 0, h] = search.shapes[source, 0, h]
        search.shapes[target, 1, h] = search.shapes[source, 1, h]


@inlined
def _stepped(n: int, direction: int) -> int:
    """Half as much again, a third less, or the same."""
    return n + max(1, n // 2) * (direction > 0) - max(1, n // 3) * (direction < 0)


@inlined
def _change(shape: Any, horizon: int, move: int, leaf: int) -> int:
    """Make one change to a shape; returns the depth of its leaves, or 0 if it cannot be made.

    Leaves go down or up, or at one depth C, D or both grow or shrink.
    """
    if move == 0:
        if leaf == horizon:
            return 0
        shape[0, leaf] = constants.PILOT_WIDTH
        shape[1, leaf] = 1
        if leaf > 0:
            shape[1, leaf - 1] = 1
        return leaf + 1
    if move == 1:
        return leaf - 1
    h, kind = (move - 2) // _KINDS, (move - 2) % _KINDS
    last, direction = h + 1 == leaf, 1 if kind < _KINDS // 2 else -1
    both, alone = kind % 3 == 2, kind % 3 == 0
    c = _stepped(shape[0, h], direction if both or alone else 0)
    d = _stepped(shape[1, h], 0 if alone else direction)
    if (last and not alone) or d < 1 or c > constants.MOST_DRAWS or (alone and c < (1 if last else d)):
        return 0
    shape[0, h] = c if last else max(c, d)
    shape[1, h] = d
    return leaf


@inlined
def reshape(search: Any, action: int, best: float) -> None:
    """Look for a cheaper shape of an action's trees, if it had enough since the last look.

    `best` is the estimated value of the action that is to be proven best.
    """
    arm, settings, shapes = search.root[action], search.settings[0], search.shapes
    if arm.trees < arm.due:
        return
    arm.due = int(constants.RESHAPE_GROWTH * arm.trees) + 1
    mean = arm.centre - arm.bias
    slack = constants.ABOVE_PART * max(best + settings.epsilon - mean, 0.0)
    first = search.root.size
    _copy(search, action, first, arm.leaf)
    shapes[first + 1, :, : arm.leaf] = 1
    price, leaf, changes = _improve(search, first, arm.leaf, mean, slack)
    # From the smallest tree the way may be another.
    other, depth, _ = _improve(search, first + 1, arm.leaf, mean, slack)
    if other < constants.GAIN * price:
        leaf, changes, first = depth, 1, first + 1
    _, bias, _, _ = _forecast(search, shapes[first], leaf)
    if changes > 0:
        # What bettors expect changes with the bias.
        arm.centre += bias - arm.bias
        for q in range(search.tree_moments.shape[1]):
            search.tree_moments[action, q].centre += bias - arm.bias
        _copy(search, first, action, leaf)
        arm.leaf, arm.recent = leaf, min(arm.recent, 3)
    arm.bias = bias


@inlined
def _improve(search: Any, at: int, leaf: int, mean: float, slack: float) -> tuple[float, int, int]:
    """Change a shape as long as that makes it cheaper: its price, its leaves' depth, the changes."""
    shapes, trial, horizon = search.shapes, search.root.size + 2, search.settings[0].horizon
    price = _price(search, shapes[at], leaf, mean, slack)
    changes = 0
    while changes < constants.MOST_CHANGES:
        found, best_move, best_leaf = constants.GAIN * price, -1, 0
        for move in range(2 + _KINDS * leaf):
            _copy(search, at, trial, leaf)
            there = _change(shapes[trial], horizon, move, leaf)
            if there > 0:
                other = _price(search, shapes[trial], there, mean, slack)
                if other < found:
                    found, best_move, best_leaf = other, move, there
        if best_move < 0:
            break
        _change(shapes[at], horizon, best_move, leaf)
        leaf, price = best_leaf, found
        changes += 1
    return price, leaf, changes


@inlined
def first_shape(search: Any, action: int) -> None:
    """The shape of pilot trees: deep enough to matter, if that is not too dear."""
    settings, levels, arm = search.settings[0], search.levels, search.root[action]
    leaf, nodes = 1, 1.0
    calls = float(constants.PILOT_WIDTH)
    while leaf < settings.horizon:
        open_bias = settings.gamma**leaf * (1.0 - constants.FIRST_VALUE) * levels[leaf].span
        calls += nodes * levels[leaf].actions * constants.PILOT_WIDTH
        if open_bias <= 0.3 * settings.resolution or (leaf > 1 and calls > constants.PILOT_CALLS):
            break
        nodes *= constants.OPENED * levels[leaf].actions
        leaf += 1
    arm.leaf = leaf
    search.shapes[action, 0, :leaf] = constants.PILOT_WIDTH
    search.shapes[action, 1, :leaf] = 1
    _, arm.bias, _, _ = _forecast(search, search.shapes[action], leaf)
