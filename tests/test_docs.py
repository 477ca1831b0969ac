"""Every Python block of README and documentation runs, and prints what the page shows after it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pacplan

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r'^```(\w+)(?: title="(.+?)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
# What a page shows right after a block, with nothing in between, is what the block prints.
SHOWN = re.compile(
    r"\n\n```(?:text|\{code-block\} text\n:class: wrapped\n)\n(.*?)^```$", re.MULTILINE | re.DOTALL
)


def blocks(page, language):
    found = BLOCK.findall(page.read_text("utf-8"))
    return [code for written, title, code in found if written == language and not title]


def steps(page):
    """The Python blocks of a page, each with what the page shows after it, or None."""
    text = page.read_text("utf-8")
    for block in BLOCK.finditer(text):
        if block[1] == "python" and not block[2]:
            shown = SHOWN.match(text, block.end())
            yield block[3], shown and shown[1]


def run(page):
    """Run the blocks of a page one after the other, as a reader would; yields what they defined."""
    names = {"__name__": page.stem}
    for code, shown in steps(page):
        exec(compile(code, str(page), "exec"), names)
        yield names, shown


def untimed(text):
    return re.sub(r"[\d.]+ s\b", "some s", text)


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """Someone who saves the files of a page in a folder of his own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    planners, modules = dict(pacplan.planners), set(sys.modules)
    saved = []

    def save(page):
        for _, title, code in BLOCK.findall(page.read_text("utf-8")):
            if title:
                (tmp_path / title).write_text(code, "utf-8")
                saved.append(Path(title).stem)

    yield save
    pacplan.planners.clear()
    pacplan.planners.update(planners)
    for name in set(saved) - modules:
        sys.modules.pop(name, None)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda page: page.name)
def test_python_blocks_run(page, capsys, reader):
    reader(page)
    for _, shown in run(page):
        printed = capsys.readouterr().out
        assert shown is None or untimed(printed) == untimed(shown)


def test_readme_shows_the_plan_that_it_prints(capsys):
    *_, (names, _) = run(ROOT / "README.md")
    (shown,) = blocks(ROOT / "README.md", "text")
    # Sentences are broken into lines there.
    assert untimed(str(names["plan"])).split() == untimed(shown).split()


def test_a_type_checker_accepts_the_first_example(tmp_path):
    """As a user has it: no settings, and the types of all that is installed."""
    pytest.importorskip("mypy")
    (code, _), *_ = steps(ROOT / "README.md")
    revealed = "".join(f"reveal_type(pacplan.{name})\n" for name in pacplan.__all__)
    (tmp_path / "first.py").write_text(code + revealed, "utf-8")
    # What is installed is read, and its own errors are not shown.
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=", "--follow-imports=silent", "first.py"],
        cwd=tmp_path,
        env=os.environ | {"MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert 'Revealed type is "Any"' not in checked.stdout  # Names that are imported late have types.


def test_the_file_of_a_page_is_an_example():
    (saved,) = BLOCK.findall((ROOT / "docs" / "new_planner.md").read_text("utf-8"))[:1]
    assert saved[1] == "flat_monte_carlo.py"
    assert saved[2] == (ROOT / "examples" / saved[1]).read_text("utf-8")
