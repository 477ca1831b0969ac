"""The library fits in a head: a budget of lines for each room, file and function.

Whoever outgrows one deletes a concept first, or raises the number in the same commit. Whoever shrinks a
room lowers it.
"""

import ast
from collections import Counter
from pathlib import Path

import pytest

import pacplan

SOURCE, TESTS = Path(pacplan.__file__).parent, Path(__file__).parent
# Lines of a room: a folder, without the folders in it that are rooms of their own.
ROOMS = {
    ".": 2290,
    "algorithms": 2200,
    "algorithms/anytime": 530,
    "algorithms/atlas": 1850,
    "algorithms/betting": 580,
    "algorithms/bracket": 1650,
    "algorithms/canopy": 1580,
    "algorithms/common": 1470,
    "algorithms/mdp_gape": 810,
    "algorithms/opd": 670,
    "algorithms/value_iteration": 510,
    "bounds": 670,
    "cli": 660,
    "compiled": 1300,
    "core": 440,
    "engine": 2050,
    "envs": 520,
    "experiments": 1120,
    "models": 2720,
    "parallel": 730,
    "testing": 1790,
    "theory": 1010,
    "views": 780,
}
TESTS_OF = {
    ".": 3400,
    "algorithms": 4860,
    "bounds": 590,
    "compiled": 830,
    "core": 360,
    "engine": 880,
    "envs": 200,
    "experiments": 670,
    "models": 2000,
    "testing": 580,
    "theory": 950,
    "views": 770,
}
FILE, FUNCTION = 400, 60


def lines(path):
    return len(path.read_text("utf-8").splitlines())


@pytest.mark.parametrize(("root", "rooms"), [(SOURCE, ROOMS), (TESTS, TESTS_OF)], ids=["src", "tests"])
def test_no_room_outgrows_its_budget(root, rooms):
    sizes = Counter()
    for path in root.rglob("*.py"):
        folder = path.relative_to(root).parent
        room = next(place for place in (folder, *folder.parents) if place.as_posix() in rooms)
        sizes[room.as_posix()] += lines(path)
    wrong = [
        f"{room}: {n} lines, {rooms[room]} allowed" for room, n in sizes.items() if n > rooms[room]
    ]
    assert not wrong, "; ".join(wrong)


def length(function):
    """Lines of a function, without its arguments and its docstring."""
    body = function.body[ast.get_docstring(function) is not None :]
    return function.end_lineno - body[0].lineno + 1 if body else 0


def test_no_file_and_no_function_is_long():
    wrong = []
    for path in SOURCE.rglob("*.py"):
        name = path.relative_to(SOURCE).as_posix()
        if lines(path) > FILE:
            wrong.append(f"{name} has {lines(path)} lines")
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and length(node) > FUNCTION:
                wrong.append(f"{name}:{node.lineno} {node.name} has {length(node)} lines")
    assert not wrong, "; ".join(wrong)
