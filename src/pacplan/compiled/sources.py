"""Which sources the compiled code of a kernel can contain, and a digest of them.

A kernel inlines functions and constants of other modules, so its own file says too little. The whole
package says too much: a kernel need not be compiled again because the command's help was reworded.
What matters is what the kernel's module imports, directly or not, and what was registered for the
classes of its arguments (`chosen_by`).
"""

import dis
import hashlib
import importlib.util
import inspect
import os
import site
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

_PACKAGE = Path(__file__).parent.parent
_NAME = __name__.partition(".")[0]


class _State(NamedTuple):
    """Distinguishes the states of a file without reading it."""

    modified: int
    size: int
    number: int


class _Import(NamedTuple):
    """An import statement: `from [level dots]module import names`, or `import module`."""

    level: int
    module: str
    names: tuple[str, ...] | None


# The states of the files when their modules were imported. A file that was edited since then is not
# what this process compiles. The code of a module is a new object each time it is executed.
_states: dict[str, _State] = {}
_executed: dict[str, CodeType] = {}
# The modules whose functions are chosen by the class of an argument.
_chosen: dict[type, set[str]] = {}


@cache
def source_digest() -> str:
    """A digest of the sources of the whole package."""
    digest = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        digest.update(path.relative_to(_PACKAGE).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def imported(function: Callable[..., Any]) -> None:
    """Remember the file of a function that was defined just now, and those it can have imported.

    A function that is defined later, after the file's module was executed, says nothing about the file,
    which may have been edited. A module that is executed again does.
    """
    path = function.__code__.co_filename
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename != path:
        frame = frame.f_back
    code = frame.f_code if frame is not None and frame.f_code.co_name == "<module>" else None
    if path in _states and code in (None, _executed.get(path)):
        return
    for module in list(sys.modules.values()) if path not in _states else ():
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and file not in _states and not _installed(file):
            _remember(file)
    if code is not None:
        _executed[path] = code
    _remember(path)


def chosen_by(argument_class: type, function: Callable[..., Any]) -> None:
    """Say that kernels contain `function` if one of their arguments is of that class."""
    imported(function)
    _chosen.setdefault(argument_class, set()).add(function.__module__)


def unedited(path: str) -> bool:
    """Whether a file is still what this process has imported."""
    try:
        return _states.get(path) == _state(path)
    except OSError:
        return False


def chosen_modules(argument_class: type) -> set[str]:
    """The modules whose functions were registered for that class."""
    return _chosen.get(argument_class, set())


def is_chosen_by(argument_class: type) -> bool:
    """Whether functions were registered for that class."""
    return argument_class in _chosen


def kernel_digest(function: Callable[..., Any], argument_classes: Iterable[type]) -> str | None:
    """A digest of all sources that `function` can contain, compiled for such arguments.

    None if they cannot be known: a function or class typed into an interpreter, or a file that was
    edited after this process imported it.
    """
    modules = {function.__module__: function.__code__.co_filename}
    for kind in argument_classes:
        for name in (kind.__module__, *_chosen.get(kind, ())):
            file = _file(name)
            if file is None:
                return None
            modules[name] = file
    homes = {_NAME, *map(_top, modules)}
    try:
        todo = list(modules.items())
        while todo:
            for name, file in _imports(*todo.pop()):
                if name not in modules and (_top(name) in homes or not _installed(file)):
                    modules[name] = file
                    todo.append((name, file))
        lines = (f"{name} {_digest(file)}\n" for name, file in sorted(modules.items()))
        return hashlib.sha256("".join(lines).encode()).hexdigest()
    except (ImportError, OSError, SyntaxError, ValueError):
        return None


def _imports(name: str, path: str) -> Iterator[tuple[str, str]]:
    """The modules that a module imports: names and files, if they have files."""
    module = sys.modules.get(name)
    package = getattr(module, "__package__", None) or (
        name if Path(path).name == "__init__.py" else name.rpartition(".")[0]
    )
    for statement in _statements(name, path, _state(path)):
        base = importlib.util.resolve_name("." * statement.level + statement.module, package)
        if statement.names is None:
            # `import a.b` gives access to everything that a and a.b hold.
            parts = base.split(".")
            found = [".".join(parts[: i + 1]) for i in range(len(parts))]
        else:
            found = [
                part if _file(part) is not None else base
                for part in (f"{base}.{name}" for name in statement.names)
            ]
        for each in found:
            file = _file(each)
            if file is not None:
                yield each, file


class _Reader(SourceFileLoader):
    """Gives a module's code, from its .pyc file if there is one, and writes nothing to disk."""

    def set_data(self, *args: Any, **kwargs: Any) -> None:
        pass


@cache
def _statements(name: str, path: str, _: _State) -> list[_Import]:
    code = _Reader(name, path).get_code(name)
    return list(_scan(code)) if code is not None else []


def _scan(code: CodeType) -> Iterator[_Import]:
    """The imports that kernels can see.

    Compiled functions cannot import. An import inside a function is for that function alone, unless
    it defines functions itself.
    """
    # Reading the code of a module, as far as its last import, is much faster than parsing its text.
    inner = [constant for constant in code.co_consts if inspect.iscode(constant)]
    is_function = code.co_flags & inspect.CO_OPTIMIZED
    end = 2 * code.co_code[::2].rfind(dis.opmap["IMPORT_NAME"]) + 2
    if (inner or not is_function) and end > 0:
        beginning = code.replace(co_code=code.co_code[:end])
        steps = [step for step in dis.get_instructions(beginning) if step.opname != "EXTENDED_ARG"]
        for i, step in enumerate(steps):
            if step.opname == "IMPORT_NAME":
                level, names = steps[i - 2].argval, steps[i - 1].argval
                if not isinstance(level, int) or not isinstance(names, tuple | None):
                    raise ValueError(f"an unknown form of import in {code.co_filename}")
                yield _Import(level, step.argval, names)
    for constant in inner:
        yield from _scan(constant)


def _file(name: str) -> str | None:
    """The source of a module; None if it has none or, outside the package, is not imported."""
    if _top(name) == _NAME:
        return _package_file(name)
    file = getattr(sys.modules.get(name), "__file__", None)
    return file if isinstance(file, str) and file.endswith(".py") else None


@cache
def _package_file(name: str) -> str | None:
    place = os.path.join(_PACKAGE, *name.split(".")[1:])
    paths = (os.path.join(place, "__init__.py"), f"{place}.py")
    return next(filter(os.path.isfile, paths), None)


def _top(name: str) -> str:
    return name.partition(".")[0]


@cache
def _roots() -> tuple[str, ...]:
    """Where Python and the packages installed for it lie."""
    paths = [sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")]
    paths += [*site.getsitepackages(), site.getusersitepackages()]
    return tuple({os.path.join(os.path.realpath(path), "") for path in paths if path})


@cache
def _installed(path: str) -> bool:
    return os.path.realpath(path).startswith(_roots())


@cache
def _read(path: str, _: _State) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _digest(path: str) -> str:
    state = _state(path)
    if state != _states.setdefault(path, state):
        raise ValueError(f"{path} was edited after it was imported")
    return _read(path, state)


def _state(path: str) -> _State:
    status = os.stat(path)
    return _State(status.st_mtime_ns, status.st_size, status.st_ino)


def _remember(path: str) -> None:
    try:
        _states[path] = _state(path)
    except OSError:
        _states.pop(path, None)


for _path in _PACKAGE.rglob("*.py"):
    _remember(str(_path))
