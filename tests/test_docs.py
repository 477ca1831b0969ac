"""Every Python block of README and documentation runs, and README shows what the code prints."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page, language):
    return [code for found, code in BLOCK.findall(page.read_text("utf-8")) if found == language]


def run(page):
    """Run the blocks of a page one after the other, as a reader would; returns what they define."""
    names = {"__name__": page.stem}
    for code in blocks(page, "python"):
        exec(compile(code, str(page), "exec"), names)
    return names


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda page: page.name)
def test_python_blocks_run(page, capsys):
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
