"""Files that cannot be written, are damaged, or were not written by us."""

import math
import os
import re
import shutil
import sys

import pytest

import pacplan
from command_line import run as command
from pacplan.experiments import (
    PlannerSpec,
    ProblemSpec,
    Record,
    Sweep,
    read,
    run,
)
from pacplan.experiments import records as files
from sweeps import GAPE, SMALL, UCT, timeless

REPRODUCE = ["reproduce", "figure2", "--quick", "--mdps", 2, "--planners", "uct"]
SWEEP = 'seeds = 2\nbudgets = [30]\n[[problems]]\nname = "garnet"\n[[planners]]\nname = "uct"\n'


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The commands of a sweep and of a reproduction, and the folders that they have written."""
    place = tmp_path_factory.mktemp("finished")
    (place / "my.toml").write_text(SWEEP)
    found = {}
    for what, wanted in (("sweep", ["sweep", place / "my.toml"]), ("reproduce", REPRODUCE)):
        found[what] = [*wanted, "--workers", 1, "--quiet", "--out"], place / what
        assert command(*found[what][0], place / what).code == 0
    return found


def a_folder(path):
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("name", "damage", "words"),
    [
        (
            "sweep.json",
            lambda path: path.write_bytes(path.read_bytes()[:50]),
            "damaged, it is not JSON",
        ),
        ("sweep.json", lambda path: path.write_bytes(b""), "damaged, it is not JSON"),
        ("sweep.json", lambda path: path.write_bytes(b"\xff\xfe\x00junk\x80" * 9), "damaged"),
        ("sweep.json", lambda path: path.write_bytes(b"[" * 100_000), "damaged"),
        ("sweep.json", lambda path: path.write_text("[1, 2]"), "does not describe a sweep"),
        ("sweep.json", lambda path: path.write_text("null"), "does not describe a sweep"),
        ("sweep.json", lambda path: path.write_text('{"seed": []}'), "seed was [], now is 0"),
        ("sweep.json", lambda path: path.unlink(), "no sweep.json"),
        ("sweep.json", a_folder, "is a folder"),
        ("runs.csv", lambda path: path.write_bytes(b"\xff\x00\x80\n\x81" * 99), "columns of a sweep"),
        ("runs.csv", lambda path: path.write_bytes(b"\xff\x00 junk"), "columns of a sweep"),
        ("runs.csv", lambda path: path.write_text("own,table\n1,2\n"), "columns of a sweep"),
        ("runs.csv", lambda path: path.write_text("one line of one's own"), "columns of a sweep"),
        ("runs.csv", lambda path: path.write_text("\n" + path.read_text()), "columns of a sweep"),
        (
            "runs.csv",
            lambda path: path.write_text(path.read_text() + '"open\n'),
            "line 4 is damaged: b'\"open'; delete that line",
        ),
        (
            "runs.csv",
            lambda path: path.write_bytes(path.read_bytes() + b"\x00\xff\n"),
            "line 4 is damaged",
        ),
        (
            "runs.csv",
            lambda path: path.write_text(path.read_text().replace("False", "perhaps")),
            "line 2 is damaged",
        ),
        (
            "runs.csv",
            lambda path: path.write_text(path.read_text() + "x" * 200_000 + "\n"),
            "line 4 is damaged",
        ),
        ("runs.csv", a_folder, "Is a directory; choose another place"),
    ],
)
@pytest.mark.parametrize("what", ["sweep", "reproduce"])
def test_odd_files_are_refused_as_they_are(finished, tmp_path, name, damage, words, what):
    if what == "reproduce" and "line 4" in words:
        pytest.skip("the rows are those of any sweep")
    wanted, written = finished[what]
    path = shutil.copytree(written, tmp_path / "my") / name
    damage(path)
    before = path.read_bytes() if path.is_file() else None
    result = command(*wanted, tmp_path / "my")
    assert result.code == 2
    assert words in result.stderr and len(result.stderr.splitlines()) == 1
    assert str(tmp_path / "my") in result.stderr
    assert (path.read_bytes() if path.is_file() else None) == before


@pytest.mark.parametrize("what", ["sweep", "reproduce"])
@pytest.mark.parametrize("out", ["file", "file/below", "sealed/my"])
def test_folders_that_cannot_be_written_to(tmp_path, what, out):
    (tmp_path / "file").touch()
    (tmp_path / "sealed").mkdir()
    (tmp_path / "sealed").chmod(0o500)
    if "sealed" in out and os.access(tmp_path / "sealed", os.W_OK):
        pytest.skip("nothing is sealed for this user")
    (tmp_path / "my.toml").write_text(
        'budgets = [30]\n[[problems]]\nname = "garnet"\n[[planners]]\nname = "uct"\n'
    )
    wanted = ["sweep", tmp_path / "my.toml"] if what == "sweep" else ["reproduce", "all", "--quick"]
    result = command(*wanted, "--workers", 1, "--out", tmp_path / out)
    assert result.code == 2
    assert "choose another place" in result.stderr and len(result.stderr.splitlines()) == 1


def test_reports_that_cannot_be_written_are_noticed_before_the_runs(tmp_path, monkeypatch):
    (tmp_path / "report.html").mkdir()
    wanted = ["reproduce", "figure2", "--quick", "--workers", 1, "--out", tmp_path]
    result = command(*wanted)
    assert result.code == 2 and "report.html is a folder" in result.stderr
    (tmp_path / "report.html").rmdir()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = command(*wanted)
    assert result.code == 2 and "pip install pacplan[viz]" in result.stderr
    assert not (tmp_path / "runs.csv").exists()


def test_a_summary_that_cannot_be_written(tmp_path):
    (tmp_path / "my" / "summary.csv").mkdir(parents=True)
    (tmp_path / "my.toml").write_text(
        'budgets = [30]\n[[problems]]\nname = "garnet"\n[[planners]]\nname = "uct"\n'
    )
    result = command("sweep", tmp_path / "my.toml", "--workers", 1, "--quiet")
    assert result.code == 1
    assert "summary.csv: Is a directory" in result.stderr and len(result.stderr.splitlines()) == 1
    assert len(read(tmp_path / "my" / "runs.csv")) == 1


def test_actions_of_several_lines_stay_in_their_row(tmp_path):
    def model(seed):
        names = ["up\nand away", "down"]
        return pacplan.Simulator(
            lambda s, a, rng: (s, 1.0 if "up" in a else 0.0, False),
            actions=lambda state: names,
            successors=1,
            initial=0,
        )

    sweep = Sweep([UCT], [ProblemSpec(model, label="names")], budgets=[30])
    (record,) = run(sweep, tmp_path, workers=1)
    assert record.action == repr("up\nand away")
    assert (tmp_path / "runs.csv").read_bytes().count(b"\n") == 2
    assert read(tmp_path / "runs.csv") == [record]


@pytest.mark.parametrize("cut", [1, 40, 200, 10_000])
def test_a_half_written_line_is_noticed_and_done_again(tmp_path, cut, caplog):
    sweep = Sweep([UCT, GAPE], [SMALL], budgets=[20], seeds=20)
    whole = timeless(run(sweep, tmp_path, workers=1))
    path = tmp_path / "runs.csv"
    content = path.read_bytes()
    path.write_bytes(content[: max(3, len(content) - cut)])
    assert timeless(run(sweep, tmp_path, workers=1)) == whole
    assert "half a line" in caplog.text
    assert timeless(read(path)) == whole


def test_a_damaged_line_in_the_middle_is_named(tmp_path):
    sweep = Sweep([UCT], [SMALL], budgets=[20], seeds=4)
    run(sweep, tmp_path, workers=1)
    lines = (tmp_path / "runs.csv").read_text().splitlines(keepends=True)
    lines[2] = "uct,nonsense\n"
    (tmp_path / "runs.csv").write_text("".join(lines))
    with pytest.raises(ValueError, match=r"line 3 is damaged"):
        run(sweep, tmp_path, workers=1)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"seed": 1}, "seed was 0, now is 1"),
        ({"seeds": 3}, "seeds was"),
        ({"budgets": [21]}, "planners was"),
        ({"planners": [GAPE]}, "mdp-gape"),
        ({"problems": [ProblemSpec("garnet", {"states": 21})]}, "states=21"),
    ],
    ids=str,
)
def test_another_sweep_in_the_same_folder_is_refused(tmp_path, change, word):
    given = {"planners": [UCT], "problems": [SMALL], "budgets": [20], "seeds": 2}
    run(Sweep(**given), tmp_path, workers=1)
    before = (tmp_path / "runs.csv").read_bytes()
    with pytest.raises(ValueError, match=re.escape(word)) as refusal:
        run(Sweep(**(given | change)), tmp_path, workers=1)
    assert "another folder" in str(refusal.value)
    assert (tmp_path / "runs.csv").read_bytes() == before


def test_the_same_label_for_another_problem_is_another_sweep(tmp_path):
    garnets = [ProblemSpec("garnet", {"states": states}, label="garnets") for states in (20, 21)]
    with pytest.raises(ValueError, match="given twice"):
        Sweep([UCT], garnets, budgets=[20]).runs()
    run(Sweep([UCT], garnets[:1], budgets=[20]), tmp_path, workers=1)
    with pytest.raises(ValueError, match="another sweep: problems was"):
        run(Sweep([UCT], garnets[1:], budgets=[20]), tmp_path, workers=1)


def test_equal_planners_are_one_however_they_are_given():
    made = PlannerSpec(pacplan.UCT(gamma=0.7, horizon=None, chunk=5), label="another name")
    assert made.key == UCT.key
    with pytest.raises(ValueError, match="given twice"):
        Sweep([UCT, made], [SMALL], budgets=[20]).runs()


def test_rows_that_name_settings_in_words_are_refused_with_what_to_do(tmp_path):
    run(Sweep([UCT], [SMALL], budgets=[20]), tmp_path, workers=1)
    path = tmp_path / "runs.csv"
    old = path.read_text().replace("planner,settings", "planner,parameters", 1)
    path.write_text(old)
    for again in (lambda: read(path), lambda: run(Sweep([UCT], [SMALL], budgets=[20]), tmp_path)):
        with pytest.raises(ValueError, match=r"earlier version .* run the sweep again"):
            again()
    assert path.read_text() == old


def test_another_release_in_the_same_folder_is_refused(tmp_path, monkeypatch):
    sweep = Sweep([UCT], [SMALL], budgets=[20])
    run(sweep, tmp_path, workers=1)
    monkeypatch.setattr(files, "__version__", "99")
    with pytest.raises(ValueError, match="pacplan was"):
        run(sweep, tmp_path, workers=1)


def test_another_state_of_the_code_is_another_sweep_unless_nothing_was_run(tmp_path, monkeypatch):
    sweep = Sweep([UCT], [SMALL], budgets=[20])
    run(sweep, tmp_path, workers=1)
    before = (tmp_path / "sweep.json").read_text()
    monkeypatch.setattr(files, "source_digest", lambda: "0" * 64)
    with pytest.raises(ValueError, match="pacplan was"):
        run(sweep, tmp_path, workers=1)
    assert (tmp_path / "sweep.json").read_text() == before
    (tmp_path / "runs.csv").unlink()
    run(sweep, tmp_path, workers=1)
    assert (tmp_path / "sweep.json").read_text() != before


def test_two_at_once_in_one_folder_are_refused(tmp_path):
    pytest.importorskip("fcntl")
    sweep = Sweep([UCT], [SMALL], budgets=[20])
    with files.store(sweep, tmp_path), pytest.raises(ValueError, match="another process"):
        run(sweep, tmp_path, workers=1)


def test_a_foreign_file_is_left_alone(tmp_path):
    (tmp_path / "runs.csv").write_text("my,own,table\n")
    with pytest.raises(ValueError, match="choose another folder"):
        run(Sweep([UCT], [SMALL], budgets=[20]), tmp_path, workers=1)
    assert (tmp_path / "runs.csv").read_text() == "my,own,table\n"


def test_rows_are_the_same_when_read_back(tmp_path):
    sweep = Sweep([UCT], [SMALL], budgets=[20])
    odd = Record('a, "b"', "p\u2026", "x", 1, None, 7, regret=0.1 + 0.2, gap=-math.pi, error="e, 'f'")
    with files.store(sweep, tmp_path) as rows:
        assert rows.add(odd)
        assert not rows.add(odd)
    assert read(tmp_path / "runs.csv") == [odd]
