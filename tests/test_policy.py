"""What to do in the other states: true to the proof, and a mapping like any other."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest

import pacplan
from pacplan.algorithms.atlas.design import Designer
from pacplan.algorithms.atlas.search import AtlasSearch
from pacplan.core.words import at_least
from pacplan.policy import NONE

GAMMA, MOST = 0.8, 3
STATES = [(a, b) for a in range(MOST + 1) for b in range(MOST + 1)]
CHANCES = {"first": 0.8, "second": 0.9}
SETTINGS = {"epsilon": 1.0, "delta": 1e-8, "gamma": GAMMA}


def outcomes(waiting, served):
    """Two queues: (probability, next state, reward)."""
    place, found = ["first", "second"].index(served), []
    for done, p in ((1, CHANCES[served]), (0, 1.0 - CHANCES[served])):
        left = [n - (done if i == place else 0) for i, n in enumerate(waiting)]
        left = [max(n, 0) for n in left]
        for (one, other), q in (((1, 0), 0.3), ((0, 1), 0.3), ((0, 0), 0.4)):
            after = min(left[0] + one, MOST), min(left[1] + other, MOST)
            found.append((p * q, after, -(3.0 * left[0] + left[1]) / 4.0))
    return found


def step(waiting, served, rng):
    found = outcomes(waiting, served)
    _, after, reward = found[rng.choice(len(found), p=[p for p, _, _ in found])]
    return after, reward, False


def clinic(**settings):
    return pacplan.Simulator(step, actions=list(CHANCES), reward_range=(-3, 0), **settings)


def planned(budget=None, state=(2, 2), model=None, seed=0, **settings):
    planner = pacplan.Atlas(**(SETTINGS | settings))
    return planner.plan(clinic() if model is None else model, state, seed=seed, budget=budget)


def worth(action_of, horizon=None):
    """Exact values of a policy, or the optimal ones if it is None: by step, then by state."""
    values = dict.fromkeys(STATES, 0.0)
    kept = [values]
    for h in reversed(range(horizon or 200)):
        values = {
            state: max(
                sum(
                    p * (reward + GAMMA * values[after]) for p, after, reward in outcomes(state, action)
                )
                for action in (CHANCES if action_of is None else [action_of(state, h)])
            )
            for state in STATES
        }
        kept.insert(0, values)
    return kept


@pytest.fixture(params=["everywhere", "around one"])
def reference(request, monkeypatch):
    """The claims that prove the policy are about all states, or around one of them."""
    every = Designer.references

    def only(self):
        found = every(self)
        return found[:1] if request.param == "everywhere" or len(found) == 1 else found[1:]

    monkeypatch.setattr(Designer, "references", only)


@pytest.mark.usefixtures("reference")
def test_it_earns_what_it_says():
    plan = planned()
    policy = plan.policy
    assert plan.certified and len(policy) == len(STATES)
    assert policy[2, 2] == plan.action
    exact, best = worth(lambda state, h: policy[state])[0], worth(None)[0]
    assert policy.value <= exact[2, 2] and policy.value >= best[2, 2] - 2.0 * SETTINGS["epsilon"]
    assert f"the policy earns at least {at_least(policy.value)}" in plan.guarantee
    for state in STATES:
        assert best[state] <= policy.upper[state]
        assert policy.lower[state] <= exact[state]
    assert policy.lower[2, 2] == policy.value
    assert policy.value == plan.lower.max()


def test_with_a_horizon_the_steps_count():
    plan = planned(horizon=4)
    policy = plan.policy
    near = {(2, 2)}
    for _ in range(3):  # Nothing is said of states that no path reaches in time.
        near |= {after for at in near for served in CHANCES for _, after, _ in outcomes(at, served)}
    assert plan.certified and plan.horizon == 4 and near == set(STATES) - {(0, 0)}
    assert policy[(2, 2), 0] == plan.action
    exact, best = worth(lambda state, h: policy.get((state, h), "first"), 4), worth(None, 4)
    assert policy.value <= exact[0][2, 2]
    assert set(policy) == {(state, h) for state in near for h in (1, 2, 3)} | {((2, 2), 0)}
    for state, h in policy:
        assert best[h][state] <= policy.upper[state, h]
        assert policy.lower[state, h] <= exact[h][state]
    for key in ((2, 2), "elsewhere", ((2, 2), 4), ((2, 2), -1), ((1, 1), 0)):
        with pytest.raises(KeyError, match="steps"):
            policy[key]


def test_it_is_a_mapping():
    policy = planned().policy
    assert set(policy) == set(STATES) and dict(policy)[0, 3] == policy[0, 3] == "second"
    assert policy.get((9, 9)) is None and (9, 9) not in policy and (1, 1) in policy
    assert set(policy.values()) == set(CHANCES)
    assert policy[np.int64(1), 2] == policy[[1, 2]] == policy[1, 2]
    assert repr(policy) == "<Policy: 16 actions>"
    with pytest.raises(KeyError, match=r"the policy does not know the state \(9, 9\)"):
        policy[9, 9]
    with pytest.raises(ValueError, match="read-only"):
        policy.upper.content[0, 0] = 0.0


def test_states_that_the_proof_leaves_out_are_not_known(monkeypatch):
    accept = AtlasSearch._accept

    def without_some(self, design):
        cut = design.policy.copy()
        cut[:, 3:5] = NONE
        accept(self, replace(design, policy=cut))

    whole = planned().policy
    monkeypatch.setattr(AtlasSearch, "_accept", without_some)
    less = planned().policy
    assert len(less) == len(less.upper) == len(STATES) - 2
    assert dict(less) == {state: whole[state] for state in less}
    for state in set(whole) - set(less):
        assert state not in less.upper
        with pytest.raises(KeyError, match="plan from there"):
            less[state]


@pytest.mark.usefixtures("reference")
def test_what_bounds_on_optimal_values_leave_open_is_said():
    bounds = (lambda state, h: -15.0), (lambda state, h: 0.0)
    plan = planned(value_bounds=bounds)
    assert "goes on optimally" in plan.policy.given and plan.policy.given in plan.guarantee
    assert plan.policy.value <= worth(None)[0][2, 2]


def test_it_goes_where_plans_go():
    plan = planned()
    again = pickle.loads(pickle.dumps(plan)).policy
    assert dict(again) == dict(plan.policy) and dict(again.upper) == dict(plan.policy.upper)
    told = json.loads(json.dumps(plan.to_dict(), allow_nan=False))["policy"]
    assert told["value"] == plan.policy.value and told["states"][0] == "(2, 2)"
    assert told["actions"] == [[plan.policy[state] for state in plan.policy.states]]
    assert told["upper"] == [[plan.policy.upper[state] for state in plan.policy.states]]
    assert (told["lower"] is None) == (plan.policy.lower is None)
