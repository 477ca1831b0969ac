"""The problem that a command is about."""

from argparse import Namespace
from collections.abc import Callable
from typing import Any

from pacplan.cli.endings import wrong_usage
from pacplan.cli.spelling import problem_words
from pacplan.cli.values import settings


def maker_of(asked: Namespace, *, seeded: bool) -> Callable[[int | None], Any]:
    """How to make the problem, from a seed or from None. What is wrong with it is said of --set."""
    from pacplan.registry import problem_maker

    def complain(error: Exception) -> Exception:
        return wrong_usage(problem_words(str(error), dict(asked.set)))

    try:
        make = problem_maker(asked.problem, settings("--set", asked.set), seeded=seeded)
    except (TypeError, ValueError, ImportError) as error:
        raise complain(error) from error

    def made(seed: int | None) -> Any:
        try:
            return make(seed)
        except (TypeError, ValueError, ImportError) as error:
            raise complain(error) from error

    return made
