"""Options of the command: declared as lines of its help, read, and named in errors."""

import argparse
import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

_SETTINGS = "epsilon|delta|gamma|horizon|thresholds|goal|merge|rewards|transitions|value_range"
SETTINGS = tuple(_SETTINGS.split("|"))
"""Settings of planners that have an option of their own; `--option NAME=VALUE` takes the others."""
_LIMITS = "planner|state|seed|budget|time_limit|memory_limit|checkpoint|every|workers|runs|plans|mdps"
_OTHERS = "exploration|max_policies|rollout|rule|target|temperature|threshold|width|"
_OTHERS += "value_bounds|policy|value"
_CALL = r"(\b[A-Z]\w*\((?:[^()]|\([^()]*\))*\))"
_VALUE = r"""('[^']*'|"[^"]*"|\([^()]*\)|\.\.\.|[-+\w.%]*[\w%])"""
_ARGUMENT = rf"(?<![-\w.])({_SETTINGS}|{_LIMITS}|{_OTHERS})"

# In the help of every command.
_EXIT_CODES = """Exit codes: 0 done; 1 something failed; 2 wrong usage; 3 a budget, a deadline or a lack
of memory stopped a plan before its own rule; 130 Ctrl-C (what was found is printed or kept)."""

SET = "--set NAME=VALUE  setting of the problem, e.g. states=50 (repeat)"
QUIET = "-q --quiet  show no progress"
WORKERS = "--workers N  processes; by default one per core. 1 starts none"


class Parser(argparse.ArgumentParser):
    """A parser whose help keeps its lines, and whose errors are one line."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(
            formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **settings
        )

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and where to look."""
        self.exit(2, f"pacplan: {message}; see {self.prog} --help\n")


def names(text: str) -> list[str]:
    """Words separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def size(text: str) -> int:
    """A number of bytes, with a suffix for powers of 1024."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if match is None:
        raise argparse.ArgumentTypeError(f"takes a number of bytes such as 500M or 2G, got {text!r}")
    number, suffix = match.groups()
    return int(float(number) * 1024 ** " KMGT".index(suffix.upper() or " "))


def literal(text: str) -> Any:
    """A Python literal, or the text itself if it is none, such as 5%."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        if text.lstrip()[:1] in tuple("([{'\""):
            raise argparse.ArgumentTypeError(f"cannot read {text!r} as a Python literal") from None
        return text


def setting(text: str) -> tuple[str, Any]:
    """A name and a value, from NAME=VALUE."""
    name, separator, value = (part.strip() for part in text.partition("="))
    if not separator or not name:
        raise argparse.ArgumentTypeError(f"takes NAME=VALUE, got {text!r}")
    return name, literal(value)


_TYPES = {"N": int, "SECONDS": float, "D": float, "G": float, "LOW": float, "E": literal}
_TYPES |= {"BYTES": size, "STATE": literal, "NAMES": names, "FILE": Path, "FOLDER": Path}


def add_command(
    commands: Any, usage: str, run: Callable[[argparse.Namespace], None], text: str, **defaults: Any
) -> argparse.ArgumentParser:
    """Add a command: its line in the list of commands, what it does, and in the end its options."""
    short, _, more = text.partition("\n\n")
    about, _, listed = more.rpartition("\n\n")
    name = usage.partition(" ")[0]
    parser: argparse.ArgumentParser = commands.add_parser(
        name, usage=f"pacplan {usage} [options]", help=short, description=about, epilog=_EXIT_CODES
    )
    add_options(parser, listed)
    parser.set_defaults(run=run, **defaults)
    return parser


def add_options(parser: Any, listed: str) -> None:
    """Add the options that are listed as in help: `--budget N  maximum number of calls`.

    The words after the names say the type; without any, the option is a flag, and NAME=VALUE may be
    repeated. A word without a name must be given. Indented lines go on.
    """
    for entry in re.split(r"\n(?! )", listed.strip()):
        left, about = re.split(r"\s{2,}", entry, maxsplit=1)
        flags = [word for word in left.split() if word.startswith("-")]
        words = left.split()[len(flags) :]
        given: dict[str, Any] = {"metavar": words[0] if len(words) == 1 else tuple(words)}
        if not words:
            given = {"action": "store_true"}
        elif words == ["NAME=VALUE"]:
            given |= {"action": "append", "type": setting, "default": []}
        else:
            given |= {"type": _TYPES.get(words[0], str), "nargs": len(words) if words[1:] else None}
        parser.add_argument(*(flags or [left.lower()]), help=" ".join(about.split()), **given)


def in_options(text: str) -> str:
    """A message to users of Python, its arguments as options: budget=100 becomes --budget 100.

    A planner in words, such as Bracket(epsilon=1), stays as it is.
    """

    def option(match: re.Match[str]) -> str:
        call, name, value = match.groups(default="")
        if call:
            return call
        if name in _OTHERS.split("|"):
            return f"--option {name}={value}"
        return f"--{name.replace('_', '-')} {value}".rstrip()

    text = re.sub(r"\bplan\(\.\.\., ([^()]*)\)", r"\1", text).replace("pacplan.plan", "--planner auto")
    text = re.sub(rf"\A{_ARGUMENT}(?= must\b)", r"\1=", text)
    return re.sub(rf"{_CALL}|(?<!--option ){_ARGUMENT}={_VALUE}?", option, text)


def problem_of(asked: argparse.Namespace, *, seeded: bool = False) -> Any:
    """The problem; or, if it is to be drawn anew in each run, the function that makes it of a seed."""
    from pacplan.registry import problem_maker

    try:
        make = problem_maker(asked.problem, dict(asked.set), seeded=seeded)
        return make if seeded else make(None)
    except (TypeError, ValueError, ImportError) as error:
        raise ValueError(str(error)) from error
