"""What sweeps run, and the rows they write."""

import json
from itertools import product

import pytest

import pacplan
from conftest import short
from pacplan import exact
from pacplan.experiments import PlannerSpec, ProblemSpec, Sweep, groups, read, run
from sweeps import GAPE, SMALL, UCT, picky, slow, timeless


def test_rows_say_what_the_planner_did():
    sweep = Sweep([UCT, GAPE], [SMALL], budgets=[50, 200], seeds=[3, 8], seed=5)
    records = run(sweep, workers=1)
    assert [record.key for record in records] == [one.key for one in sweep.runs()]
    planners = {"uct": pacplan.UCT(gamma=0.7)}
    planners["mdp-gape"] = pacplan.MDPGapE(epsilon=0.0, delta=0.1, gamma=0.7, thresholds="sharp")
    for record in records:
        model = pacplan.envs.garnet(states=20, seed=record.problem_seed)
        planner = planners[record.planner]
        plan = planner.plan(model, seed=record.seed, budget=record.budget)
        values = exact.discounted(model, gamma=0.7)[0]
        told = json.loads(record.settings)
        assert told == {"planner": record.planner, "settings": planner.settings}
        for name in ("samples", "horizon", "episodes", "gap", "certified", "stopped_by"):
            assert getattr(record, name) == getattr(plan, name)
        assert (record.problem, record.action) == ("garnet(states=20)", str(plan.action))
        assert (record.regret, record.error) == (values.max() - values[plan.action], "")
    keys = product((3, 8), planners, (50, 200))
    assert {(r.problem_seed, r.planner, r.budget) for r in records} == {*keys}


def test_without_discount_regret_is_that_of_the_steps_planned():
    planner = PlannerSpec("uct", {"gamma": 1.0, "horizon": 3})
    (record,) = run(Sweep([planner], [SMALL], budgets=[40]), workers=1)
    model = pacplan.envs.garnet(states=20, seed=0)
    values = exact.finite_horizon(model, gamma=1.0, horizon=3)[0, 0]
    assert record.regret == values.max() - values[int(record.action)]


def test_seeds_follow_from_the_run_alone():
    budgets = [50, 100]
    one = {r.row.seed: r.key for r in Sweep([UCT, GAPE], [SMALL], budgets, seeds=3).runs()}
    other = {r.row.seed: r.key for r in Sweep([GAPE], [SMALL], budgets[::-1], seeds=[2, 7, 0]).runs()}
    assert len(one.items() & other.items()) == len(one.keys() & other.keys()) == 4
    assert not one.keys() & {r.row.seed for r in Sweep([UCT], [SMALL], budgets, 3, seed=1).runs()}


def test_problems_without_tables_have_no_regret_and_actions_may_have_many_lines(tmp_path):
    def model(seed):
        return pacplan.Simulator(
            lambda s, a, rng: (s, 1.0 if "up" in a else 0.0, False),
            actions=lambda state: ["up\nand away", "down"],
            successors=1,
            initial=0,
        )

    sweep = Sweep([UCT], [ProblemSpec(model, label="names")], budgets=[30])
    (record,) = run(sweep, tmp_path, workers=1)
    assert (record.action, record.regret, record.samples) == ("up\nand away", None, 30)
    assert read(tmp_path) == [record]


def test_functions_are_told_apart_by_their_code():
    def told(low):
        bounds = (lambda state, h: low), (lambda state, h: 3.0)
        settings = {"gamma": 0.7, "horizon": 3, "epsilon": 0.5, "value_bounds": bounds}
        return PlannerSpec("bracket", settings)

    first, again = (Sweep([told(0.0), told(-1.0)], [SMALL], budgets=[30]).runs() for _ in range(2))
    assert [run.row for run in first] == [run.row for run in again]
    assert len({run.row.seed for run in first}) == 2
    same = PlannerSpec(pacplan.UCT(gamma=0.7, horizon=None), label="another name")
    for twice in ([UCT, same], [told(0.0), told(0.0)]):
        with pytest.raises(ValueError, match="given twice"):
            Sweep(twice, [SMALL], budgets=[20]).runs()


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"planners": []}, "planners"),
        ({"budgets": [0]}, "budgets"),
        ({"budgets": [10, 10]}, "twice"),
        ({"seeds": 0}, "seeds"),
        ({"seeds": [-1]}, "seeds"),
        ({"seed": -1}, "seed"),
        ({"planners": [PlannerSpec("nonsense")]}, "nonsense"),
        ({"planners": [PlannerSpec("uct", {"colour": 1})]}, "colour"),
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


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"seeds": 3}, "seeds was"),
        ({"budgets": [21]}, "planners was"),
        ({"planners": [GAPE]}, "mdp-gape"),
    ],
    ids=short,
)
def test_another_sweep_in_the_same_folder_is_refused(tmp_path, change, word):
    given = {"planners": [UCT], "problems": [SMALL], "budgets": [20], "seeds": 2}
    run(Sweep(**given), tmp_path, workers=1)
    with pytest.raises(ValueError, match=word):
        run(Sweep(**(given | change)), tmp_path, workers=1)


def test_a_run_that_raises_is_a_row_and_the_others_go_on(tmp_path):
    planners = [PlannerSpec("opd", {"gamma": 0.7}), UCT]
    sweep = Sweep(planners, [ProblemSpec(picky)], budgets=[30], seeds=4)
    records = run(sweep, tmp_path, workers=1)
    for record in records:
        assert record.problem == "sweeps:picky"
        if record.problem_seed % 2:
            assert record.error == f"ArithmeticError: seed {record.problem_seed} is odd"
        elif record.planner == "opd":
            assert record.error.startswith("ValueError: OPD needs a problem")
        else:
            assert record.error == "" and record.samples == 30
    assert timeless(read(tmp_path)) == timeless(records)
    summary = {group.planner: group for group in groups(records)}
    assert (summary["opd"].runs, summary["opd"].failed, summary["opd"].regret) == (4, 4, None)
    assert (summary["uct"].runs, summary["uct"].failed) == (4, 2)
