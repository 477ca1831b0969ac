"""Every Python block of README and documentation runs, and README shows what the code prints."""

import re
import sys
from pathlib import Path

import pytest

import pacplan

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r'^```(\w+)(?: title="(.+?)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)


def blocks(page, language):
    found = BLOCK.findall(page.read_text("utf-8"))
    return [code for written, title, code in found if written == language and not title]


def run(page):
    """Run the blocks of a page one after the other, as a reader would; returns what they define."""
    names = {"__name__": page.stem}
    for code in blocks(page, "python"):
        exec(compile(code, str(page), "exec"), names)
    return names


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
    run(page)


def test_readme_shows_the_plan_that_it_prints(capsys):
    plan = run(ROOT / "README.md")["plan"]
    shown = blocks(ROOT / "README.md", "text")[0].splitlines()
    printed = str(plan).splitlines()
    assert shown[:-1] == printed[:-1]
    # The last line ends with the seconds it took.
    assert shown[-1].rsplit(",", 1)[0] == printed[-1].rsplit(",", 1)[0]


def test_readme_begins_with_the_two_commands():
    commands = blocks(ROOT / "README.md", "sh")[0].splitlines()
    assert commands[0].startswith("python3 dev.py pacplan plan garnet")
    assert commands[1] == "python3 dev.py test"
    assert commands[1] in (ROOT / ".ci" / "run").read_text("utf-8")


def test_the_file_of_a_page_is_an_example():
    (saved,) = BLOCK.findall((ROOT / "docs" / "new_planner.md").read_text("utf-8"))[:1]
    assert saved[1] == "flat_monte_carlo.py"
    assert saved[2] == (ROOT / "examples" / saved[1]).read_text("utf-8")
