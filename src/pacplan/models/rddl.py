"""Environments of pyRDDLGym, of which it is known what changes and which actions are admissible.

A state is the values of the state fluents and the number of steps taken; all else follows from them or
stays the same. So far less is saved than of an environment that nothing is known of.
"""

import copy
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pacplan.models.copying import EnvCopy
from pacplan.models.layers import generators_in, layers_of
from pacplan.models.pickles import Pickles


def recognised(env: Any) -> bool:
    """Whether an environment is one of pyRDDLGym's, with its own simulator, and not wrapped."""
    kinds = type(getattr(env.unwrapped, "sampler", None)).__mro__
    own = any(
        (k.__module__, k.__name__) == ("pyRDDLGym.core.simulator", "RDDLSimulator") for k in kinds
    )
    return own and len(layers_of(env)) == 1


class RDDLCopy(EnvCopy):
    """A copy of such an environment."""

    def __init__(self, env: Any) -> None:
        self.layers = [copy.deepcopy(env.unwrapped)]
        self._generators = generators_in(map(vars, self.layers))
        self._stream = None

    def divide(self, moments: Iterable[Any]) -> None:
        """Do nothing, because it is known what changes."""
        self._parts, self._pickles = [], Pickles()

    def saved(self) -> bytes:
        """What brings back the state that the copy is in."""
        return self._pickles.dumps(save(self.layers[0]))

    def put(self, data: bytes) -> None:
        """Bring the copy to a state."""
        base = self.layers[0]
        simulator, saved = base.sampler, self._pickles.loads(data)
        base.timestep, base.done, simulator.state, values = map(saved.get, _NAMES)
        base.state = simulator.states  # a copy
        simulator.subs.update(values)

    def take(self, env: Any) -> None:
        """Bring the copy to the state that an environment of the same kind is in."""
        self.put(self._pickles.dumps(save(env.unwrapped)))


_NAMES = "timestep", "done", "state", "values"


def save(base: Any) -> dict[str, Any]:
    """What brings a state back."""
    simulator = base.sampler
    values = {name: simulator.subs[name] for name in _changing(simulator.rddl)}
    return dict(zip(_NAMES, (base.timestep, base.done, simulator.state, values), strict=True))


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
