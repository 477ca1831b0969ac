"""What sweeps run, and the rows they write."""

import json
from dataclasses import replace

import pytest

import pacplan
from conftest import short
from pacplan import exact
from pacplan.experiments import (
    PlannerSpec,
    ProblemSpec,
    Sweep,
    groups,
    read,
    run,
)
from sweeps import GAPE, SMALL, UCT, picky, slow, timeless


def test_rows_say_what_the_planner_did():
    sweep = Sweep([UCT, GAPE], [SMALL], budgets=[50, 200], seeds=[3, 8], seed=5)
    records = run(sweep, workers=1)
    assert len(records) == 8
    planners = {"uct": pacplan.UCT(gamma=0.7)}
    planners["mdp-gape"] = pacplan.MDPGapE(epsilon=0.0, delta=0.1, gamma=0.7, thresholds="sharp")
    for record in records:
        model = pacplan.envs.garnet(states=20, seed=record.problem_seed)
        planner = planners[record.planner]
        plan = planner.plan(model, seed=record.seed, budget=record.budget)
        values = exact.discounted(model, gamma=0.7)[0]
        told = json.loads(record.settings)
        assert told == {"planner": record.planner, "settings": planner.settings}
        assert record.problem == "garnet(states=20)"
        assert (record.action, record.samples) == (str(plan.action), plan.samples)
        assert (record.horizon, record.episodes) == (plan.horizon, plan.episodes)
        assert (record.gap, record.certified) == (plan.gap, plan.certified)
        assert record.regret == values.max() - values[plan.action]
        assert (record.stopped_by, record.error) == (plan.stopped_by, "")
    assert {(r.problem_seed, r.planner, r.budget) for r in records} == {
        (seed, name, budget) for seed in (3, 8) for name in planners for budget in (50, 200)
    }


def test_without_discount_regret_is_that_of_the_steps_planned():
    planner = PlannerSpec("uct", {"gamma": 1.0, "horizon": 3})
    (record,) = run(Sweep([planner], [SMALL], budgets=[40]), workers=1)
    model = pacplan.envs.garnet(states=20, seed=0)
    values = exact.finite_horizon(model, gamma=1.0, horizon=3)[0, 0]
    assert record.regret == values.max() - values[int(record.action)]


def test_seeds_follow_from_the_run_alone():
    budgets = [50, 100]
    one = {r.seed: r for r in Sweep([UCT, GAPE], [SMALL], budgets, seeds=3).runs()}
    other = {r.seed: r for r in Sweep([GAPE], [SMALL], budgets[::-1], seeds=[2, 7, 0]).runs()}
    shared = one.keys() & other.keys()
    assert len(shared) == 4
    for seed in shared:
        assert one[seed].problem_seed == other[seed].problem_seed in (0, 2)
        assert one[seed].budget == other[seed].budget
        assert one[seed].planner == other[seed].planner == GAPE
    assert not one.keys() & {
        r.seed for r in Sweep([UCT, GAPE], [SMALL], budgets, seeds=3, seed=1).runs()
    }


def test_planners_and_problems_as_objects():
    sweep = Sweep([PlannerSpec(pacplan.UCT(gamma=0.7))], [ProblemSpec(slow)], budgets=[30], seeds=2)
    records = run(sweep, workers=1)
    assert [record.problem for record in records] == ["sweeps:slow"] * 2
    assert all(record.regret is not None for record in records)


def test_a_problem_without_tables_has_no_regret():
    def still(state, action, rng):
        return state, 0.5, False

    def model(seed):
        return pacplan.Simulator(still, actions=2, successors=1, initial=0)

    (record,) = run(Sweep([UCT], [ProblemSpec(model, label="still")], budgets=[30]), workers=1)
    assert record.regret is None and record.samples == 30


def test_what_cannot_be_told_apart_needs_a_label():
    thresholds = (lambda n: 1.0, lambda n: 1.0)
    own = PlannerSpec("mdp-gape", {"gamma": 0.7, "horizon": 3, "thresholds": thresholds})
    with pytest.raises(ValueError, match="label"):
        Sweep([own], [SMALL], budgets=[30]).runs()
    labelled = replace(own, label="flat")
    (record,) = run(Sweep([labelled], [SMALL], budgets=[30]), workers=1)
    assert record.planner == json.loads(record.settings)["label"] == "flat"
    with pytest.raises(ValueError, match="label"):
        Sweep([UCT], [ProblemSpec(lambda seed: None)], budgets=[30]).runs()


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"planners": []}, "planners"),
        ({"problems": []}, "problems"),
        ({"budgets": []}, "budgets"),
        ({"budgets": [0]}, "budgets"),
        ({"budgets": [10, 10]}, "twice"),
        ({"planners": [UCT, UCT]}, "twice"),
        ({"seeds": 0}, "seeds"),
        ({"seeds": []}, "seeds"),
        ({"seeds": [-1]}, "seeds"),
        ({"seed": -1}, "seed"),
        ({"planners": [PlannerSpec("nonsense")]}, "nonsense"),
        ({"planners": [PlannerSpec("uct", {"colour": 1})]}, "colour"),
        ({"problems": [ProblemSpec("nowhere")]}, "nowhere"),
        ({"problems": [ProblemSpec("garnet", {"states": 0})]}, "states"),
        ({"planners": [PlannerSpec(pacplan.UCT(gamma=0.7), {"gamma": 0.7})]}, "settings"),
        ({"problems": [ProblemSpec(slow, {"states": 3})]}, "settings"),
    ],
    ids=short,
)
def test_wrong_sweeps_are_refused_before_anything_runs(change, word, tmp_path):
    given = {"planners": [UCT], "problems": [SMALL], "budgets": [10], "seeds": 2} | change
    with pytest.raises((ValueError, TypeError), match=word):
        run(Sweep(**given), tmp_path / "out", workers=1)
    assert not (tmp_path / "out").exists()


def test_a_run_that_raises_is_a_row_and_the_others_go_on(tmp_path):
    planners = [PlannerSpec("opd", {"gamma": 0.7}), UCT]
    sweep = Sweep(planners, [ProblemSpec(picky)], budgets=[30], seeds=4)
    records = run(sweep, tmp_path, workers=1)
    for record in records:
        if record.problem_seed % 2:
            assert record.error == f"ArithmeticError: seed {record.problem_seed} is odd"
        elif record.planner == "opd":
            assert record.error.startswith("ValueError: OPD plans where")
        else:
            assert record.error == "" and record.samples == 30
    assert timeless(read(tmp_path / "runs.csv")) == timeless(records)
    summary = {group.planner: group for group in groups(records)}
    assert (summary["opd"].runs, summary["opd"].failed, summary["opd"].regret) == (4, 4, None)
    assert (summary["uct"].runs, summary["uct"].failed) == (4, 2)
