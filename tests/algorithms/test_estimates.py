"""Estimates lie within their bounds, and there are none of what was never seen."""

import json

import numpy as np
import pytest

import pacplan

KNOWN = pacplan.envs.garnet(states=12, actions=4, seed=3, noise="bernoulli")
FIXED = pacplan.envs.garnet(states=12, actions=4, successors=1, seed=3)
GAME = pacplan.envs.game_tree(np.random.default_rng(2).random((4, 3, 3)).tolist())
COMMON = {"delta": 0.1, "gamma": 0.8, "horizon": 4}


def last_pays(state, action, rng):
    """Four moves, of which the last pays 0 or 1: a game against chance."""
    if len(state) == 3:
        return None, float(rng.random() < (0.9 if sum(state) + action > 2 else 0.2)), True
    return (*state, action), 0.0, False


def bounded_game():
    """All that can be won is 1, and the planner is told so."""
    return pacplan.Simulator(last_pays, actions=4, successors=1, reward_range=(0, 1))


CAPPED = {"value_bounds": (lambda state, h: 0.0, lambda state, h: 1.0), "transitions": "deterministic"}
CASES = {
    "bracket": (pacplan.Bracket(epsilon=0, **COMMON), KNOWN, 0),
    "bracket value": (pacplan.Bracket(epsilon=0.1, goal="value", **COMMON), KNOWN, 0),
    "bracket capped": (pacplan.Bracket(epsilon=0, **(COMMON | {"gamma": 1}), **CAPPED), None, ()),
    "mdp-gape": (pacplan.MDPGapE(epsilon=0, **COMMON), KNOWN, 0),
    "mdp-gape sharp": (pacplan.MDPGapE(epsilon=0, thresholds="sharp", **COMMON), KNOWN, 0),
    "mdp-gape depth": (pacplan.MDPGapE(epsilon=0, merge="depth", **COMMON), KNOWN, 0),
    "mdp-gape value": (pacplan.MDPGapE(epsilon=0.1, goal="value", **COMMON), KNOWN, 0),
    "mdp-gape capped": (pacplan.MDPGapE(epsilon=0, **(COMMON | {"gamma": 1}), **CAPPED), None, ()),
    "opd": (pacplan.OPD(gamma=0.8), FIXED, 0),
    "op-mdp": (pacplan.OPMDP(gamma=0.8), KNOWN, 0),
    "stop": (pacplan.StOP(epsilon=0.1, delta=0.1, gamma=0.3), KNOWN, 0),
    "ugape-mcts": (pacplan.UGapEMCTS(epsilon=0, delta=0.1), GAME, 0),
    "lucb": (pacplan.UGapEMCTS(epsilon=0, delta=0.1, rule="lucb"), GAME, 0),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("budget", [1, 2, 3, 4, 5, 10, 50, 1000, 10_000])
def test_estimates_lie_within_their_bounds(name, budget):
    planner, model, state = CASES[name]
    if name == "op-mdp" and budget < 4:
        with pytest.raises(ValueError, match="reads all 4 actions"):
            planner.plan(model, state, seed=1, budget=budget)
        return
    plan = planner.plan(model or bounded_game(), state, seed=1, budget=budget)
    seen = ~np.isnan(plan.values)
    # Nothing is known of an action without a call, but for what the bounds say.
    assert not seen[plan.calls == 0].any()
    assert (plan.values[seen] >= plan.lower[seen]).all()
    above = plan.values[seen] > plan.upper[seen]
    assert (plan.lower[seen][above] == plan.values[seen][above]).all()
    if "bracket" not in name:
        assert not above.any()
    assert plan.lower.max() <= plan.value <= max(plan.upper.max(), plan.lower.max())
    record = plan.to_dict()
    json.dumps(record, allow_nan=False)
    assert [value is None for value in record["values"]] == list(~seen)
    lines = str(plan).splitlines()
    header = next(i for i, line in enumerate(lines) if line.split()[:1] == ["action"])
    lines = lines[header + 1 : header + 1 + len(plan.actions)]
    assert [line.split()[-2] == "-" for line in lines] == list(~seen)


def test_the_tree_tells_of_the_root_what_the_plan_tells():
    for name in ("bracket", "bracket capped", "ugape-mcts"):
        planner, model, state = CASES[name]
        for budget in (1, 3, 100, 3000):
            plan = planner.plan(model or bounded_game(), state, seed=1, budget=budget)
            told = dict.fromkeys(range(len(plan.actions)))
            for link in plan.tree.tried(0):
                told[int(plan.tree.pairs[link]["action"])] = plan.tree.evidence(link, [0]).value
            assert list(told.values()) == plan.to_dict()["values"]
