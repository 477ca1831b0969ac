"""Many decisions: the plans of single ones, in order, wherever they are made."""

from itertools import count, islice

import numpy as np
import pytest

import pacplan
from deciding import MODEL, SLOW, content
from interrupting import interrupted_script

TABLE = pacplan.envs.garnet(states=20, seed=0)
BRACKET = pacplan.Bracket(epsilon=1.0, delta=0.1, gamma=0.7)
UCT = pacplan.UCT(gamma=0.7)
STATES = [3, 0, 7, 7, 1, 9, 2]


def child(seed, i):
    return np.random.SeedSequence(seed, spawn_key=(i,))


def one_by_one(planner, model, states, seed, **limits):
    return [
        content(planner.plan(model, state, seed=child(seed, i), **limits))
        for i, state in enumerate(states)
    ]


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("planner", [BRACKET, UCT], ids=["bracket", "uct"])
def test_threads_find_the_same_plans(planner):
    expected = one_by_one(planner, TABLE, STATES, 5, budget=3000)
    for workers in (1, 2, 5):
        plans = planner.plan_many(TABLE, STATES, seeds=5, workers=workers, budget=3000)
        assert [content(plan) for plan in plans] == expected
        assert not plans.interrupted


@pytest.mark.usefixtures("nothing_left")
def test_processes_find_the_same_plans():
    expected = one_by_one(BRACKET, MODEL, STATES, 5, budget=500)
    plans = BRACKET.plan_many(MODEL, STATES, seeds=5, workers=2, budget=500)
    found = list(plans)
    assert [content(plan) for plan in found] == expected
    assert found[0].tree.state(0) == STATES[0]
    bare = BRACKET.plan_many(MODEL, STATES[:1], seeds=5, workers=1, budget=500, trees=False)
    assert content(next(bare)) == (*expected[0][:2], None)


@pytest.mark.processes
def test_a_dask_client_finds_the_same_plans():
    distributed = pytest.importorskip("distributed")
    expected = one_by_one(BRACKET, MODEL, STATES, 5, budget=500)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        plans = BRACKET.plan_many(MODEL, [*STATES, 100], seeds=5, executor=client, budget=500)
        *found, error = plans.outcomes()
        assert [content(plan) for plan in found] == expected
        assert isinstance(error, ArithmeticError)
        plans = BRACKET.plan_many(MODEL, STATES, seeds=5, executor=client.get_executor(), budget=500)
        assert [content(plan) for plan in plans] == expected


def test_seeds():
    def found(seeds):
        return [content(p) for p in UCT.plan_many(TABLE, [0, 1], seeds=seeds, workers=2, budget=100)]

    assert found([4, 9]) == [
        content(UCT.plan(TABLE, state, seed=seed, budget=100)) for state, seed in ((0, 4), (1, 9))
    ]
    assert found(np.random.SeedSequence(4)) == found(4) != found(5)
    assert found(np.random.SeedSequence(4, spawn_key=(1,)))[1] == content(
        UCT.plan(TABLE, 1, seed=np.random.SeedSequence(4, spawn_key=(1, 1)), budget=100)
    )
    assert found(None) != found(None)
    (plan,) = UCT.plan_many(TABLE, [0], budget=100)
    again = np.random.SeedSequence(plan.origin.seed, spawn_key=plan.origin.spawn_key)
    assert content(UCT.plan(TABLE, 0, seed=again, budget=100)) == content(plan)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_generator_is_read_as_plans_are_asked_for(workers):
    read = []

    def endless():
        for i in count():
            read.append(i)
            yield i % 20

    with UCT.plan_many(TABLE, endless(), seeds=0, workers=workers, budget=200) as plans:
        assert read == []
        first = [content(plan) for plan in islice(plans, 5)]
    assert first == one_by_one(UCT, TABLE, range(5), 0, budget=200)
    assert len(read) <= 5 + (8 * workers if workers > 1 else 0)
    assert list(plans) == []


