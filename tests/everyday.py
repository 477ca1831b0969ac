"""Simulators as people write them for their own problems, and what they would ask of them."""

from math import exp, factorial

import pacplan

ROOM, SHELF_LIFE = 8, 0.05
PROBABLY = [exp(-2.0) * 2.0**k / factorial(k) for k in range(ROOM)]
# Customers who ask for coffee; the last entry stands for as many as there are cups, or more.
PROBABLY.append(1.0 - sum(PROBABLY))


def sell(cups, bought, customers):
    """Cups left, and what is earned: a cup sells for 4 and costs 1."""
    have = min(cups + bought, ROOM)
    sold = min(have, customers)
    return have - sold, 4.0 * sold - bought - SHELF_LIFE * have


def shop(cups, bought, rng):
    """A coffee shop that pays what its customers happened to pay."""
    customers = int(rng.choice(ROOM + 1, p=PROBABLY))
    return *sell(cups, bought, customers), False


def counted_shop(cups, bought, rng):
    """The same shop: it pays what its customers pay on average."""
    left, _, _ = shop(cups, bought, rng)
    mean = sum(p * sell(cups, bought, k)[1] for k, p in enumerate(PROBABLY))
    return left, mean, False


def shop_table():
    """The same shop, its probabilities and rewards written down."""
    probabilities = [[[0.0] * (ROOM + 1) for _ in ORDERS] for _ in range(ROOM + 1)]
    rewards = [[0.0 for _ in ORDERS] for _ in range(ROOM + 1)]
    for cups in range(ROOM + 1):
        for at, bought in enumerate(ORDERS):
            for k, p in enumerate(PROBABLY):
                left, earned = sell(cups, bought, k)
                probabilities[cups][at][left] += p
                rewards[cups][at] += p * earned
    return pacplan.TabularMDP(probabilities, rewards, reward_range=EARNED)


ORDERS, EARNED = [0, 2, 4, 6], (-6.4, 31.6)


def wards(waiting, first, rng):
    """Two queues of at most three; whoever waits costs something, the urgent more."""
    urgent, others = waiting
    if first == "urgent":
        urgent -= urgent > 0 and rng.random() < 0.7
    else:
        others -= others > 0 and rng.random() < 0.9
    urgent = min(urgent + (rng.random() < 0.3), 3)
    others = min(others + (rng.random() < 0.5), 3)
    # What is known before anything is drawn.
    return (int(urgent), int(others)), -(3 * waiting[0] + waiting[1]) / 12, False


LINES = ["012", "345", "678", "036", "147", "258", "048", "246"]


def open_squares(board):
    return [square for square in range(9) if board[square] == " "]


def has_row(board, mark):
    return any(all(board[int(square)] == mark for square in line) for line in LINES)


def crosses(board, square, rng):
    """Noughts and crosses against somebody who plays at random."""
    board = board[:square] + "x" + board[square + 1 :]
    if has_row(board, "x") or not open_squares(board):
        return board, float(has_row(board, "x")), True
    reply = int(rng.choice(open_squares(board)))
    board = board[:reply] + "o" + board[reply + 1 :]
    lost = has_row(board, "o")
    return board, -float(lost), lost or not open_squares(board)


def aisle(x, forward, rng):
    """A cart in an aisle of three metres that rolls half a metre, more or less; the far end pays."""
    x = min(max(x + (0.5 if forward else -0.5) + 0.1 * rng.normal(), 0.0), 3.0)
    return x, float(x > 2.5), x == 3.0


def pole(x, push, rng):
    """Keep something at 0 that is blown about."""
    x = x + push - 1.0 + 0.5 * rng.normal()
    return x, exp(-x * x), False


def gates(place, action, rng):
    """A maze in which nothing is random: 5 by 5 places, one of which pays."""
    x, y = place
    x, y = [(x + 1, y), (x, y + 1), (x - 1, y), (x, y - 1)][action]
    x, y = min(max(x, 0), 4), min(max(y, 0), 4)
    return (x, y), float((x, y) == (3, 2)), False
