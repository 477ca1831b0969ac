"""The verification as a whole: its file, its processes, its command."""

import json
import re
from itertools import product
from pathlib import Path

import pytest

from command_line import run
from pacplan.testing import FAMILIES, PLANNERS, Promise, verify
from pacplan.testing.verification import _runs
from promisers import Answer, Impatient


def signature(report):
    return [(v.family, v.planner, v.check, v.plans, v.cases) for v in report.verdicts]


def settings(out=None, **others):
    return {"families": ["ties", "anytime"], "plans": 200, "out": out} | others


def test_a_run_is_resumed_from_its_file(tmp_path):
    whole = verify(Answer, **settings())
    out = tmp_path / "new" / "results.jsonl"
    assert signature(verify(Answer, **settings(out))) == signature(whole)
    content = out.read_bytes()
    # Killed in the middle of a line.
    out.write_bytes(content[: len(content) // 2])
    assert signature(verify(Answer, **settings(out))) == signature(whole)
    assert len(out.read_bytes().splitlines()) == 1 + whole.plans
    # More plans add to it, and what is there is not done again.
    before = out.read_bytes()
    more = verify(Answer, **settings(out, plans=400))
    assert more.plans > whole.plans
    assert out.read_bytes().startswith(before)
    for change in ({"seed": 1}, {"planner": Impatient}):
        with pytest.raises(ValueError, match="holds other results"):
            verify(**({"planner": Answer} | settings(out) | change))


def test_about_as_many_plans_are_made_as_were_asked_for():
    pairs = [pair for pair in product(FAMILIES.values(), PLANNERS.values()) if pair[1].suits(pair[0])]
    runs = _runs(pairs, 10_000, 0)
    assert 9_000 <= len(runs) == len({one.key for one in runs}) <= 11_000


def test_ctrl_c_leaves_a_file_to_continue_from(tmp_path):
    out = tmp_path / "results.jsonl"
    Impatient.left = 60
    stopped = verify(Impatient, **settings(out))
    assert not stopped.complete and stopped.plans == 60
    assert "stopped before the end" in str(stopped)
    Impatient.left = None
    resumed = verify(Impatient, **settings(out))
    assert resumed.complete
    assert signature(resumed) == signature(verify(Impatient, **settings()))


@pytest.mark.processes
def test_processes_find_the_same(tmp_path):
    chosen = {"families": ["certain"], "plans": 100}
    alone = verify(["opd", "op-mdp"], **chosen)
    together = verify(["opd", "op-mdp"], **chosen, workers=2, out=tmp_path / "results.jsonl")
    assert signature(alone) == signature(together) and together.ok


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"families": ["tie"]}, "unknown family 'tie'; choose one of ties"),
        ({"planner": "uct"}, "unknown planner 'uct'; choose one of plan, bracket"),
        ({"planner": "bracket", "families": ["games"]}, "none of the planners"),
        ({"planner": "bracket", "promise": Promise()}, "your own planner"),
        ({"plans": 0}, "plans must be at least 1"),
        ({"planner": Answer, "workers": 0}, "workers must be at least 1"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        verify(**({"plans": 25} | arguments))


def command(name, *arguments):
    fixed = ("verify", "--plans", "100", "--families", "ties", "--workers", "1", "--quiet")
    return run(*fixed, "--planner", f"promisers:{name}", *arguments)


def test_exit_codes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    passed = command("truthful", "--out", "results.jsonl")
    assert passed.code == 0, passed.output
    assert "None of 1 promises was found broken" in passed.output
    assert len(Path("results.jsonl").read_text().splitlines()) == 101
    caught = command("Answer")
    assert caught.code == 1 and "VIOLATED" in caught.output
    report = json.loads(command("Answer", "--json").stdout)
    assert (report["ok"], report["complete"], report["plans"]) == (False, True, 100)
    (verdict,) = report["verdicts"]
    assert verdict["violated"] and verdict["failures"] == len(verdict["cases"])
    broken = command("Broken")
    assert broken.code == 1 and "ZeroDivisionError" in broken.output
    assert command("nobody").code == 2
    assert command("Answer", "--out", "results.jsonl").code == 2
    assert "choose another place" in command("Answer", "--out", ".").stderr


def test_an_interrupted_command_prints_what_it_has(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Impatient, "left", 60)
    stopped = command("Impatient", "--out", "results.jsonl")
    assert stopped.code == 130
    assert re.search(r"\b60 plans", stopped.output)
    assert "continues from results.jsonl" in stopped.output
