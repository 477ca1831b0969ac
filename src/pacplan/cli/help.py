"""The help: wrapped to the terminal, with the planners and problems that there are."""

import argparse
from collections.abc import Mapping
from typing import Any, NoReturn

from pacplan.cli.endings import Exit
from pacplan.core.catalogue import PLANNERS, PROBLEMS
from pacplan.core.text import columns, wrapped

# In a pipe each option is one line, which other programs can search.
_ENDLESS = 100_000


class Parser(argparse.ArgumentParser):
    """A parser whose help fits the terminal, and whose errors are one line."""

    def __init__(self, *, description: str, epilog: str = "", **settings: Any) -> None:
        super().__init__(
            description=paragraphs(description),
            epilog=epilog,
            formatter_class=_Formatter,
            allow_abbrev=False,
            **settings,
        )

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and where to look."""
        words = message.removeprefix("argument ").replace("unrecognized", "unknown")
        words = words.replace("COMMAND --help: invalid choice:", "there is no command")
        self.exit(Exit.USAGE, f"pacplan: {words}; see {self.prog} --help\n")


class _Formatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=26, width=columns() or _ENDLESS)

    def _split_lines(self, text: str, width: int) -> list[str]:
        """Lines that keep names such as op-mdp in one piece."""
        return wrapped(" ".join(text.split()), width).splitlines()


def paragraphs(text: str) -> str:
    """Paragraphs that fit the terminal."""
    return "\n\n".join(
        wrapped(" ".join(paragraph.split()), columns()) for paragraph in text.split("\n\n")
    )


def catalogue() -> str:
    """The planners and problems, with a line on each."""
    return f"{_listed('planners', PLANNERS)}\n\n{_listed('problems', PROBLEMS)}"


def _listed(title: str, entries: Mapping[str, str]) -> str:
    longest = max(map(len, entries))
    lines = [
        wrapped(f"  {name.ljust(longest)}  {words}", columns(), " " * (longest + 4))
        for name, words in entries.items()
    ]
    return "\n".join([f"{title}:", *lines])
