"""The verification as a whole: its file, its processes, its command."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import run
from pacplan.testing import FAMILIES, Promise, verify
from pacplan.testing.entrants import ENTRANTS
from pacplan.testing.ledger import ledger
from pacplan.testing.runner import _cases, _tasks
from promisers import Answer, Impatient


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
    batches = [json.loads(line) for line in out.read_bytes().splitlines()[1:]]
    assert sum(batch["plans"] for batch in batches) == more.plans


@pytest.mark.parametrize("plans", [500, 3000, 100_000])
def test_about_as_many_plans_are_made_as_were_asked_for(plans):
    pairs = [(family, one) for family in FAMILIES.values() for one in ENTRANTS.values()]
    pairs = [(family, one) for family, one in pairs if one.suits(family)]
    made = sum(len(task.cases) for task in _tasks(pairs, plans, 0))
    assert 0.9 * plans <= made <= 1.1 * plans
    # However many there are, each case is in one batch.
    assert [case for number in range(40) for case in _cases(number)] == list(range(_cases(39).stop))


def test_ctrl_c_leaves_a_file_to_continue_from(tmp_path):
    out = tmp_path / "results.jsonl"
    Impatient.left = 60
    stopped = verify(Impatient, **settings(out))
    assert not stopped.complete and 50 <= stopped.plans <= 60
    assert "stopped before the end" in str(stopped)
    Impatient.left = None
    resumed = verify(Impatient, **settings(out))
    assert resumed.complete
    assert signature(resumed) == signature(verify(Impatient, **settings()))


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


@pytest.mark.processes
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
        ({"planner": "uct"}, ValueError, "there is no planner 'uct' to verify; try plan, bracket"),
        ({"planner": "bracket", "families": ["games"]}, ValueError, "none of the planners"),
        ({"planner": "bracket", "promise": Promise()}, ValueError, "your own planner"),
        ({"plans": 0}, ValueError, "plans must be at least 1"),
        ({"planner": Answer, "workers": 0}, ValueError, "workers must be at least 1"),
    ],
)
def test_bad_input(arguments, error, message):
    with pytest.raises(error, match=message):
        verify(**({"plans": 25} | arguments))


MODULE = """
from promisers import Answer, Broken, modest

truthful = modest({"gap": 1.0})
"""


@pytest.fixture
def command(tmp_path, monkeypatch):
    (tmp_path / "mine_to_verify.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "mine_to_verify", raising=False)

    def verify(*arguments):
        fixed = ("verify", "--plans", "100", "--families", "ties", "--workers", "1", "--quiet")
        return run(*fixed, *arguments)

    return verify


def test_exit_codes(command, tmp_path):
    passed = command("--planner", "mine_to_verify:truthful", "--out", "results.jsonl")
    assert passed.code == 0, passed.output
    assert "None of 1 promises was found broken" in passed.output
    assert len((tmp_path / "results.jsonl").read_text().splitlines()) > 1 + 4
    caught = command("--planner", "mine_to_verify:Answer")
    assert caught.code == 1 and "VIOLATED" in caught.output
    broken = command("--planner", "mine_to_verify:Broken")
    assert broken.code == 1 and "ZeroDivisionError" in broken.output
    for wrong in (("--planner", "uct"), ("--families", "x"), ("--planner", "mine_to_verify:x")):
        assert command(*wrong).code == 2
    assert command("--planner", "mine_to_verify:Answer", "--out", "results.jsonl").code == 2


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
    assert command(*wanted).code == 0
    assert (tmp_path / "results.jsonl").read_bytes().startswith(kept)
    refused = command("--planner", "mine_to_verify:truthful", "--out", str(tmp_path))
    assert refused.code == 2 and "choose another place" in refused.stderr


def test_json(command):
    printed = command("--planner", "mine_to_verify:Answer", "--json")
    report = json.loads(printed.stdout)
    assert printed.code == 1
    assert report["ok"] is False and report["complete"] is True
    assert 100 <= report["plans"] <= 110
    (verdict,) = report["verdicts"]
    assert verdict["violated"] and verdict["failures"] == len(verdict["cases"])


def test_an_interrupted_command_prints_what_it_has(command, monkeypatch):
    monkeypatch.setattr(Impatient, "left", 60)
    Path("mine_to_verify.py").write_text("from promisers import Impatient\n")
    stopped = command("--planner", "mine_to_verify:Impatient", "--out", "results.jsonl")
    assert stopped.code == 130
    assert (
        re.search(r"\b5\d plans", stopped.output) and "continues from results.jsonl" in stopped.output
    )
