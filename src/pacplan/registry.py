"""Planners and problems by name, as the command line and sweeps give them."""

import importlib
import sys
from inspect import signature
from typing import Any

from pacplan import envs
from pacplan.algorithms import Planner, planners
from pacplan.models import gymnasium

# What a planner requires and was not given.
_DEFAULTS = {"epsilon": 0.5, "delta": 0.1, "gamma": 0.7}

FIXED_BUDGET: dict[str, dict[str, Any]] = {
    "mdp-gape": {"epsilon": 0.0, "thresholds": "sharp"},
    "bracket": {"epsilon": 0.0},
    "kl-olop": {"threshold": "log"},
}
"""Settings for planning within a budget, where a planner's own defaults are meant for another use."""


def planner_of(name: str, **settings: Any) -> Planner:
    """The planner of a name, with the settings that are not None and defaults for what it requires.

    Raises:
        ValueError: there is no such planner, or it takes no such setting.
    """
    if name not in planners:
        raise ValueError(f"there is no planner {name!r}; try {', '.join(planners)}")
    accepted = signature(planners[name]).parameters
    given = {key: value for key, value in settings.items() if value is not None}
    for key in given:
        if key not in accepted:
            raise ValueError(f"{name} takes no {key}")
    required = {key: value for key, value in _DEFAULTS.items() if key in accepted}
    return planners[name](**(required | given))


def named(name: str) -> Any:
    """What module:name stands for, found from the current folder.

    Raises:
        ValueError: there is no such thing, or its module raised.
    """
    module, _, attribute = name.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return getattr(importlib.import_module(module), attribute)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(f"cannot load {name!r}: {reason}") from error


def problem_of(name: str, settings: dict[str, Any], seed: int | None = None) -> Any:
    """The model of a name in `pacplan.envs`, of gym:NAME, or of the user's own as module:name.

    Args:
        name: a callable is called with the settings, anything else is taken as it is.
        settings: its arguments.
        seed: given to a callable that takes one, unless the settings have it.
    """
    module, separator, attribute = name.partition(":")
    if not separator:
        if name not in envs.__all__:
            known = ", ".join(envs.__all__)
            raise ValueError(f"there is no problem {name!r}; try {known}, or your own module:name")
        found = getattr(envs, name)
    elif module == "gym":
        return gymnasium.make(attribute, **({} if seed is None else {"seed": seed}) | settings)
    else:
        found = named(name)
    if callable(found):
        if seed is not None and "seed" in signature(found).parameters:
            settings = {"seed": seed} | settings
        return found(**settings)
    if settings:
        raise ValueError(f"{name!r} is not callable, so settings (--set) have nothing to set")
    return found
