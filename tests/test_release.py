"""What a release says of itself agrees: the version, its changelog, how to cite it."""

import re
from pathlib import Path

import pacplan

ROOT = Path(__file__).parent.parent


def read(name):
    return (ROOT / name).read_text("utf-8")


def test_the_newest_section_of_the_changelog_is_this_version():
    version, date = re.findall(r"^## (\S+) – (\S+)$", read("CHANGELOG.md"), re.MULTILINE)[0]
    assert version == pacplan.__version__
    assert re.findall(r'^date-released: "(\S+)"$', read("CITATION.cff"), re.MULTILINE) == [date]


def test_the_citation_is_of_this_version():
    assert re.findall(r"^version: (\S+)$", read("CITATION.cff"), re.MULTILINE) == [pacplan.__version__]


def test_every_page_that_the_readme_links_to_is_there():
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", read("README.md"))
    assert links and all((ROOT / link).exists() for link in links)
