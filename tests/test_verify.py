"""The verification: its answers, its statistics, its file, and that it catches planners that promise
too much."""

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

import pacplan
from pacplan import testing
from pacplan.cli import app
from pacplan.testing import ENTRANTS, FALSE_ALARM, FAMILIES, Promise, clopper_pearson, replay, verify
from pacplan.testing import families as family_module
from pacplan.testing.checks import attempt, examine
from pacplan.testing.ledger import ledger

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
import sabotage


class Answer:
    """A planner that returns the same plan whatever it is asked, after showing it to the callback."""

    def __init__(self, *, epsilon, delta, gamma, horizon, claim=None, shown=None):
        self.claim = {"gap": 0.0} if claim is None else claim
        self.shown = shown

    def plan(self, model, state, *, seed, budget, callback=None):
        actions = model.actions(state)
        none = np.full(len(actions), np.nan)
        plan = pacplan.Plan(
            **{
                "action": actions[seed % len(actions)],
                "actions": actions,
                "lower": None,
                "upper": None,
                "values": none,
                "calls": np.zeros(len(actions), np.int64),
                "gap": None,
                "value": 0.0,
                "certified": False,
                "stopped_by": "budget",
                "guarantee": "",
                "assumptions": (),
                "samples": 1,
                "episodes": 1,
                "seconds": 0.0,
                "horizon": 1,
                "planner": "",
                "tree": None,
            }
            | self.claim
        )
        if callback is not None and self.shown is not None:
            callback(
                pacplan.Snapshot(
                    **{"actions": actions, "lower": None, "upper": None, "action": plan.action}
                    | {"gap": None, "samples": 1, "episodes": 1, "seconds": 0.0}
                    | self.shown
                )
            )
        return plan


class Broken(Answer):
    """Raises in some cases."""

    def plan(self, model, state, *, seed, **options):
        if seed % 5 == 0:
            raise ZeroDivisionError("own\nwords")
        return super().plan(model, state, seed=seed, **options)


def modest(claim):
    """A planner that claims this much."""
    return partial(Answer, claim=claim)


