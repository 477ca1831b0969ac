"""Kernels as Python runs them, from the first moment, to the same bits.

A kernel's code is Python code. Its twin is the same code with the names that it uses bound anew: parts
of kernels to their own twins, and generic functions to the twins of their methods. Arrays of
records are read and written field by field through memory views, which takes a tenth of the time of
NumPy's records and gives Python's numbers. They do not wrap around, on which no kernel depends. But
a division by zero or log(0) is infinite, as in compiled code, so these are bound anew as well.
"""

import ast
import linecache
import math
import threading
from collections.abc import Callable
from functools import cache
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba.extending import is_jitted
from numpy.typing import NDArray

from pacplan.compiled.cache import names_of
from pacplan.compiled.dispatch import GenericFunction
from pacplan.core.identity import codes_of

# Kernels take scalar functions from these, which are what they are.
_LIBRARIES = {"builtins", "numba", "numpy"}
# What memory views read and write by themselves: numbers at their places, in the machine's byte order.
_FORMATS = set("bBhHiIlLqQfd?")
_twins: dict[Any, Any] = {}
# No thread gets a twin before its names are bound.
_binding = threading.RLock()


def interpreted(kernel: Any) -> Callable[..., Any]:
    """A function that does what a kernel does, without compiling anything."""
    run = _twin(kernel)

    def call(*arguments: Any) -> Any:
        views: list[Any] = []
        try:
            return run(*(_viewed(argument, views) for argument in arguments))
        finally:
            # The arrays may be moved from now on. A view that an exception holds on to must not follow.
            for view in views:
                view.release()

    return call


def _twin(value: Any) -> Any:
    """What stands for a value in interpreted kernels."""
    if is_jitted(value):
        value = value.py_func
    if isinstance(value, GenericFunction):
        return _dispatching(value)
    if hasattr(value, "in_python"):
        return value.in_python
    if isinstance(value, BuiltinFunctionType) and value.__module__ == "math":
        return _total(value)
    if not isinstance(value, FunctionType | ModuleType):
        return value
    home = value.__name__ if isinstance(value, ModuleType) else value.__module__
    if home.partition(".")[0] in _LIBRARIES:
        return value
    with _binding:
        if value not in _twins:
            if isinstance(value, ModuleType):
                _twins[value] = _Module(value)
            else:
                _bind(value)
        return _twins[value]


def _bind(function: FunctionType) -> None:
    names: dict[str, Any] = {"__builtins__": function.__globals__["__builtins__"], "_divided": _divided}
    cells = tuple(CellType() for _ in function.__closure__ or ())
    twin = FunctionType(_code(function), names, function.__name__, function.__defaults__, cells)
    twin.__kwdefaults__ = function.__kwdefaults__
    _twins[function] = twin  # Before its names are bound: it may be among them.
    for name in names_of(twin.__code__):
        if name in function.__globals__:
            names[name] = _twin(function.__globals__[name])
    for cell, original in zip(cells, function.__closure__ or (), strict=True):
        cell.cell_contents = _twin(original.cell_contents)


def _steps(code: CodeType) -> set[tuple[int, int]]:
    return set(zip(code.co_code[::2], code.co_code[1::2], strict=True))


_DIVISIONS = _steps(compile("a / b; a /= b", "", "exec")) - _steps(compile("a + b; a += b", "", "exec"))


def _code(function: FunctionType) -> CodeType:
    """The code of a function, with `_divided` in place of divisions."""
    code = function.__code__
    if _DIVISIONS.isdisjoint(_steps(code)):
        return code
    linecache.checkcache(code.co_filename)
    text = "".join(linecache.getlines(code.co_filename, function.__globals__))
    # A file that was edited since says nothing of the function.
    return _all_divided(code.co_filename, text).get(code, code)


@cache
def _all_divided(path: str, text: str) -> dict[CodeType, CodeType]:
    """The code of all functions in a file, and what replaces it."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return {}
    before = compile(tree, path, "exec", dont_inherit=True)
    tree = ast.fix_missing_locations(_Divisions().visit(tree))
    after = compile(tree, path, "exec", dont_inherit=True)
    return dict(zip(codes_of(before), codes_of(after), strict=True))


class _Divisions(ast.NodeTransformer):
    """Replaces divisions by calls of `_divided`."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        return _division(node.left, node.right) if isinstance(node.op, ast.Div) else node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Div):
            return node
        before = ast.parse(ast.unparse(node.target), mode="eval").body
        return ast.Assign([node.target], _division(before, node.value))


