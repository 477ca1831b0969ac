"""Kernels and their parts keep to what other compilers could take as well (docs/inside.md)."""

import ast
from pathlib import Path

import pacplan

ROOT = Path(pacplan.__file__).parent
DECORATORS = {"kernel", "inlined", "called", "generic", "abstract", "register"}
FORBIDDEN = (
    ast.Try,
    ast.With,
    ast.ListComp,
    ast.DictComp,
    ast.SetComp,
    ast.GeneratorExp,
    ast.List,
    ast.Dict,
    ast.Set,
    ast.Lambda,
    ast.FunctionDef,
    ast.JoinedStr,
    ast.Yield,
    ast.YieldFrom,
    ast.Import,
    ast.ImportFrom,
)
# Functions of scalars.
NUMPY = {"ceil", "exp", "int64", "isnan", "log", "sqrt", "uint64"}
# A planner that adds more to the tree than it said is stopped: there is no room to go on.
GUARDS = {"add_node", "add_pair", "_close"}


def parts():
    """Every function that is compiled into kernels, and where it is."""
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef):
                marks = (m.func if isinstance(m, ast.Call) else m for m in node.decorator_list)
                if any(ast.unparse(mark).split(".")[-1] in DECORATORS for mark in marks):
                    yield f"{path.relative_to(ROOT)}, {node.name}", node


def complaints(function):
    """What a part should not do."""
    documented = ast.get_docstring(function) is not None
    guards = [node for node in ast.walk(function) if isinstance(node, ast.Raise)]
    guards = guards if function.name in GUARDS else []
    said = {part for guard in guards for part in ast.walk(guard)}
    for statement in function.body[documented:]:
        for node in ast.walk(statement):
            if node in said:
                continue
            if isinstance(node, FORBIDDEN):
                yield type(node).__name__
            elif isinstance(node, ast.Raise):
                yield "raises"
            elif isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
                if node.value != "inf":
                    yield f"the text {node.value!r}"
            elif isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                if called.startswith("np.") and called.removeprefix("np.") not in NUMPY:
                    yield called
                if called == function.name:
                    yield "calls itself"


def test_parts_of_kernels_are_plain():
    found = list(parts())
    assert len(found) > 200
    assert not {f"{where}: {what}" for where, part in found for what in complaints(part)}