@pytest.mark.parametrize("tail", [0.3, 0.025, 1e-9])
@pytest.mark.parametrize("trials", [1, 7, 300, 100_000])
def test_clopper_pearson_is_scipys(trials, tail):
    for failures in sorted({0, 1, 2, trials // 3, trials - 1, trials}):
        if not 0 <= failures <= trials:
            continue
        low, high = clopper_pearson(failures, trials, tail)
        expected = (
            stats.beta.ppf(tail, failures, trials - failures + 1) if failures else 0.0,
            stats.beta.isf(tail, failures + 1, trials - failures) if failures < trials else 1.0,
        )
        assert (low, high) == pytest.approx(expected, rel=1e-9)


def test_clopper_pearson_refuses_impossible_counts():
    with pytest.raises(ValueError, match="3 failures in 2 trials"):
        clopper_pearson(3, 2, 0.1)


def outcomes(table, state, action, h):
    """What can happen, from the table that draws are made from: probability, reward, next state."""
    row = table._handle.outcomes[h if table.steps is not None else 0, state, action]
    return [
        (float(p), float(outcome["reward"]), None if outcome["ended"] else int(outcome["state"]))
        for p, outcome in zip(np.diff(row["cumulative"], prepend=0.0), row, strict=True)
        if p > 0.0
    ]


def chain_outcomes(model, state, action, h):
    """Those of the jitted simulator, by calling it with every one of the eighths it distinguishes."""

    class Fixed:
        def __init__(self, x):
            self.random = lambda: x

    drawn = [family_module._chain.py_func(state, action, Fixed((i + 0.5) / 8)) for i in range(8)]
    return [(1 / 8, reward, None if ended else after) for after, reward, ended in drawn]


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


@pytest.mark.parametrize("name", FAMILIES)
def test_answers_are_those_of_brute_force(name):
    family = FAMILIES[name]
    for seed in range(15):
        case = family.case(seed)
        assert case.delta == family.delta
        assert set(case.settings) == family.settings
        assert not family.one_step or case.horizon == 1
        if family.game:
            expected = minimax(case.model, 0)
        elif name == "jitted":
            expected = by_recursion(case.model, chain_outcomes, case.state, case.gamma, case.horizon)
        else:
            expected = by_recursion(case.table, outcomes, case.state, case.gamma, case.horizon)
        np.testing.assert_allclose(case.values, expected, rtol=0.0, atol=1e-12)


def test_answers_for_an_infinite_horizon():
    for seed in range(15):
        case = FAMILIES["endless"].case(seed)
        steps = 3 + int(np.log(1e-7) / np.log(case.gamma))
        values = np.zeros(3)
        for _ in range(steps):
            actions = [
                [
                    sum(
                        p * (r + case.gamma * (0.0 if after is None else values[after]))
                        for p, r, after in outcomes(case.table, state, action, 0)
                    )
                    for action in range(2)
                ]
                if not case.table._terminal[state]
                else [0.0, 0.0]
                for state in range(3)
            ]
            values = np.max(actions, axis=1)
        np.testing.assert_allclose(case.endless, actions[0], atol=1e-6)


def test_cases_come_in_every_kind():
    drawn = {name: [family.case(seed) for seed in range(60)] for name, family in FAMILIES.items()}
    mixed = drawn["mixed"]
    assert {case.horizon for case in mixed} == {1, 2, 3, 4}
    assert {1, 2, 3, 8} <= {case.model.successors for case in mixed}
    assert 1.0 in {case.gamma for case in mixed} and len({case.gamma for case in mixed}) > 1
    assert {case.model.noise for case in mixed} == {"none", "bernoulli"}
    assert any(case.model.reward_range[1] < 0.0 for case in drawn["ends"])
    assert {case.adversary for case in drawn["stopped"]} == {"hope", "truth"}
    said = {tuple(case.settings.values()) for name in ("declared", "told") for case in drawn[name]}
    assert len(said) == 8  # All pairs of what can be declared, but for nothing at all.
    ties = [np.sort(case.values)[::-1] for case in drawn["ties"]]
    loss = [(q[0] - q[1]) / case.epsilon for q, case in zip(ties, drawn["ties"], strict=True)]
    assert min(loss) == pytest.approx(1.0, abs=1e-9) and max(loss) > 1.0 + 1e-9


def test_a_claim_is_held_against_the_truth():
    case = FAMILIES["ties"].case(0)
    worst, best = int(case.values.argmin()), int(case.values.argmax())
    loss = float(case.values[best] - case.values[worst])
    promise = Promise(below=1.0, above=1.0, value=1.0)

    def found(promise=promise, case=case, **claim):
        make = modest({"action": case.model.actions(0)[worst]} | claim)
        return attempt(promise, case, lambda one: make(epsilon=0, delta=0, gamma=0, horizon=0), 0)[1]

    assert found() == {}  # Nothing is claimed.
    assert found(gap=loss) == {"wrong": False}
    assert found(gap=0.99 * loss) == {"wrong": True}
    # Its own rule claims epsilon, whatever the gap.
    assert found(gap=loss, stopped_by="rule", value=99.0)["wrong"] == (loss > case.epsilon + 1e-9)
    assert found(stopped_by="certified", value=case.values.max() + case.epsilon)["value"] is False
    assert found(stopped_by="certified", value=case.values.max() + 1.01 * case.epsilon)["value"] is True
    assert found(stopped_by="certified", value=np.nan)["value"] is True
    assert found(lower=case.values, upper=case.values) == {"below": False, "above": False}
    assert found(lower=case.values + 1e-3, upper=case.values) == {"below": True, "above": False}
    low = case.values.copy()
    low[worst] -= 1e-3
    assert found(lower=low, upper=low) == {"below": False, "above": True}
    kind = Promise(below=0.5, above=0.5, upper="best")
    assert found(kind, lower=low, upper=low) == {"below": False, "above": False}
    low = case.values.copy()
    low[best] -= 1e-3
    assert found(kind, lower=low, upper=low) == {"below": False, "above": True}


def test_the_infinite_horizon_is_claimed_too():
    case = next(
        case
        for case in map(FAMILIES["endless"].case, range(100))
        if np.ptp(case.endless) > np.ptp(case.values) + 0.01
    )
    worst = int(case.values.argmin())
    loss = float(np.ptp(case.values))
    claim = {"action": worst, "gap": loss}
    assert examine(Promise(), case, plan_of(case, claim)) == {"wrong": False}
    certified = claim | {"stopped_by": "certified", "certified": True}
    wrong = float(np.ptp(case.endless)) > case.epsilon
    assert examine(Promise(), case, plan_of(case, certified)) == {"wrong": wrong}
    alone = {"action": worst, "gap": float(np.ptp(case.endless)) - 1e-3}
    assert examine(Promise(endless=True), case, plan_of(case, alone)) == {"wrong": True}


def plan_of(case, claim):
    maker = Answer(epsilon=0, delta=0, gamma=0, horizon=0, claim=claim)
    return maker.plan(case.model, case.state, seed=0, budget=None)


def test_what_fails_while_it_is_watched_counts():
    family = FAMILIES["lucky"]
    shown = {"lower": np.array([0.9]), "upper": np.array([1.0])}
    promise = Promise(below=1.0, above=1.0)
    make = partial(Answer, claim={"gap": 0.0}, shown=shown)

    def build(case):
        return make(epsilon=0, delta=0, gamma=0, horizon=0)

    assert attempt(promise, family.case(0), build, 0)[1] == {
        "wrong": False,
        "below": True,
        "above": False,
    }


def test_a_planner_that_lies_is_caught():
    report = verify(Answer, families=["ties", "anytime"], plans=400)
    assert not report.ok and report.complete
    assert {(v.family, v.check) for v in report.violations} == {
        ("ties", "wrong"),
        ("anytime", "wrong"),
    }
    assert "VIOLATED: Answer on ties, wrong" in str(report)
    # It has no bounds, so nothing is said of them.
    assert {v.check for v in report.verdicts} == {"wrong"}
    case, plan, found = replay("ties", testing.entrant_of(Answer), report.violations[0].cases[0])
    assert found["wrong"] and np.ptp(case.values) > 0.0 and plan.gap == 0.0


def test_a_planner_that_claims_nothing_is_not():
    report = verify(modest({}), families=["ties"], plans=50)
    assert report.ok and report.verdicts == ()
    assert verify(modest({"gap": 1.0}), families=["ties"], plans=50).ok


def test_errors_are_told():
    report = verify(Broken, families=["ties"], plans=100)
    assert not report.ok
    number = report.errors[0][2]
    assert report.errors[0] == ("ties", "Broken", number, "ZeroDivisionError: own words")
    assert f"ERROR: Broken on ties, case {number}: ZeroDivisionError" in str(report)


def test_a_promise_of_never_is_broken_by_once():
    promise = Promise(wrong=0.0)
    report = verify(Answer, promise=promise, families=["ties"], plans=25)
    assert report.violations[0].promised == 0.0
    assert verify(modest({"gap": 1.0}), promise=promise, families=["ties"], plans=25).ok


def test_violations_are_those_of_the_corrected_interval():
    report = verify(Answer, families=["ties", "anytime"], plans=400)
    judged = 6  # Two families, three promises each.
    for verdict in report.verdicts:
        low = stats.beta.ppf(
            FALSE_ALARM / judged, verdict.failures, verdict.plans - verdict.failures + 1
        )
        assert verdict.surely == pytest.approx(low, rel=1e-6)
        assert verdict.violated == (low > verdict.promised)
        assert verdict.rate == verdict.failures / verdict.plans
        assert verdict.promised == FAMILIES[verdict.family].delta


@pytest.mark.parametrize(
    ("cut", "planner", "family", "plans", "check"),
    [
        (sabotage.bracket_above, "bracket", "anytime", 400, "above"),
        (sabotage.bracket_below, "bracket", "anytime", 400, "below"),
        (sabotage.mdp_gape_rewards, "mdp-gape", "lucky", 1000, "below"),
        (sabotage.mdp_gape_rewards, "mdp-gape", "unlucky", 1500, "above"),
    ],
)
def test_two_nats_too_cheap_are_caught_and_honest_planners_pass(cut, planner, family, plans, check):
    assert verify(planner, families=[family], plans=plans).ok
    with cut(2.0):
        report = verify(planner, families=[family], plans=plans)
    assert [verdict.check for verdict in report.violations] == [check]
    # What was spoilt is whole again.
    assert verify(planner, families=[family], plans=25).ok


def test_the_whole_is_run_in_small():
    report = verify(plans=2000)
    assert report.ok and report.plans >= 2000
    # Every planner and family takes part, and something is claimed about everything promised.
    assert {cell.planner for cell in report.cells} == set(ENTRANTS)
    assert {cell.family for cell in report.cells} == set(FAMILIES)
    for cell in report.cells:
        missing = {
            c for c in testing.CHECKS if cell.promise.share(c) is not None and not cell.claims[c]
        }
        # Where epsilon is 0 no planner comes to the end of its own rule.
        assert missing <= ({"value"} if cell.family in ("lucky", "unlucky") else set())


def signature(report):
    return [(v.family, v.planner, v.check, v.plans, v.cases) for v in report.verdicts]


def settings(out=None, **others):
    return {"families": ["ties", "anytime"], "plans": 200, "out": out} | others


def test_a_run_is_resumed_from_its_file(tmp_path, caplog):
    whole = verify(Answer, **settings())
    out = tmp_path / "new" / "results.jsonl"
    assert signature(verify(Answer, **settings(out))) == signature(whole)
    lines = out.read_bytes().splitlines(keepends=True)
    # Killed in the middle of a line.
    out.write_bytes(b"".join(lines[:4]) + lines[4][:20])
    assert signature(verify(Answer, **settings(out))) == signature(whole)
    assert "ends in half a line" in caplog.text
    assert len(out.read_bytes().splitlines()) == len(lines)
    # More plans add to it, and what is there is not done again.
    more = verify(Answer, **settings(out, plans=400))
    assert more.plans > whole.plans
    assert out.read_bytes().startswith(b"".join(lines[:4]))
    assert len(out.read_bytes().splitlines()) == 1 + more.plans // 25


def test_ctrl_c_leaves_a_file_to_continue_from(tmp_path):
    out = tmp_path / "results.jsonl"
    Impatient.left = 60
    stopped = verify(Impatient, **settings(out))
    assert not stopped.complete and stopped.plans == 50
    assert "stopped before the end" in str(stopped)
    Impatient.left = None
    resumed = verify(Impatient, **settings(out))
    assert resumed.complete
    assert signature(resumed) == signature(verify(Impatient, **settings()))


class Impatient(Answer):
    """Somebody presses Ctrl-C after some plans."""

    left = None

    def plan(self, *args, **options):
        if Impatient.left is not None:
            Impatient.left -= 1
            if Impatient.left < 0:
                self.claim = {"stopped_by": "interrupt"}
        return super().plan(*args, **options)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: [lines[0].replace('"seed":0', '"seed":1'), *lines[1:]], "seed was 1, now is 0"),
        (lambda lines: [lines[0].replace("0.1.0 ", "0.0.9 "), *lines[1:]], "pacplan was '0.0.9 "),
        (lambda lines: [lines[0].replace('"Answer":"', '"Answer":"x'), *lines[1:]], "own planners was"),
        (lambda lines: [*lines[:2], lines[2][:30], *lines[3:]], "line 3 is damaged"),
        (lambda lines: ["family,planner", *lines[1:]], "not a results file"),
        (lambda lines: ["[]", *lines[1:]], "not a results file"),
    ],
)
def test_files_of_something_else_are_refused_and_left_alone(tmp_path, change, message):
    out = tmp_path / "results.jsonl"
    verify(Answer, **settings(out))
    content = "\n".join(change(out.read_text().splitlines())) + "\nhalf"
    out.write_text(content)
    with pytest.raises(ValueError, match=message):
        verify(Answer, **settings(out))
    assert out.read_text() == content


