"""What a plan proves of each action: its gap, which is least, and which are ruled out."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import pacplan
from conftest import random_small
from every_planner import make, problem

BOUNDED = ["bracket", "canopy", "mdp-gape", "stop", "ugape-mcts", "opd", "op-mdp"]


def apart(plan):
    """max_{a != b} U(a) - L(b), for each b."""
    return [np.delete(plan.upper, b).max() - plan.lower[b] for b in range(len(plan.actions))]


@pytest.mark.parametrize("name", BOUNDED)
def test_each_action_has_a_gap_and_the_least_is_that_of_the_safest(name):
    for budget in (100, 2000):
        plan = make(name).plan(problem(name), 0, seed=1, budget=budget)
        taken = plan.actions.index(plan.action)
        assert plan.gaps[taken] == plan.gap
        assert plan.gaps[plan.actions.index(plan.safest)] == plan.gaps.min()
        assert plan.gaps == pytest.approx(apart(plan)) or name == "bracket"
        assert (plan.gaps <= np.array(apart(plan)) + 1e-12).all()
        assert (plan.ruled_out >= (plan.upper < plan.lower.max())).all()
        # What rules out all others leaves no gap.
        assert (np.delete(plan.ruled_out, taken).all() and not plan.ruled_out[taken]) >= (plan.gap < 0)
        record = json.loads(json.dumps(plan.to_dict()))
        assert record["gaps"] == plan.gaps.tolist() and record["ruled_out"] == plan.ruled_out.tolist()
        assert record["safest"] == plan.safest


def test_gaps_hold_for_every_action_and_a_best_one_is_never_ruled_out():
    """However a search ends: failures of any kind in no more plans than delta allows."""
    delta, plans, failed, decided = 1e-3, 300, 0, 0
    rng = np.random.default_rng(5)
    for seed in range(plans):
        model = random_small(rng, actions=3)
        budget = int(rng.integers(100, 3000))
        planner = pacplan.Bracket(epsilon=0.0, delta=delta, gamma=0.6, horizon=3)
        plan = planner.plan(model, 0, seed=seed, budget=budget)
        values = pacplan.exact.finite_horizon(model, gamma=0.6, horizon=3)[0, 0]
        losses = values.max() - values
        failed += (losses > np.maximum(plan.gaps, 0.0) + 1e-9).any() or plan.ruled_out[values.argmax()]
        decided += plan.ruled_out.any()
    assert decided > plans / 20
    assert failed <= stats.binom.ppf(1.0 - 1e-6, plans, delta)


def test_joint_evidence_rules_out_more_than_bounds():
    plan = make("bracket", epsilon=0.0).plan(pacplan.envs.garnet(seed=1), 0, seed=0, budget=60_000)
    assert plan.gap < 0.0 and plan.certified
    assert (plan.upper > plan.lower.max()).sum() > 1  # Intervals still overlap.
    assert plan.ruled_out.sum() == len(plan.actions) - 1
    assert "Ruled out: 4 of 5 actions." in plan.sentences and plan.warning == ""


def test_the_best_guess_and_the_best_guaranteed_action_are_both_told(tmp_path):
    garnet = pacplan.envs.garnet(seed=0)
    plan = next(
        plan
        for budget in range(100, 700, 20)
        for plan in [make("bracket", epsilon=0.5).plan(garnet, 0, seed=0, budget=budget)]
        if plan.safest != plan.action
    )
    guess, least = plan.gap, plan.gaps.min()
    assert least < guess and not plan.certified
    words = f"The safest action, {plan.safest}, is within {least:.3f}"
    for text in (str(plan), plan._repr_html_(), plan.to_html(tmp_path / "p.html").read_text("utf-8")):
        assert (
            words[:-1] in text and f"The best guess, {plan.action}, is within {guess:.3f}"[:-1] in text
        )
        assert "Settings: gamma 0.7, horizon 5, epsilon 0.5, delta 0.1." in text


def test_a_gap_beyond_the_spread_of_the_estimates_is_the_first_thing_said(tmp_path):
    plan = make("bracket", epsilon=1.0).plan(pacplan.envs.garnet(seed=0), 0, seed=0)
    spread = np.ptp(plan.values)
    gap = float(1.01 * spread)
    for ruled_out, word in ((np.zeros(5, bool), "Nothing"), (np.arange(5) == 1, "Little")):
        vague = replace(plan, gap=gap, ruled_out=ruled_out)
        warning = f"{word} was decided: the gap of "
        assert str(vague).startswith(warning)
        page = vague.to_html(tmp_path / "plan.html").read_text("utf-8").partition("<h1>")[2]
        assert page.partition("</h1>\n<p>")[2].startswith(warning)
        assert warning in vague._repr_html_().partition("<table")[0]
    for gap in (0.99 * spread, -0.1):
        assert "was decided" not in str(replace(plan, gap=float(gap)))
    alone = pacplan.Simulator(lambda s, a, rng: (s, 0.5, False), actions=1)
    assert make("bracket").plan(alone, 0, seed=0, budget=50).warning == ""


def test_bounds_by_the_name_of_an_action():
    model = pacplan.Simulator(lambda s, a, rng: (s, float(a == "stay"), True), actions=["stay", (1, 2)])
    plan = make("bracket", horizon=1).plan(model, 0, seed=0, budget=200)
    for i, name in enumerate(plan.actions):
        row = plan[name]
        assert row == plan.rows[i] and (row.action, row.upper, row.gap) == (
            name,
            plan.upper[i],
            plan.gaps[i],
        )
    with pytest.raises(KeyError, match="unknown action 'go'"):
        plan["go"]
    with pytest.raises(TypeError):
        iter(plan)
