"""Planners and problems by name, as the command line and sweeps give them.

A name of the form module:name is the user's code: its module is imported, and what is found there is
called. Both happen late. `planner_of` and `problem_maker` check all that can be checked without a call.
"""

import importlib
import sys
from collections.abc import Callable, Mapping
from functools import partial
from inspect import signature
from typing import Any

from pacplan import envs
from pacplan.algorithms import Planner, planners, register
from pacplan.auto import Auto
from pacplan.bounds.thresholds import NAMED, for_a_budget
from pacplan.models import gymnasium
from pacplan.models.protocol import Model, check_model, instead

# Defaults for what a planner takes and was not given.
_DEFAULTS: dict[str, Any] = {"epsilon": 0.5, "delta": 0.1, "gamma": 0.7}
# Settings that may be functions, which a text can only name.
_FUNCTIONS = ("thresholds", "value_bounds", "policy", "value")

FIXED_BUDGET: dict[str, dict[str, Any]] = {
    "mdp-gape": {"epsilon": 0.0, "thresholds": "sharp"},
    "bracket": {"epsilon": 0.0},
    "canopy": {"epsilon": 0.0},
    "kl-olop": {"threshold": "log"},
    "opd": {"epsilon": None},
}
"""Settings for planning within a budget, for planners whose own defaults are meant for another use."""


def planner_of(name: str, settings: Mapping[str, Any]) -> Planner:
    """The planner of a name, with these settings, and defaults for what else it needs.

    Functions among the settings (such as value_bounds or policy) can be given as text, module:name.

    Raises:
        ValueError: there is no such planner, or it takes no such setting.
        TypeError: what module:name stands for is not a planner's class.
    """
    planner = _planner_class(name)
    accepted = signature(planner).parameters
    for key in settings.keys() - accepted:
        known = ", ".join(f"{taken}=" for taken in accepted)
        raise ValueError(f"{name} takes no {key}=; it takes {known}")
    # The width of SparseSampling is in place of an accuracy.
    needed = ["gamma"] if "width" in settings else _DEFAULTS.keys() & accepted
    return planner(**{key: _DEFAULTS[key] for key in needed} | _with_functions(settings))


def auto_for(problem: str, settings: Mapping[str, Any], model: Model) -> Auto:
    """`Auto` with these settings, and defaults for what else it needs in a model.

    The problems of pacplan show how planning by sampling goes, so their tables are not looked up.
    """
    check_model(model)
    defaults = _DEFAULTS | {"sample": ":" not in problem}
    if model.two_player:
        del defaults["gamma"]
    return Auto(**(defaults | _with_functions(settings)))


def check_discount(problem: str, planner: str, settings: Mapping[str, Any]) -> None:
    """Refuse to plan in a user's own problem with our default discount: only its author knows it.

    Raises:
        ValueError: the settings of a planner, by its name, lack gamma.
    """
    lacks = "gamma" not in settings and "gamma" in signature(_planner_class(planner)).parameters
    if lacks and ":" in problem:
        raise ValueError(
            f"{problem!r} has no default discount; pass gamma=, and with gamma=1 horizon= too"
        )


def _with_functions(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings, with the user's functions in place of their names."""

    def names_one(key: str, value: Any) -> bool:
        return key in _FUNCTIONS and isinstance(value, str) and value not in NAMED and ":" in value

    return {key: named(value) if names_one(key, value) else value for key, value in settings.items()}


def _planner_class(name: str) -> type[Planner]:
    if name in planners:
        return planners[name]
    if ":" not in name:
        known = ", ".join(planners)
        raise ValueError(f"unknown planner {name!r}; choose one of {known}, or your own module:class")
    found: type[Planner] = register(named(name))
    return found


def has_rule(planner: Planner) -> bool:
    """Whether a planner has its own stopping rule; those without one are stopped by a limit."""
    if for_a_budget(getattr(planner, "thresholds", None)):
        return False
    return bool(getattr(planner, "epsilon", None)) or getattr(planner, "width", None) is not None


def problem_maker(
    name: str, settings: Mapping[str, Any], *, seeded: bool
) -> Callable[[int | None], Any]:
    """How to make the problem of a name: one of `pacplan.envs`, gym:NAME, or the user's module:name.

    A model is taken as it is. A callable is called with the settings, and with the seed if the maker is
    `seeded` and the callable takes one, unless the settings have it.

    Returns:
        A function of the seed, or of None. Nothing is called yet; the user's module is imported.

    Raises:
        ValueError: there is no such problem, or it does not take these settings.
        TypeError: what is there is neither a model nor something that could make one.
    """
    module, separator, attribute = name.partition(":")
    if module == "gym" and separator:
        found: Any = partial(gymnasium.make, attribute)
    elif separator:
        found = named(name)
    elif name in envs.__all__:
        found = getattr(envs, name)
    else:
        known = ", ".join(envs.__all__)
        raise ValueError(f"unknown problem {name!r}; choose one of {known}, or your own module:name")
    # A class has the attributes of its instances, but is not one.
    if isinstance(found, Model) and not isinstance(found, type):
        if settings:
            raise ValueError(
                f"{name!r} is a model and not callable, so settings (--set) have nothing to set"
            )
        return partial(_made, found, {}, False)
    if not callable(found):
        raise TypeError(
            f"{name!r} is {type(found).__name__} {found!r:.60}: neither a model nor a function that "
            f"makes one{instead(found)}"
        )
    takes_seed = False
    try:
        takes = signature(found)
        takes_seed = "seed" in takes.parameters
        takes.bind(**({"seed": 0} if seeded and takes_seed else {}) | dict(settings))
    except ValueError:
        pass  # Functions of extension modules do not say what they take.
    except TypeError as error:
        raise ValueError(
            f"cannot make a model by calling {name!r}: {error}; it takes {takes}{instead(found)}"
        ) from None
    return partial(_made, found, settings, takes_seed)


# At the top of the module, so that a maker of problems can be sent to other processes.
def _made(found: Any, settings: Mapping[str, Any], takes_seed: bool, seed: int | None) -> Any:
    if isinstance(found, Model):
        return found
    return found(**({"seed": seed} if takes_seed and seed is not None else {}) | dict(settings))


def named(name: str) -> Any:
    """What module:name stands for. The module is found from the current folder, as a script's is.

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
