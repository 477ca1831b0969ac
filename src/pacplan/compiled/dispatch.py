"""Generic functions for kernels: `functools.singledispatch` on the class of a named tuple.

    @generic
    def probability(handle, state, successor): ...      its body is the default method

    @abstract
    def draw(handle, state, rng): ...                   every class needs a method

    @draw.register(MyHandle)
    def _draw(handle, state, rng): ...

A kernel is compiled for the classes of its arguments, and then the methods are chosen: each combination
gets its own kernel. Functions passed as arguments would defeat the cache. Without compilation, the same
methods are found at run time.
"""

from collections.abc import Callable
from functools import update_wrapper
from inspect import signature
from typing import Any, Generic, ParamSpec, TypeVar

from numba.extending import overload

from pacplan.compiled.jit import PART

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])
# Classes with methods by the name that they were defined under.
_classes: dict[str, list[type]] = {}


def generic(function: Callable[P, R]) -> "GenericFunction[P, R]":
    """Make `function` the default method of a generic function of its name."""
    return GenericFunction(function, function)


def abstract(function: Callable[P, R]) -> "GenericFunction[P, R]":
    """Like `generic`, without a default: a class without a method is an error."""
    return GenericFunction(function, None)


class GenericFunction(Generic[P, R]):
    """A function that calls the method of its first argument's class.

    Attributes:
        methods: by class.
    """

    __name__: str

    def __init__(self, function: Callable[P, R], default: Callable[..., Any] | None) -> None:
        update_wrapper(self, function)
        self._default = default
        self.methods: dict[type, Callable[..., Any]] = {}

        def choose(subject: Any, *args: Any) -> Any:
            return self.method_of(subject.instance_class)

        # Numba compares the signatures of the function and of its methods.
        choose.__signature__ = signature(function)  # type: ignore[attr-defined]
        overload(self, jit_options=PART, strict=False)(choose)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the method of the first argument's class."""
        return self.method_of(type(args[0]))(*args, **kwargs)

    def method_of(self, subject: type) -> Callable[..., R]:
        """The method of a class.

        Raises:
            TypeError: it has none, and there is no default.
        """
        method = self.methods.get(subject, self._default)
        if method is None:
            raise TypeError(
                f"{_name(subject)} has no method {self.__name__!r}: "
                f"decorate a function with {self.__name__}.register({subject.__qualname__})"
            )
        return method

    def register(self, subject: type) -> Callable[[F], F]:
        """Make the decorated function the method of a class of named tuples.

        Raises:
            TypeError: the class has a method already, which kernels may contain.
        """

        def add(method: F) -> F:
            if subject in self.methods:
                raise TypeError(
                    f"{_name(subject)} has a method {self.__name__!r} already, and compiled kernels "
                    f"keep it: define {subject.__qualname__} anew, and its methods after it"
                )
            # Numba knows a named tuple by the name of its class and by its fields: of two called Search
            # with the same fields, a kernel compiled for the first would be run for the second.
            namesakes = _classes.setdefault(_name(subject), [])
            if subject not in namesakes:
                namesakes.append(subject)
                if len(namesakes) > 1:
                    subject.__name__ = f"{_name(subject)} {len(namesakes)}"
            self.methods[subject] = method
            return method

        return add


def _name(subject: type) -> str:
    return f"{subject.__module__}.{subject.__qualname__}"
