"""How the command spells what Python calls arguments: budget=100 is --budget 100.

Errors and advice come from the library, which speaks to users of Python. Here, and nowhere else, they
are put into the words of the command.
"""

import re
from collections.abc import Mapping
from functools import cache

SETTINGS = {
    "epsilon": "E",
    "delta": "D",
    "gamma": "G",
    "horizon": "N",
    "thresholds": "NAME",
    "goal": "GOAL",
    "merge": "WHICH",
    "rewards": "KIND",
    "transitions": "KIND",
    "value_range": "LOW HIGH",
}
"""Settings of planners that have an option of their own, and what it takes."""

_LIMITS = {
    "state": "STATE",
    "seed": "N",
    "budget": "N",
    "time_limit": "SECONDS",
    "memory_limit": "BYTES",
    "checkpoint": "FILE",
    "every": "SECONDS",
    "workers": "N",
    "planners": "NAMES",
    "families": "NAMES",
    "plans": "N",
    "runs": "N",
    "mdps": "N",
}
# Settings without an option of their own, and what --option takes for them.
_OTHERS = {
    "chunk": "N",
    "exploration": "C",
    "max_policies": "N",
    "rollout": "WHICH",
    "rule": "WHICH",
    "target": "WHICH",
    "temperature": "T",
    "threshold": "WHICH",
    "value_bounds": "module:name",
    "policy": "module:name",
    "value": "module:name",
    "width": "N",
}
_NAMES = SETTINGS | _LIMITS | _OTHERS
_VALUE = r"""'[^']*'|"[^"]*"|\([^()]*\)|\.\.\.|[-+\w.%]*[\w%]"""


def flag(name: str) -> str:
    """The option of an argument's name."""
    return f"--{name.replace('_', '-')}"


def spelled(name: str, value: str | None = None) -> str:
    """An argument as the command takes it; "..." stands for a value that only the user knows."""
    if value == "...":
        value = _NAMES[name]
    elif value is not None:
        # A pair is two words.
        value = value.strip("()").replace(",", "") if name == "value_range" else _plain(value)
    if name in _OTHERS:
        return f"--option {name}={value or ''}"
    return flag(name) if value is None else f"{flag(name)} {value}"


def translated(text: str) -> str:
    """What the library says to users of Python, in the words of the command.

    A call that makes a planner, such as Bracket(epsilon=1), stands for the planner, and stays as it is.
    """
    text = re.sub(r"\b\w+\(\.\.\., (\w+=\w+)\)", r"\1", text)  # plan(..., budget=n)
    text = re.sub(r"\bpacplan\.plan\b", "--planner auto", text)
    parts = re.split(rf"(\b(?:{'|'.join(_classes())})\((?:[^()]|\([^()]*\))*\))", text)
    return "".join(part if i % 2 else _words(part) for i, part in enumerate(parts))


def problem_words(text: str, settings: Mapping[str, object]) -> str:
    """What a problem says about its settings, in the words of the command."""
    return _standing_for(settings).sub(r"--set \1", text) if settings else text


def _words(text: str) -> str:
    classes = _classes()
    text = re.sub(
        rf"\b(use|such as) ({'|'.join(classes)})\b",
        lambda match: f"{match[1]} --planner {classes[match[2]]}",
        text,
    )
    given = rf"(?<![-\w.])(?<!--option )({'|'.join(_NAMES)})=({_VALUE})?"
    text = re.sub(given, lambda match: spelled(match[1], match[2]), text)
    return _standing_for(_NAMES).sub(lambda match: spelled(match[1]).removesuffix("="), text)


def _standing_for(names: Mapping[str, object]) -> re.Pattern[str]:
    """Finds names that stand for an argument: before "must", and those that are no English word."""
    words = "|".join(map(re.escape, names))
    compounds = "|".join(re.escape(name) for name in names if "_" in name) or "(?!)"
    said = rf"(?<!\ba )(?<!\bthe )(?:{words})(?= must\b)"
    return re.compile(rf"(?<![-\w.=])({said}|(?:{compounds})(?![\w=]))")


def _plain(value: str) -> str:
    """A value without the marks that only Python needs."""
    inner = value[1:-1] if value[:1] in ("'", '"') else value
    return inner if re.fullmatch(r"\S+", inner) else value


@cache
def _classes() -> dict[str, str]:
    """The names of the planners by those of their classes."""
    from pacplan.algorithms import planners

    return {planner.__name__: name for name, planner in planners.items()}
