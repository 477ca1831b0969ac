"""Questions that a kernel puts to a named tuple, answered by the class of the tuple.

A kernel is compiled for the classes of its arguments, which is when the answers are chosen: each
combination gets its own kernel, without passing functions around, which would defeat the cache.
With compilation switched off the same table of answers is looked up at run time.

    @question
    def probability(handle, state, successor): ...      its body is the default answer

    @must_answer
    def draw(handle, state, rng): ...                   every class has to answer

    @answers(draw, MyHandle)
    def _draw(handle, state, rng): ...
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial, wraps
from inspect import signature
from typing import Any, TypeVar

from numba.extending import overload

from pacplan.compiled.jit import PART

F = TypeVar("F", bound=Callable[..., Any])
_answers: dict[tuple[str, type], Callable[..., Any]] = {}
_subjects: dict[type, str] = {}


def question(function: F) -> F:
    """Let the class of the first argument, a named tuple, answer `function`.

    Args:
        function: its body is the answer of classes without one of their own.
    """
    return _asked(function, function)


def must_answer(function: F) -> F:
    """Like `question`, without a default: a class without an answer is an error."""
    return _asked(function, None)


def _asked(function: F, default: F | None) -> F:
    name = f"{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def ask(subject: Any, *args: Any) -> Any:
        return _answer(name, type(subject), default)(subject, *args)

    def choose(subject: Any, *args: Any) -> Any:
        return _answer(name, subject.instance_class, default)

    # Numba compares the signatures of the question and of the answer.
    choose.__signature__ = signature(function)  # type: ignore[attr-defined]
    overload(ask, jit_options=PART, strict=False)(choose)
    ask.question = name  # type: ignore[attr-defined]
    ask.answer_of = partial(_answer, name, default=default)  # type: ignore[attr-defined]
    ask.answers_of = partial(_given, name)  # type: ignore[attr-defined]
    return ask  # type: ignore[return-value]


def answers(asked: Callable[..., Any], subject: type) -> Callable[[F], F]:
    """Make the decorated function the answer of one class of named tuples to a question.

    Raises:
        TypeError: the class has an answer already, which kernels may contain.
    """
    name: str = asked.question  # type: ignore[attr-defined]

    def register(function: F) -> F:
        if (name, subject) in _answers:
            raise TypeError(
                f"{_subjects[subject]} has an answer to {_short(name)!r} already, and compiled kernels "
                f"keep it: define {subject.__qualname__} anew, and its answers after it"
            )
        _tell_apart(subject)
        _answers[name, subject] = function
        return function

    return register


def _tell_apart(subject: type) -> None:
    """Give a class that answers a name of its own, in this process.

    Numba knows a named tuple by the name of its class and by its fields: of two classes called Search
    with the same fields, a kernel compiled for the first would be run for the second.
    """
    if subject not in _subjects:
        name = f"{subject.__module__}.{subject.__qualname__}"
        earlier = sum(other == name for other in _subjects.values())
        _subjects[subject] = name
        subject.__name__ = f"{name} {earlier + 1}" if earlier else name


def _given(name: str, subjects: Iterable[type]) -> Iterator[Callable[..., Any]]:
    """The answers of some classes to a question."""
    return (_answers[name, subject] for subject in subjects if (name, subject) in _answers)


def modules_of(subject: type) -> set[str]:
    """The modules that hold the answers of a class."""
    return {answer.__module__ for (_, kind), answer in _answers.items() if kind is subject}


def _short(question: str) -> str:
    return question.rpartition(".")[2]


def _answer(name: str, subject: type, default: Callable[..., Any] | None) -> Callable[..., Any]:
    answer = _answers.get((name, subject), default)
    if answer is None:
        asked = _short(name)
        raise TypeError(
            f"{subject.__module__}.{subject.__qualname__} does not answer {asked!r}: decorate a "
            f"function with answers({asked}, {subject.__qualname__})"
        )
    return answer
