"""Environments of Gymnasium as models: exact tables if they publish one, else simulators."""

import importlib
import re
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Literal

import numpy as np

from pacplan.core import checks
from pacplan.core.notes import add_note
from pacplan.models.actions import actions_of, mask_of, most_of
from pacplan.models.consistency import Preflight, examine
from pacplan.models.labels import numbered
from pacplan.models.layers import RECORDER, UncopiedError, all_layers
from pacplan.models.protocol import BrokenPromiseError
from pacplan.models.published import (
    ALL_SEEING,
    GymnasiumTable,
    check_table,
    published,
    table_of,
    unlimited,
)
from pacplan.models.restoring import Actions, EnvState, RestorableEnv, observation_key, own_copy
from pacplan.models.sessions import PythonSession
from pacplan.models.simulator import Simulator

_DRAWS = 200
# It takes more draws to meet states that are taken for each other.
_KEYED_DRAWS = 1000
_SECONDS = 1.0


def from_gymnasium(
    env: Any,
    *,
    successors: int | None = None,
    reward_range: tuple[float, float] | None = None,
    actions: Sequence[Any] | Callable[[Any], Sequence[Any]] | None = None,
    mask: bool | Callable[[Any], Any] = False,
    key: Callable[[Any], Hashable] | Literal["observation"] | None = None,
    ignore: Sequence[str] = (),
    time_limit: bool = False,
    table: bool = True,
    save: Callable[[Any], Any] | None = None,
    restore: Callable[[Any, Any], None] | None = None,
    redraw: Callable[[Any, np.random.Generator], None] | None = None,
    check: bool = True,
) -> "GymnasiumTable | GymnasiumSimulator":
    """A model of a Gymnasium environment; the documentation has a page about them.

        env = gymnasium.make("CartPole-v1")
        env.reset(seed=0)
        model = pacplan.from_gymnasium(env, successors=1, reward_range=(0, 1))
        env.step(planner.plan(model).action)

    `planner.plan(model)` plans from the state that `env` is in at that moment, `planner.plan(model,
    model.state_of(other))` from that of another environment of the same kind. The environment is only
    read: planning neither steps nor changes it.

    An environment that publishes its transitions as `env.unwrapped.P`, as FrozenLake does, becomes an
    exact `TabularMDP`. Any other becomes a simulator: a private copy is brought back to the state asked
    for and stepped. One that cannot be copied, such as LunarLander, is replayed if it was wrapped by
    `pacplan.recorded`, or brought back by `save` and `restore`.

    States are the same if what is saved is the same, bit by bit, except for random generators: all
    draws come from one stream, which the plan's seed starts. So the plan is for a player who sees what
    an observation hides, unless `redraw` draws it anew. `plan.assumptions` says what it depends on.

    An episode ends by `terminated`, and by `truncated` if the environment itself says so. The limit of
    a `TimeLimit` wrapper is left out of the problem, unless `time_limit=True`.

    Args:
        env: the environment. Wrappers apply, except those that only check, record or draw.
        successors: B, the largest number of next states of a state and action; 1 for deterministic
            environments such as CartPole and MountainCar. None: not known; `model.check().successors`
            is how many were seen in some draws.
        reward_range: lowest and highest reward. Needed unless there is a table.
        actions: the actions to choose from, any objects that the environment takes. By default all of
            its space if they are finitely many and at most 5,000: Discrete, MultiDiscrete, MultiBinary,
            and Dict and Tuple of these; in pyRDDLGym all that the domain admits in a state. For a
            continuous space, list some: tuples and lists become arrays of the space's type. Or a
            function of the unwrapped environment that lists those it takes in the state it is in.
            `plan.action` is what `env.step` takes.
        mask: True: offer only the actions that the environment's mask allows (`action_mask` of Taxi,
            `action_masks` or `get_available_actions` of others), or a function of the unwrapped
            environment that returns the mask. Tables are not used then.
        key: a function of the observation whose result identifies states: hashable, and equal only
            for states with the same future. "observation": its content. By default all that is saved.
        ignore: names of attributes on which the future does not depend, though they change: states that
            differ in nothing else are one.
        time_limit: whether the limit of a `TimeLimit` wrapper is a part of the problem.
        table: False: do not use the table that the environment publishes.
        save: function of the unwrapped environment that returns all that `restore` needs, in numbers,
            strings, arrays and the like, which can be pickled.
        restore: function of the unwrapped environment and of what `save` returned.
        redraw: function of the unwrapped environment and a generator, called before every step, that
            draws again what the observation hides, given what it shows. What was hidden before must
            make no difference to it: sort a deck before you shuffle it.
        check: check the promises by a few hundred draws, within a second or so.

    Raises:
        ValueError: something is missing or cannot be copied; the message says what to pass.
        BrokenPromiseError: the check found a promise broken.
    """
    if not all(hasattr(env, name) for name in ("step", "reset", "action_space")):
        raise TypeError(f"env must be a Gymnasium environment, got {type(env).__name__}")
    if hasattr(env, "num_envs"):
        raise TypeError(f"{type(env).__name__} is a vector of environments; pass one of them")
    if (save is None) != (restore is None):
        raise ValueError("pass save and restore together, or neither")
    if key is not None and key != "observation" and not callable(key):
        raise TypeError(f"key must be a function of the observation or 'observation', got {key!r}")
    if isinstance(ignore, str) or not all(isinstance(name, str) for name in ignore):
        raise TypeError(f"ignore must be a list of names of attributes, got {ignore!r}")
    promised = None if reward_range is None else checks.reward_range(reward_range)
    whole = not time_limit and actions is None and mask is False
    found = published(env) if table and whole else None
    if found is not None:
        if check:
            check_table(env, found)
        return table_of(env, found, successors, promised)
    unknown = set(ignore).difference(*(vars(layer) for layer in all_layers(env)))
    if unknown:
        raise ValueError(f"ignore={sorted(unknown)}: {_name(env)} has no such attribute")
    offered = actions_of(env, actions, mask_of(env) if mask is True else mask or None)
    settings = {
        "actions": offered,
        "key": observation_key if key == "observation" else key,
        "time_limit": checks.flag("time_limit", time_limit),
    }
    own = {"ignore": frozenset(ignore), "save": save, "restore": restore, "redraw": redraw}
    promises = successors, promised
    restorable, report = _restorable(env, settings, own, promises, check or promised is None)
    if promised is None:
        low, high = report.rewards if report is not None else (0.0, 0.0)
        raise ValueError(
            "pass reward_range=(lowest, highest), the range that rewards are known to have. Some draws "
            f"paid from {low:g} to {high:g}"
        )
    if report is not None and report.problems:
        raise BrokenPromiseError(
            f"{_name(env)} does not do what the model promises:\n"
            + "\n".join(f"- {words}" for words in (*report.problems, *report.notes))
        )
    rests_on = _assumptions(env, restorable, key, ignore, redraw, time_limit)
    return GymnasiumSimulator(env, restorable, offered, successors, promised, rests_on)


