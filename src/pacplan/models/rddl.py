"""Environments of pyRDDLGym, of which it is known what changes and which actions are admissible.

A state is the values of the state fluents and the number of steps taken; all else follows from them or
stays the same. So far less is copied than of an environment that nothing is known of.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any


def recognised(base: Any) -> bool:
    """Whether an unwrapped environment is one of pyRDDLGym's, with its own simulator."""
    return _has_class(base, "pyRDDLGym.core.env", "RDDLEnv") and _has_class(
        base.sampler, "pyRDDLGym.core.simulator", "RDDLSimulator"
    )


def _has_class(thing: Any, module: str, name: str) -> bool:
    return any(kind.__module__ == module and kind.__qualname__ == name for kind in type(thing).__mro__)


def save(base: Any) -> tuple[Any, ...]:
    """What brings a state back. The arrays are shared: the simulator makes new ones at every step."""
    simulator = base.sampler
    values = tuple(simulator.subs[name] for name in _changing(simulator.rddl))
    return base.timestep, base.done, values, simulator.state


def restore(base: Any, saved: tuple[Any, ...]) -> None:
    """Bring a state back."""
    simulator = base.sampler
    base.timestep, base.done, values, simulator.state = saved
    base.state = simulator.states  # a copy
    simulator.subs.update(zip(_changing(simulator.rddl), values, strict=True))


def _changing(model: Any) -> list[str]:
    """Names of the fluents that a state consists of."""
    names = list(model.state_fluents)
    if model.preconditions:
        # They are looked at before a step computes these anew.
        kinds = ("interm-fluent", "derived-fluent")
        names += [name for name, kind in model.variable_types.items() if kind in kinds]
    return names


def combinations(base: Any, values: dict[str, list[Any]]) -> Iterator[dict[str, Any]]:
    """The actions, given the values that each action fluent can have.

    At most `max_allowed_actions` fluents differ from their defaults (of those that are counted), and
    only these are named: {} does nothing.
    """
    noop, ranges = base.sampler.grounded_noop_actions, base.sampler.grounded_action_ranges
    values = {name: [False, True] if ranges[name] == "bool" else v for name, v in values.items()}
    counted = [name for name in values if base.enforce_count_non_bool or ranges[name] == "bool"]
    free = [name for name in values if name not in counted]
    others = {name: [v for v in values[name] if v != noop[name]] for name in values}
    for k in range(min(int(base.max_allowed_actions), len(counted)) + 1):
        for names in itertools.combinations(counted, k):
            for chosen in itertools.product(*(others[name] for name in names)):
                for rest in itertools.product(*([noop[name], *others[name]] for name in free)):
                    action = dict(zip(names, chosen, strict=True))
                    given = zip(free, rest, strict=True)
                    yield action | {name: v for name, v in given if v != noop[name]}


def admissible(base: Any, actions: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those of the actions that the preconditions allow in the state that the environment is in."""
    ready, allowed = base.sampler.prepare_actions_for_sim, base.sampler.check_action_preconditions
    return [action for action in actions if allowed(ready(action), silent=True)]
