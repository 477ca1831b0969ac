"""Questions that a kernel puts to a named tuple, answered by the class of the tuple.

A kernel is compiled for the classes of its arguments, which is when the answers are chosen: each
combination gets its own kernel, without passing functions around, which would defeat the cache.
With compilation switched off the same table of answers is looked up at run time.

    @question
    def draw(handle, state, rng): ...       its body is the default answer

    @answers(draw, MyHandle)
    def _draw(handle, state, rng): ...
"""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

from numba.extending import overload

from pacplan.compiled.jit import PART
from pacplan.compiled.sources import chosen_by

F = TypeVar("F", bound=Callable[..., Any])
_answers: dict[tuple[str, type], Callable[..., Any]] = {}


def question(function: F) -> F:
    """Let the class of the first argument, a named tuple, answer `function`.

    Args:
        function: its body is the answer of classes without one of their own.
    """
    name = f"{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def ask(subject: Any, *args: Any) -> Any:
        return _answer(name, type(subject), function)(subject, *args)

    def choose(subject: Any, *args: Any) -> Any:
        return _answer(name, subject.instance_class, function)

    # Numba compares the signatures of the question and of the answer.
    choose.__signature__ = signature(function)  # type: ignore[attr-defined]
    overload(ask, jit_options=PART, strict=False)(choose)
    ask.question = name  # type: ignore[attr-defined]
    return ask  # type: ignore[return-value]


def answers(asked: Callable[..., Any], subject: type) -> Callable[[F], F]:
    """Make the decorated function the answer of one class of named tuples to a question."""

    def register(function: F) -> F:
        _answers[asked.question, subject] = function  # type: ignore[attr-defined]
        chosen_by(subject, function)
        return function

    return register


def _answer(name: str, subject: type, default: Callable[..., Any]) -> Callable[..., Any]:
    return _answers.get((name, subject), default)