def _restorable(
    env: Any, settings: dict[str, Any], own: dict[str, Any], promises: Any, check: bool
) -> tuple[RestorableEnv, Preflight | None]:
    """A copy of the environment or, if that is impossible or wrong, one that is replayed."""
    recorded = type(env).__name__ == RECORDER

    def tried(**kind: Any) -> tuple[RestorableEnv, Preflight | None]:
        made = RestorableEnv(env, **settings, **kind)
        draws = _DRAWS if made.by_content else _KEYED_DRAWS
        return made, examine(made, *promises, draws=draws, seconds=_SECONDS) if check else None

    given = [name for name, value in own.items() if value]
    made: RestorableEnv | None = None
    try:
        made, report = tried(**own)
        if report is None or report.restored or given or not recorded:
            return made, report
    except UncopiedError as error:
        if not recorded:
            raise ValueError(
                f"{error}. To have it replayed from its seed and actions, wrap it before you reset it: "
                "env = pacplan.recorded(env)"
            ) from error
        if given:
            raise ValueError(
                f"{error}. {', '.join(given)}: only for environments that are copied, not for those "
                "that are replayed"
            ) from error
    again, seen = tried(replayed=True)
    return (again, seen) if made is None or seen is None or seen.restored else (made, report)


def _assumptions(
    env: Any, made: RestorableEnv, key: Any, ignored: Sequence[str], redraw: Any, time_limit: bool
) -> tuple[str, ...]:
    """What everything said about the model depends on, in words."""
    if made.replayed:
        stated = [
            "the same seed, actions and random numbers lead the environment to the same state",
            "all that is random in a step comes from the environment's own generators",
        ]
    else:
        stated = ["the saved state of the environment is all that its future depends on"]
    if ignored:
        stated.append(f"its future does not depend on {', '.join(sorted(ignored))}")
    if key is not None:
        what = "observation" if key == "observation" else "key"
        stated.append(f"states with the same {what} have the same future")
    if redraw is not None:
        stated.append("redraw draws what observations hide by its law given what they show")
    elif key is None:
        stated.append(ALL_SEEING)
    return (*stated, *(() if time_limit else unlimited(env)))