def test_a_file_without_a_line_is_refused(tmp_path):
    out = tmp_path / "notes.txt"
    out.write_text("remember the milk")
    with pytest.raises(ValueError, match="not a results file"):
        verify(Answer, **settings(out))
    assert out.read_text() == "remember the milk"


def test_two_at_once_in_one_file_are_refused(tmp_path):
    pytest.importorskip("fcntl")
    out = tmp_path / "results.jsonl"
    with ledger(out, {"pacplan": "now"}), pytest.raises(ValueError, match="another process"):
        verify(Answer, **settings(out))


def test_processes_find_the_same(tmp_path):
    alone = verify(["opd", "op-mdp"], families=["certain"], plans=100)
    together = verify(
        ["opd", "op-mdp"], families=["certain"], plans=100, workers=2, out=tmp_path / "results.jsonl"
    )
    assert signature(alone) == signature(together) and together.ok


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"families": ["tie"]}, ValueError, "there is no family 'tie'; try ties"),
        ({"planner": "uct"}, ValueError, "there is no planner 'uct' to verify; try bracket"),
        ({"planner": "bracket", "families": ["games"]}, ValueError, "none of the planners"),
        ({"planner": "bracket", "promise": Promise()}, ValueError, "a planner of your own"),
        ({"plans": 0}, ValueError, "plans must be at least 1"),
        ({"planner": Answer, "workers": 0}, ValueError, "workers must be at least 1"),
        ({"planner": lambda **settings: None, "workers": 2}, TypeError, "must be picklable"),
    ],
)
def test_bad_input(arguments, error, message):
    with pytest.raises(error, match=message):
        verify(**({"plans": 25} | arguments))


