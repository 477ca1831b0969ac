"""The problem that a command is about. Errors name its settings as --set takes them."""

import re
from argparse import Namespace
from typing import Any

from pacplan.cli.options import settings


def problem_of(asked: Namespace, *, seeded: bool = False) -> Any:
    """The problem; or, if it is to be drawn anew in each run, the function that makes it of a seed."""
    from pacplan.registry import problem_maker

    try:
        make = problem_maker(asked.problem, settings("--set", asked.set), seeded=seeded)
        return make if seeded else make(None)
    except (TypeError, ValueError, ImportError) as error:
        names = "|".join(re.escape(name) for name, _ in asked.set) or "(?!)"
        raise ValueError(re.sub(rf"\A({names})(?= must\b)", r"--set \1", str(error))) from error
