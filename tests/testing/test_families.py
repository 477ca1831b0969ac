"""The cases of the verification: their answers, by brute force."""

import numpy as np
import pytest

from pacplan.testing import FAMILIES
from pacplan.testing import families as family_module


def outcomes(table, state, action, h):
    """What can happen, from the table that draws are made from: probability, reward, next state."""
    row = table._table.outcomes[h if table.steps is not None else 0, state, action]
    return [
        (float(p), float(outcome["reward"]), None if outcome["ended"] else int(outcome["state"]))
        for p, outcome in zip(np.diff(row["cumulative"], prepend=0.0), row, strict=True)
        if p > 0.0
    ]


def by_recursion(model, follow, state, gamma, left, h=0):
    """Values of the actions of a state, with every future enumerated."""
    found = []
    for action in range(len(model.actions(state))):
        value = 0.0
        for p, reward, after in follow(model, state, action, h):
            rest = 0.0
            if after is not None and left > 1:
                rest = max(by_recursion(model, follow, after, gamma, left - 1, h + 1))
            value += p * (reward + gamma * rest)
        found.append(value)
    return found


def minimax(model, state, maximises=True):
    found = []
    for action in range(len(model.actions(state))):
        ((_, reward, after),) = outcomes(model, state, action, 0)
        found.append(reward if after is None else minimax(model, after, not maximises))
    return found if state == 0 else max(found) if maximises else min(found)


def lottery_outcomes(model, state, action, h):
    """Those of the lottery, by calling it with a fine grid of its two uniform numbers."""

    class Fixed:
        def __init__(self, *numbers):
            self.random = iter(numbers).__next__

    fine = (np.arange(60) + 0.5) / 60
    coarse = (np.arange(400) + 0.5) / 400
    step = family_module._lottery.py_func
    paid = np.mean([step(state, action, Fixed(x, 0.5))[1] for x in coarse])
    return [(1 / 60, paid, step(state, action, Fixed(0.5, x))[0]) for x in fine]


ENDLESS = sorted(name for name, family in FAMILIES.items() if "endless" in family.traits)


@pytest.mark.parametrize("name", sorted(FAMILIES.keys() - {"continuous", *ENDLESS}))
def test_answers_are_those_of_brute_force(name):
    family = FAMILIES[name]
    for seed in range(15):
        case = family.case(seed)
        assert case.delta == family.delta
        assert set(case.settings) == family.settings
        assert "one step" not in family.traits or case.horizon == 1
        if "game" in family.traits:
            expected = minimax(case.model, 0)
        else:
            expected = by_recursion(case.table, outcomes, case.state, case.gamma, case.horizon)
        np.testing.assert_allclose(case.values, expected, rtol=0.0, atol=1e-12)


def test_answers_where_every_successor_is_new():
    checked = set()
    for seed in range(12):
        case = FAMILIES["continuous"].case(seed)
        if case.horizon < 3:
            expected = by_recursion(case.model, lottery_outcomes, case.state, case.gamma, case.horizon)
            np.testing.assert_allclose(case.values, expected, rtol=0.0, atol=2e-3)
            checked.add(case.horizon)
    assert checked == {1, 2}


def by_iteration(table, gamma):
    """Values of the actions of state 0 over an infinite horizon."""
    values = np.zeros(table.states)
    for _ in range(3 + int(np.log(1e-8) / np.log(gamma))):
        rows = [
            [
                sum(
                    p * (r + gamma * (0.0 if after is None else values[after]))
                    for p, r, after in outcomes(table, state, action, 0)
                )
                for action in table.actions(state)
            ]
            for state in np.flatnonzero(~table._terminal)
        ]
        values[~table._terminal] = [max(row) for row in rows]
    return rows[0]


@pytest.mark.parametrize("name", ["endless", *ENDLESS])
def test_answers_for_an_infinite_horizon(name):
    for seed in range(15 if name == "endless" else 5):
        case = FAMILIES[name].case(seed)
        assert (case.horizon is None) == (name in ENDLESS)
        found = case.endless if case.horizon is not None else case.values
        np.testing.assert_allclose(found, by_iteration(case.table, case.gamma), atol=1e-6)


def test_cases_come_in_every_kind():
    drawn = {
        name: [FAMILIES[name].case(seed) for seed in range(60)] for name in ("mixed", "ends", "ties")
    }
    mixed = drawn["mixed"]
    assert {case.horizon for case in mixed} == {1, 2, 3, 4}
    assert {1, 2, 3, 8} <= {case.model.successors for case in mixed}
    assert {case.gamma for case in mixed} == {1.0, 0.9, 0.5}
    assert {case.model.noise for case in mixed} == {"none", "bernoulli"}
    assert any(case.model.reward_range[1] < 0.0 for case in drawn["ends"])
    ties = [np.sort(case.values)[::-1] for case in drawn["ties"]]
    loss = [(q[0] - q[1]) / case.epsilon for q, case in zip(ties, drawn["ties"], strict=True)]
    assert min(loss) == pytest.approx(1.0, abs=1e-9) and max(loss) > 1.0 + 1e-9
