"""Each package knows only the ones before it, and no two modules need each other."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pacplan

ROOT = Path(pacplan.__file__).parent
# From the ground up; those on one line stand side by side. The package itself comes last.
LAYERS = """core
compiled
bounds
models
engine
parallel
policy
views
diagnosis origin
result playing
algorithms.common
algorithms
look
auto
agent exact envs theory extending
registry
experiments
comparison warming
testing
cli
pacplan __main__"""
RANKS = {name: rank for rank, line in enumerate(LAYERS.splitlines()) for name in line.split()}


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts) or "pacplan"


MODULES = {module_name(path): path for path in ROOT.rglob("*.py")}


def imports(path):
    """The modules of the package that a file imports, also in functions, but not for types alone."""
    waiting = [ast.parse(path.read_text("utf-8"))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            waiting += node.orelse
            continue
        waiting += ast.iter_child_nodes(node)
        found = []
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}, line {node.lineno}: write imports in full"
            # What is imported from a package may be one of its modules.
            found = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in found:
            if name.split(".")[0] == "pacplan":
                short = name.removeprefix("pacplan.")
                yield (
                    (short if short in MODULES else short.rpartition(".")[0] or "pacplan"),
                    node.lineno,
                )


def rank(module):
    """The layer of a module: that of the longest part of its name that has one."""
    parts = module.split(".")
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next(RANKS[name] for name in names if name in RANKS)


GRAPH = {module: list(imports(path)) for module, path in MODULES.items()}


def test_each_layer_knows_only_those_before_it():
    wrong = [
        f"{module}, line {line}, imports {other}"
        for module, found in GRAPH.items()
        for other, line in found
        if rank(other) > rank(module)
    ]
    assert not wrong, "\n".join(wrong)


def test_no_modules_import_one_another_in_a_circle():
    assert len(GRAPH) > 100 and sum(map(len, GRAPH.values())) > 400  # They were found at all.
    try:
        TopologicalSorter({m: {other for other, _ in found} for m, found in GRAPH.items()}).prepare()
    except CycleError as error:
        raise AssertionError(" imports ".join(reversed(error.args[1]))) from None
