"""The problem that a command is about. What is wrong with it is said of --set."""

from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pacplan.cli.endings import wrong_usage
from pacplan.cli.spelling import problem_words
from pacplan.cli.values import settings


def maker_of(asked: Namespace) -> Callable[[int | None], Any]:
    """How to make the problem of a seed."""
    return _maker(asked, seeded=True)


def model_of(asked: Namespace) -> Any:
    """The problem."""
    make = _maker(asked, seeded=False)
    with _complaining(asked):
        return make(None)


def _maker(asked: Namespace, *, seeded: bool) -> Callable[[int | None], Any]:
    from pacplan.registry import problem_maker

    with _complaining(asked):
        return problem_maker(asked.problem, settings("--set", asked.set), seeded=seeded)


@contextmanager
def _complaining(asked: Namespace) -> Iterator[None]:
    try:
        yield
    except (TypeError, ValueError, ImportError) as error:
        raise wrong_usage(problem_words(str(error), dict(asked.set))) from error
