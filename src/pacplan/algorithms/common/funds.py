"""Where the money for bets on returns is: in a reserve, or in the accounts of actions.

docs/bracket.md, "Money". Bets on returns begin with one unit of money (or, of two actions, each with
one of its own, `given`). It does most on the action that is exploited in the end, which is not known at
first, and what was staked on another is hard to get back. So only the first to open an account is given
much at once; after that, accounts are given little until the end is near, and then what the others can
spare. A search that bets has `rules` (with `epsilon`, `resolution`, `reserve`, `given` and `bettors`),
`root` (records with `FUNDED_FIELDS` and more), `moments` and `wealth`.
"""

from typing import Any

import numpy as np

from pacplan.compiled.jit import inlined

FUNDED_FIELDS = [
    ("account", np.int64),  # row of its wealth, once it is open
    ("money", np.float64),  # put into it, less what was taken out again
    ("refill", np.int64),  # exploit episodes after which it may be given more; 0 if it is not open
]

FIRST_BET = 4  # episodes watched before the first bet
MOST_FUNDED = 0.95  # part of all money that one account is given, at most ...
FIRST_FUNDED = 0.5  # ... and at least, while it is the only one ...
ANYTIME_FUNDED = 0.6  # ... and whichever it is, if there is no gap to stop at
# An account should have all when epsilon over the gap, both seen from the next best estimate, is ...
NEAR_END = 0.6
CAUTION = 2.0  # ... and before that this power of the part of it that is reached;
EDGE = 0.15  # or once its bets could win a nat this part of epsilon below the mean return
LEAST_SPREAD = 1e-12  # variance that stands for less
LEAST_MOVED = 0.02  # part of all money that is worth moving
REFILL = 0.1  # part of an action's exploit episodes that pass before it may be given more


@inlined
def fund(search: Any, action: int, gap: float) -> None:
    """Move money to the account of an action, before an exploit episode of it.

    `gap` is by how much it may be worse than another, at most.
    """
    rules, root, arm = search.rules[0], search.root, search.root[action]
    if arm.exploits < max(FIRST_BET, arm.refill):
        return
    if arm.refill == 0:
        arm.account = rules.bettors
        rules.bettors += 1
        search.wealth[arm.account] = rules.given / search.wealth.shape[2]
    arm.refill = arm.exploits + 1 + int(REFILL * arm.exploits)
    all_money = rules.reserve
    for b in range(root.size):
        all_money += root[b].money
    wanted = _wanted_part(search, action, gap) * all_money - arm.money
    if wanted <= LEAST_MOVED * all_money:
        return
    elsewhere = all_money - arm.money - rules.reserve
    moved = min(wanted, rules.reserve)
    rules.reserve -= moved
    if wanted > moved:
        part = min((wanted - moved) / elsewhere, 1.0)
        for b in range(root.size):
            if b != action and root[b].money > 0.0:
                moved += _withdraw(search.wealth[root[b].account], root[b], part)
    _deposit(search.wealth[arm.account], moved)
    arm.money += moved


@inlined
def _wanted_part(search: Any, action: int, gap: float) -> float:
    """The part of all money that an action should have."""
    rules, root, arm = search.rules[0], search.root, search.root[action]
    if rules.epsilon == 0.0:
        return ANYTIME_FUNDED
    ahead = np.inf
    for b in range(root.size):
        if b != action:
            ahead = min(ahead, arm.estimate - root[b].estimate)
    ahead = max(ahead, 0.0) if root.size > 1 else 0.0
    progress = (rules.resolution + ahead) / (max(gap, rules.resolution) + ahead)
    edge = EDGE * rules.resolution
    # What bets at this distance below a mean can win, in nats, if returns spread as they did.
    ready = 0.5 * arm.exploits * edge * edge / max(search.moments[action, 0].spread, LEAST_SPREAD)
    first = FIRST_FUNDED if rules.bettors == 1 else 0.0
    return float(min(max((progress / NEAR_END) ** CAUTION, ready, first), MOST_FUNDED))


@inlined
def _deposit(wealth: Any, money: float) -> None:
    """Put money into an account: the same amount at every point, in equal parts for its bettors."""
    for i in range(wealth.shape[0]):
        for q in range(wealth.shape[1]):
            wealth[i, q] += money / wealth.shape[1]


@inlined
def _withdraw(wealth: Any, arm: Any, part: float) -> float:
    """Take a part of what can be moved out of an account: the same amount at every point.

    No more can be than was put into it, nor than it has at any point that is not proven: so much it
    has wherever the value of its action lies.
    """
    least = arm.money
    for i in range(arm.proven + 1, wealth.shape[0]):
        least = min(least, total(wealth[i]))
    taken = part * least
    for i in range(wealth.shape[0]):
        before = total(wealth[i])
        left = max(1.0 - taken / before, 0.0) if before > 0.0 else 0.0
        for q in range(wealth.shape[1]):
            wealth[i, q] *= left
    arm.money -= taken
    return float(taken)


@inlined
def total(wealth: Any) -> float:
    """The wealth at a point, of all bettors."""
    sum_of_all = 0.0
    for q in range(wealth.size):
        sum_of_all += wealth[q]
    return float(sum_of_all)