@pytest.mark.processes
@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("model", [TABLE, SLOW], ids=["threads", "processes"])
@pytest.mark.parametrize("how", ["close", "with", "forget"])
def test_leaving_early_ends_plans_under_way(model, how, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # All but the first state, which raises, would take hours.
    endless = pacplan.UCT(gamma=0.9, horizon=9)
    plans = endless.plan_many(model, [100, *range(9)], workers=2, time_limit=36_000)
    with pytest.raises((ValueError, ArithmeticError), match="100"):
        next(plans)
    if how == "close":
        plans.close()
    elif how == "with":
        with pytest.raises(ZeroDivisionError), plans:
            raise ZeroDivisionError
    if how == "forget":
        del plans
    else:
        assert list(plans) == [] and not plans.interrupted


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_is_its_own_state_s_alone(workers):
    states = [1, 100, 2, 101, 3]
    expected = one_by_one(UCT, MODEL, range(4), 0, budget=50)[1:]
    plans = UCT.plan_many(
        MODEL, states, seeds=[child(0, i) for i in (1, 0, 2, 0, 3)], workers=workers, budget=50
    )
    first, wrong, second, odd, third = plans.outcomes()
    assert [content(plan) for plan in (first, second, third)] == expected
    assert isinstance(wrong, ArithmeticError) and "no step from 100" in str(wrong)
    assert any("plan from state 100" in note for note in wrong.__notes__)
    assert "101: odd" in str(odd)
    if workers == 2:
        assert any("deciding.py" in note for note in wrong.__notes__)
        assert "deciding.py" in str(odd)


@pytest.mark.processes
@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("states", [[102, 1], [1, 2, 3, 102, *range(100)]])
def test_a_process_that_dies_is_explained(states):
    plans = UCT.plan_many(MODEL, states, workers=2, budget=50)
    with pytest.raises(RuntimeError, match="killed for lack of memory"):
        list(plans)


def test_delta_is_shared_among_all():
    states = [0, 1, 2, 3]
    plans = list(BRACKET.plan_many(TABLE, states, seeds=1, workers=2, spread="union"))
    share = pacplan.Bracket(epsilon=1.0, delta=0.1 / 4, gamma=0.7)
    assert [content(plan) for plan in plans] == one_by_one(share, TABLE, states, 1)
    assert all("0.975" in plan.guarantee for plan in plans)
    settings = {"epsilon": 1.0, "gamma": 0.7, "sample": True}
    chosen = pacplan.plan_many(TABLE, states, delta=0.1, seeds=1, spread="union", **settings)
    alone = pacplan.plan(TABLE, 2, delta=0.1 / 4, seed=child(1, 2), **settings)
    assert content(list(chosen)[2]) == content(alone)
    assert list(BRACKET.plan_many(TABLE, [], spread="union")) == []


@pytest.mark.parametrize(
    ("states", "arguments", "error", "message"),
    [
        (iter([0]), {"spread": "union"}, TypeError, "pass list"),
        (iter([0]), {"progress": True}, TypeError, "pass list"),
        ([0], {"spread": "both"}, ValueError, "union"),
        ([0], {"workers": 0}, ValueError, "workers"),
        ([0], {"executor": 3}, TypeError, "Executor"),
        ([0], {"seeds": [1, 2]}, ValueError, "one entry for each of 1 states, got 2"),
        ([0], {"seeds": 1.5}, TypeError, "seed"),
        ([0], {"budget": 0}, ValueError, "budget"),
        ("03", {}, TypeError, "list of states"),
        (3, {}, TypeError, "list of states"),
    ],
)
def test_what_is_wrong_is_said_at_once(states, arguments, error, message):
    with pytest.raises(error, match=message):
        BRACKET.plan_many(TABLE, states, **arguments)


SCRIPT = """
import sys
from pathlib import Path
import pacplan
from deciding import SLOW

def states():
    for state in range(9):
        Path("begun").touch()
        yield state

if __name__ == "__main__":
    kind, workers = sys.argv[1], int(sys.argv[2])
    model = SLOW if kind == "python" else pacplan.envs.garnet(states=20, seed=0)
    quick = pacplan.UCT(gamma=0.7, horizon=3)
    long = pacplan.UCT(gamma=0.9, horizon=9)
    list(quick.plan_many(model, [0, 1], workers=1, budget=20))  # Compile.
    plans = long.plan_many(model, states(), seeds=0, workers=workers, time_limit=3600)
    found = list(plans)
    print(len(found), plans.interrupted, {(p.stopped_by, p.interrupted) for p in found})
    again = list(quick.plan_many(model, [0, 1], workers=workers, budget=20))
    print(len(again), flush=True)
"""


@pytest.mark.processes
@pytest.mark.parametrize("kind", ["python", "compiled"])
@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c(kind, workers, tmp_path):
    # From when the first state is read, Ctrl-C is plan_many's to handle.
    arguments = (kind, str(workers))
    ended = interrupted_script(SCRIPT, *arguments, folder=tmp_path, begun=["begun"], wait=0.5)
    assert ended.code == 0, ended.stderr
    returned, last = ended.stdout.splitlines()
    assert last == "2"
    # On a busy machine, not every worker may have begun.
    begun = [f"{count} True {{('interrupt', True)}}" for count in range(1, workers + 1)]
    assert returned in ("0 True set()", *begun)
    assert "Traceback" not in ended.stderr