def _division(a: ast.expr, b: ast.expr) -> ast.expr:
    return ast.Call(ast.Name("_divided", ast.Load()), [a, b], [])


def _divided(a: Any, b: Any) -> float:
    top, bottom = float(a), float(b)
    if bottom != 0.0:
        return top / bottom
    return math.nan if top == 0.0 else math.copysign(math.inf, bottom) * top


@cache
def _total(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of `math` that has a value, as compiled, where Python's raises."""

    def call(*numbers: float) -> Any:
        try:
            return function(*numbers)
        except (OverflowError, ValueError):
            with np.errstate(all="ignore"):
                return float(getattr(np, function.__name__)(*numbers))

    return call


@cache
def _dispatching(function: GenericFunction[..., Any]) -> Callable[..., Any]:
    """A generic function whose methods are twins."""
    found: dict[type, Any] = {}

    def call(subject: Any, *arguments: Any) -> Any:
        kind = subject.__class__
        if kind not in found:
            found[kind] = _twin(function.method_of(kind))
        return found[kind](subject, *arguments)

    return call


class _Module:
    """A module, whose functions are twins."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        value = self.__dict__[name] = _twin(getattr(self._module, name))
        return value


def _viewed(value: Any, views: list[Any]) -> Any:
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return value.__class__(*(_viewed(field, views) for field in value))
    if isinstance(value, np.ndarray) and value.dtype.names is not None:
        return _Records(value, views)
    return value


class _Records:
    """An array of records, or a row of one: what is left of it `after` the first indices."""

    __slots__ = ("_after", "_array", "_columns", "_record", "_single", "_views", "shape", "size")

    def __init__(
        self, array: NDArray[Any], views: list[Any], columns: Any = None, after: tuple[Any, ...] = ()
    ) -> None:
        self._array, self._views, self._after = array, views, after
        self.size, self.shape, self._single = array.size, array.shape, array.ndim == 1
        self._record = _record_of(array.dtype)
        if columns is None:
            columns = [_column(array[name], array.ndim) for name in array.dtype.names or ()]
            views += (column for column in columns if isinstance(column, memoryview))
        self._columns = columns

    def __len__(self) -> int:
        return len(self._array)

    def __getattr__(self, name: str) -> Any:
        return self._array[name]

    def __getitem__(self, place: Any) -> Any:
        if self._single and place.__class__ not in (slice, tuple):
            return self._record(self._columns, (*self._after, place) if self._after else place)
        places = place if place.__class__ is tuple else (place,)
        found = self._array[places]
        if not isinstance(found, np.ndarray):
            return self._record(self._columns, (*self._after, *places))
        if any(part.__class__ is slice for part in places):
            return _Records(found, self._views)
        return _Records(found, self._views, self._columns, (*self._after, *places))

    def __setitem__(self, place: Any, record: Any) -> None:
        self._array[place] = tuple(column[record._place] for column in record._columns)


def _column(field: NDArray[Any], indices: int) -> Any:
    """The values of a field; an array if they are none that a memory view knows."""
    known = field.dtype.isnative and field.dtype.char in _FORMATS and field.ndim == indices
    if known and field.flags.aligned:
        return memoryview(field)  # type: ignore[arg-type]
    return field


@cache
def _record_of(dtype: np.dtype[Any]) -> Callable[..., Any]:
    """A class of records, each a place in columns, with the fields of `dtype` as attributes."""
    lines = [
        "class Record:",
        " __slots__ = ('_columns', '_place')",
        " def __init__(self, columns, place): self._columns, self._place = columns, place",
    ]
    for number, name in enumerate(dtype.names or ()):
        value = {"i": "int(value)", "u": "int(value)"}.get(dtype[name].kind, "value")
        lines += [
            " @property",
            f" def {name}(self): return self._columns[{number}][self._place]",
            f" @{name}.setter",
            f" def {name}(self, value): self._columns[{number}][self._place] = {value}",
        ]
    space: dict[str, Any] = {}
    exec("\n".join(lines), space)
    record: Any = space["Record"]
    record.dtype = dtype
    return record  # type: ignore[no-any-return]
