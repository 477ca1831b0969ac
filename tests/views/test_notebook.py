"""What notebooks show: well-formed fragments that no name can break, and a kernel run for real."""

import re
from xml.etree import ElementTree

import pytest

import pacplan
from every_planner import NAMES, make, problem
from pacplan.core.words import at_least, at_most

GARNET = pacplan.envs.garnet(seed=0)
ATTACK = "<script>alert(1)</script>"


def read(html):
    """Tags, attributes and text of a fragment, every element of which must be closed in order."""
    elements = list(ElementTree.fromstring(f"<div>{html}</div>").iter())
    attributes = {name for element in elements for name in element.attrib}
    words = " ".join("".join(elements[0].itertext()).split())
    return [element.tag for element in elements], attributes, words


def shown(thing):
    """What a notebook shows of a thing: no script, no style sheet, nothing to clash with."""
    tags, attributes, words = read(thing._repr_html_())
    assert not {"script", "style", "link", "img"} & set(tags)
    assert not any(name == "id" or name.startswith("on") for name in attributes)
    return tags, words


@pytest.mark.parametrize("name", NAMES)
def test_every_plan_is_shown(name):
    plan = make(name).plan(problem(name), 0, seed=1, budget=500)
    tags, words = shown(plan)
    assert words.startswith("Certified:" if plan.certified else "Not certified:")
    assert all(text in words for text in (plan.guarantee, *plan.assumptions))
    assert tags.count("svg") == len(plan.actions) + 1  # And the axis.
    if plan.lower is not None:
        for low, high in zip(plan.lower, plan.upper, strict=True):
            assert at_least(low) in words and at_most(high) in words
        assert "taken" in words and "challenger" in words


def test_no_name_is_markup():
    names = [ATTACK, '"><h1>', "&lt;", "plain"]
    model = pacplan.Simulator(lambda s, a, rng: (ATTACK, 0.5, False), actions=names)
    for planner in (make("uct"), make("bracket")):
        plan = planner.plan(model, ATTACK, seed=0, budget=300)
        tags, words = shown(plan)
        assert "h1" not in tags and all(name in words for name in names)


CELLS = [
    "import sys, pacplan\nmodel = pacplan.envs.garnet(seed=0)\nmodel",
    "planner = pacplan.MDPGapE(epsilon=0.5, delta=0.1, gamma=0.7)\nplanner",
    "plan = planner.plan(model, 0, seed=0, budget=20_000, progress=True)\nplan",
    "pacplan.UCT(gamma=0.7).plan(model, 0, seed=0, budget=500, progress=True).action",
    "from pacplan.views.progress import bar\n"
    "with bar(10, 0, 'runs', show=True) as advance:\n    [advance(1) for _ in range(10)]",
    "'ipywidgets' in sys.modules",
]


@pytest.fixture(scope="module")
def notebook():
    nbformat = pytest.importorskip("nbformat", reason="this test runs a notebook")
    nbclient = pytest.importorskip("nbclient", reason="this test runs a notebook")
    pytest.importorskip("ipykernel", reason="this test runs a notebook")
    cells = [nbformat.v4.new_code_cell(cell) for cell in CELLS]
    made, seen = nbformat.v4.new_notebook(cells=cells), []

    class Watching(nbclient.NotebookClient):
        """Keeps everything that was displayed, also what was overwritten."""

        def process_message(self, message, cell, index):
            if message["msg_type"] in ("display_data", "update_display_data"):
                seen.append((index, message["content"]["data"].get("text/html")))
            return super().process_message(message, cell, index)

    Watching(made, timeout=300).execute()
    return made, seen


# Kernels talk over sockets that Python closes when it likes.
@pytest.mark.filterwarnings("default")
def test_a_notebook_for_real(notebook):
    made, seen = notebook
    results = [
        output.data
        for cell in made.cells
        for output in cell.outputs
        if output.output_type == "execute_result"
    ]
    html = [data.get("text/html") for data in results]
    assert html[:2] == [None, None] and "Not certified" in html[2]
    assert results[3]["text/plain"].isdigit()
    assert results[-1]["text/plain"] == "False"
    assert not any(output.output_type == "error" for cell in made.cells for output in cell.outputs)
    # The progress was shown in one place, and is gone.
    for cell, words in ((2, "of 20,000 calls"), (3, "of 500 calls"), (4, "0/10 runs")):
        shown_here = [text for index, text in seen if index == cell]
        assert any(words in re.sub("<.*?>", "", text) for text in shown_here)
        assert shown_here[-1] == ""
        places = [o for o in made.cells[cell].outputs if o.output_type == "display_data"]
        assert len(places) == 1 and places[0].data.get("text/html") == ""
        for text in shown_here:
            read(text)
    assert "━" in next(text for index, text in seen if index == 2 and text)