MODULE = """
from test_verify import Answer, Broken, modest

truthful = modest({"gap": 1.0})
"""


@pytest.fixture
def command(tmp_path, monkeypatch):
    (tmp_path / "mine_to_verify.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "mine_to_verify", raising=False)

    def run(*arguments):
        fixed = ("verify", "--plans", "100", "--families", "ties", "--workers", "1", "--quiet")
        return CliRunner().invoke(app, [*fixed, *arguments])

    return run


def test_exit_codes(command, tmp_path):
    passed = command("--planner", "mine_to_verify:truthful", "--out", "results.jsonl")
    assert passed.exit_code == 0, passed.output
    assert "None of 1 promises was seen to be broken" in passed.output
    assert len((tmp_path / "results.jsonl").read_text().splitlines()) == 1 + 4
    caught = command("--planner", "mine_to_verify:Answer")
    assert caught.exit_code == 1 and "VIOLATED" in caught.output
    broken = command("--planner", "mine_to_verify:Broken")
    assert broken.exit_code == 1 and "ZeroDivisionError" in broken.output
    for wrong in (("--planner", "uct"), ("--families", "x"), ("--planner", "mine_to_verify:x")):
        assert command(*wrong).exit_code == 2
    assert command("--planner", "mine_to_verify:Answer", "--out", "results.jsonl").exit_code == 2


def test_a_results_file_that_cannot_be_written(command, tmp_path):
    resource = pytest.importorskip("resource")
    fixed = ["verify", "--plans", "100", "--families", "ties", "--workers", "1", "--quiet"]
    wanted = [*fixed, "--planner", "mine_to_verify:truthful", "--out", "results.jsonl"]
    full = subprocess.run(
        [sys.executable, "-m", "pacplan", *wanted],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (700, 700)),
    )
    assert full.returncode == 1 and full.stdout == ""
    assert full.stderr.splitlines()[-1].startswith(
        "pacplan: cannot write results.jsonl: File too large"
    )
    kept = (tmp_path / "results.jsonl").read_bytes()
    assert kept.endswith(b"\n")
    wanted = ("--planner", "mine_to_verify:truthful", "--out", "results.jsonl")
    assert command(*wanted).exit_code == 0
    assert (tmp_path / "results.jsonl").read_bytes().startswith(kept)
    refused = command("--planner", "mine_to_verify:truthful", "--out", str(tmp_path))
    assert refused.exit_code == 2 and "choose another place" in refused.stderr


def test_json(command):
    printed = command("--planner", "mine_to_verify:Answer", "--json")
    report = json.loads(printed.stdout)
    assert printed.exit_code == 1
    assert report["ok"] is False and report["complete"] is True and report["plans"] == 100
    (verdict,) = report["verdicts"]
    assert verdict["violated"] and verdict["failures"] == len(verdict["cases"])


def test_an_interrupted_command_prints_what_it_has(command, monkeypatch):
    monkeypatch.setattr(Impatient, "left", 60)
    Path("mine_to_verify.py").write_text("from test_verify import Impatient\n")
    stopped = command("--planner", "mine_to_verify:Impatient", "--out", "results.jsonl")
    assert stopped.exit_code == 130
    assert "50 plans" in stopped.output and "continues from results.jsonl" in stopped.output
