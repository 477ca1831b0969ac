"""Results files: begun, continued, cut off, damaged, of something else."""

from dataclasses import dataclass

import pytest

from pacplan.experiments.results import opened, read_results


@dataclass(frozen=True)
class Row:
    number: int
    text: str = ""
    value: float | None = None

    @property
    def key(self):
        return self.number


ROWS = [Row(0, 'a, "b"\nc\u2026'), Row(1, value=0.1 + 0.2), Row(2, value=-float("inf"))]


def write(path, rows=ROWS, **configuration):
    """Add rows to a file; returns those that it has."""
    with opened(path, Row, {"seed": 0} | configuration) as results:
        for row in rows:
            if row.key not in results.rows:
                results.add(row)
        return [*results.rows.values()]


def test_rows_are_the_same_when_read_back(tmp_path):
    path = tmp_path / "new" / "rows.jsonl"
    assert write(path, ROWS[:2]) == ROWS[:2]
    before = path.read_bytes()
    assert write(path) == ROWS == read_results(path, Row) == write(None)
    assert path.read_bytes().startswith(before)
    assert path.read_bytes().count(b"\n") == 1 + len(ROWS)


@pytest.mark.parametrize("kept", [0, 1, 20, 100, -1, -30])
def test_half_a_line_is_written_again(tmp_path, kept):
    path = tmp_path / "rows.jsonl"
    write(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:kept])
    assert write(path) == ROWS
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda text: text.replace('"seed":0', '"seed":1'), "seed was 1, now is 0"),
        (lambda text: text.replace('"pacplan":"', '"pacplan":"0.0.9 '), "pacplan was"),
        (lambda text: "number,text\n" + text, "not a results file"),
        (lambda text: "[]\n" + text, "not a results file"),
        (lambda text: "remember the milk", "not a results file"),
        (lambda text: text.replace('"number":1', '"number":perhaps'), "line 3 is damaged"),
        (lambda text: text.replace('"number":1', '"colour":1'), "line 3 is damaged"),
        (lambda text: text + "\0\n", "line 5 is damaged; delete that line"),
    ],
)
def test_other_files_are_refused_and_left_alone(tmp_path, damage, words):
    path = tmp_path / "rows.jsonl"
    write(path)
    path.write_text(damage(path.read_text()))
    before = path.read_bytes()
    with pytest.raises(ValueError, match=words) as refusal:
        write(path)
    assert str(path) in str(refusal.value)
    assert path.read_bytes() == before


def test_places_that_cannot_be_written_to(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "file" / "below"):
        with pytest.raises(ValueError, match="choose another place"):
            write(path)