class GymnasiumSimulator(Simulator):
    """An environment that is brought back to earlier states, made by `from_gymnasium`.

    Attributes:
        assumptions: what all that is said of the model rests on, repeated in plans.
    """

    def __init__(
        self,
        env: Any,
        restorable: RestorableEnv,
        actions: Actions,
        successors: int | None,
        reward_range: tuple[float, float],
        assumptions: tuple[str, ...],
    ) -> None:
        self._env, self._restorable = env, restorable
        self.assumptions = assumptions
        offered: Any = restorable.actions
        if not callable(actions):
            offered = len(actions) if numbered(actions) else list(actions)
        super().__init__(
            restorable.draw,
            actions=offered,
            max_actions=most_of(actions),
            successors=successors,
            reward_range=reward_range,
        )
        self.anywhere = False  # There is one environment.
        self.needs_observations = not restorable.by_content

    def actions(self, state: EnvState) -> tuple[Any, ...]:
        """The actions available in a state: copies, with which the user may do what he likes."""
        return tuple(map(own_copy, super().actions(state)))

    def fingerprint(self) -> str:
        """What identifies this model: its promises. Sessions compare what the environment holds."""
        return f"{self!r} {(self.stationary, self.may_end, self.two_player)}"

    def open(self, seed: np.random.SeedSequence) -> "_WatchedSession":
        """Start a session for one plan."""
        return _WatchedSession(self, seed)

    def _verify(self) -> None:
        changed = self._restorable.changed()
        if changed is not None:
            raise BrokenPromiseError(f"during the plan, {changed}")

    def _mark(self, state: EnvState) -> bytes:
        return self._restorable.mark(state)

    def _check_state(self, state: Any, name: str) -> None:
        if not isinstance(state, EnvState):
            raise TypeError(
                f"{name} must be a state of this model, got {type(state).__name__}; plan(model) plans "
                "from where the environment is now, plan(model, model.state_of(env)) from where "
                "another one is"
            )

    def initial_state(self) -> EnvState:
        """The state that the environment is in now."""
        return self.state_of(self._env)

    def state_of(self, env: Any, observation: Any = None) -> EnvState:
        """The state that an environment of the same kind is in now.

        Args:
            env: the environment.
            observation: what it showed last, for a model with a `key`. Without it, the state of such a
                model is taken for one that was never seen.
        """
        return self._restorable.state_of(env, observation)

    def __repr__(self) -> str:
        return (
            f"GymnasiumSimulator({self._restorable}, max_actions={self.max_actions}, "
            f"successors={self.successors}, reward_range={self.reward_range})"
        )

    def check(self, draws: int = 2000, seed: int = 0) -> Preflight:
        """Draw from random states and report what was seen, and which promises were broken."""
        promises = self.successors, self.reward_range
        return examine(self._restorable, *promises, draws=draws, seed=seed)


class _WatchedSession(PythonSession):
    """A session that checks now and then that what copies share has stayed the same."""

    def __init__(self, model: GymnasiumSimulator, seed: np.random.SeedSequence) -> None:
        super().__init__(model, seed)
        self._restorable: RestorableEnv = model._restorable
        self._due = 1

    def call(self, key: int, action: int, h: int) -> tuple[int, float, int]:
        """One call to the environment."""
        if self._log is not None:
            # So that draws depend only on the generator, which a checkpoint can save.
            self._restorable.forget_stream()
        answer = super().call(key, action, h)
        # The first state is the one to plan from. Not every environment tells by itself.
        if key == 0 and isinstance(self.error, Exception):
            add_note(self.error, "if the environment was not reset, call env.reset() before planning")
        return answer

    def _answer_reseed(self, high: int, low: int, _: int) -> None:
        super()._answer_reseed(high, low, _)
        # The environment has generators of its own, which follow at the next draw.
        self._restorable.forget_stream()

    def _inspect(self, key: int) -> None:
        super()._inspect(key)
        if self._calls >= self._due:
            self._due = 2 * self._calls
            self._model._verify()


def make(name: str, seed: int | None = 0, **settings: Any) -> GymnasiumTable | GymnasiumSimulator:
    """A model of a registered environment, reset.

    Args:
        name: as for `gymnasium.make`.
        seed: for the environment's `reset`.
        settings: for `from_gymnasium` those that it has, the others for `gymnasium.make`.
    """
    gymnasium = _library(name)
    own = from_gymnasium.__kwdefaults__ or {}
    try:
        env: Any = gymnasium.make(name, **{k: v for k, v in settings.items() if k not in own})
    except gymnasium.error.Error as error:
        raise ValueError(f"cannot make {name!r}: {error}") from error
    env = recorded(env)
    env.reset(seed=seed)
    return from_gymnasium(env, **{k: v for k, v in settings.items() if k in own})


def check_name(name: str) -> None:
    """Raise unless there can be an environment of this name. None is made, so some pass unresolved."""
    gymnasium = _library(name)
    if ":" not in name and re.search(r"-v\d+$", name):
        try:
            gymnasium.spec(name)
        except gymnasium.error.Error as error:
            raise ValueError(f"cannot make {name!r}: {error}") from error


def _library(name: str) -> Any:
    try:
        return importlib.import_module("gymnasium")
    except ImportError:
        raise ImportError(
            f"{name!r} needs Gymnasium, which is not installed: pip install pacplan[gym]"
        ) from None


def _name(env: Any) -> str:
    return type(getattr(env, "unwrapped", env)).__name__


def recorded(env: Any) -> Any:
    """The environment in a wrapper that records how it got where it is, so that it can be replayed.

        env = pacplan.recorded(gymnasium.make("LunarLander-v3"))
        env.reset(seed=0)
        model = pacplan.from_gymnasium(env, reward_range=(-200, 200))

    For environments that cannot be copied. It must be the outermost wrapper, and be reset before use. A
    reset without a seed gets one, drawn from the last that was given.
    """
    _library(_name(env))
    from pacplan.models.recording import ActionRecorder

    return ActionRecorder(env)
