"""Environments of Gymnasium that are brought back to earlier states, as simulators."""

import copy
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from pacplan.models import layers, rddl
from pacplan.models.actions import Actions
from pacplan.models.consistency import Preflight, examine
from pacplan.models.copying import EnvCopy
from pacplan.models.protocol import BrokenPromiseError
from pacplan.models.simulator import Simulator, numbered
from pacplan.models.states import EnvState

# To find out what changes: so many walks, when to look, and after how many seconds to cut them short.
_WALKS, _MOMENTS, _SECONDS = 3, (0, 1, 3, 8, 16, 32), 0.5


class GymnasiumSimulator(Simulator):
    """An environment that is brought back to earlier states, made by `from_gymnasium`.

    It holds a copy of the environment, and draws from any state of it.
    """

    def __init__(self, env: Any, *, actions: Actions, **promises: Any) -> None:
        self._env, self._choices = env, actions
        self._held = rddl.RDDLCopy(env) if rddl.recognised(env) else EnvCopy(env)
        self.base = self._held.layers[-1]
        self._held.divide(self._moments())
        offered: Any = self._offered_in
        if not callable(actions):
            offered = len(actions) if numbered(actions) else list(actions)
        super().__init__(self.draw, actions=offered, **promises)
        self.anywhere = False  # There is one environment.
        spec = getattr(self.base, "spec", None)
        self._name = layers.names_of(self._held.layers) + ("" if spec is None else f" of {spec.id}")

    def __reduce__(self) -> Any:
        raise TypeError("the model of an environment cannot be copied or pickled; make it anew")

    def _moments(self) -> Iterator[int]:
        """Play a little, and stop now and then: after so many steps."""
        rng, deadline = np.random.default_rng(0), time.perf_counter() + _SECONDS
        for _ in range(_WALKS):
            steps = ((rng.random(), rng) for _ in range(_MOMENTS[-1]))
            for step, (*_, ended) in enumerate(self.walk(rng, steps)):
                late = step > 0 and time.perf_counter() > deadline
                if late or ended or step in _MOMENTS:
                    yield step
                if late:
                    break

    # States.

    def initial_state(self) -> EnvState:
        """The state that the environment is in now."""
        return self.state_of(self._env)

    def state_of(self, env: Any) -> EnvState:
        """The state that an environment of the same kind is in now."""
        here, there = layers.layers_of(env), self._held.layers
        if list(map(type, here)) != list(map(type, there)):
            raise ValueError(
                f"the model is one of {layers.names_of(there)}, but this environment is "
                f"{layers.names_of(here)}"
            )
        if any(vars(layer).get("_has_reset") is False for layer in layers.all_layers(env)):
            raise ValueError("the environment has no state yet; call env.reset() before planning")
        # By way of our own, so that it looks just like a state that a step has led to.
        self._held.take(env)
        return EnvState(self._held.saved())

    def _check_state(self, state: Any, name: str) -> None:
        if not isinstance(state, EnvState):
            raise TypeError(
                f"{name} must be a state of this model, got {type(state).__name__}; plan(model) plans "
                "from where the environment is now, plan(model, model.state_of(env)) from where "
                "another one is"
            )

    def verify(self) -> None:
        """Raise BrokenPromiseError if what all states share has changed."""
        if changed := self._held.changed():
            raise BrokenPromiseError(
                f"during the plan, {', '.join(changed)} changed, which all states share, because it "
                "had not changed when the environment was tried; let reset or step bind it anew"
            )

    def forget_stream(self) -> None:
        """Let the next draw depend on its generator alone, not on draws before."""
        self._held.forget_stream()

    # Draws.

    def _offered(self) -> Sequence[Any]:
        """The actions that can be taken in the state that the environment is in."""
        if not callable(self._choices):
            return self._choices
        offered = list(self._choices(self.base))
        if not offered:
            raise BrokenPromiseError(
                "actions= leaves nothing to do in a state in which the episode has not ended"
            )
        return offered

    def _offered_in(self, state: EnvState) -> Sequence[Any]:
        self._held.put(state)
        return self._offered()

    def actions(self, state: EnvState) -> tuple[Any, ...]:
        """The actions available in a state: copies, with which the user may do what he likes."""
        return copy.deepcopy(super().actions(state))

    def draw(
        self, state: EnvState, action: Any, rng: np.random.Generator
    ) -> tuple[EnvState | None, Any, bool]:
        """One transition: (next state, reward, whether the episode ended)."""
        return self.observe(state, action, rng)[1:]

    def observe(
        self, state: EnvState, action: Any, rng: np.random.Generator
    ) -> tuple[Any, EnvState | None, Any, bool]:
        """One transition: (observation, next state, reward, whether the episode ended)."""
        self._held.put(state)
        # The action is the environment's own: it may do with it what it likes.
        observation, reward, terminated, truncated, _ = self._held.step(copy.deepcopy(action), rng)
        ended = bool(terminated or truncated)
        return observation, None if ended else EnvState(self._held.saved()), reward, ended

    def walk(
        self, start: np.random.Generator, steps: Iterable[tuple[float, np.random.Generator]]
    ) -> Iterator[tuple[Any, Any, Any, bool]]:
        """A reset and some steps in one go: (action, observation, reward, ended) of each.

        A step comes with a number from 0 to 1, where its action stands in the list of them.
        """
        yield None, copy.deepcopy(self._held.reset(start)), 0.0, False
        for luck, rng in steps:
            offered = self._offered()
            action = copy.deepcopy(
                offered[int(luck * len(offered))]
            )  # A step may change the environment's.
            observation, reward, terminated, truncated, _ = self._held.step(copy.deepcopy(action), rng)
            # Copies: the next step may change the very same objects.
            yield copy.deepcopy((action, observation, reward, bool(terminated or truncated)))
            if terminated or truncated:
                break

    def reset(self, rng: np.random.Generator) -> EnvState:
        """A first state, drawn by the environment's own `reset`."""
        self._held.reset(rng)
        return EnvState(self._held.saved())

    def check(self, draws: int = 2000, seed: int = 0) -> Preflight:
        """Draw from random states and report what was seen, and which promises were broken."""
        return examine(self, draws=draws, seed=seed)

    def fingerprint(self) -> str:
        """What identifies this model: its promises. Sessions compare what the environment holds."""
        return repr(self)
