"""Environments of Gymnasium as models: exact tables if they publish one, else snapshots."""

import importlib
import itertools
import re
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pacplan.core import checks
from pacplan.models.preflight import Preflight, examine
from pacplan.models.protocol import BrokenPromiseError
from pacplan.models.simulator import PythonSession, Simulator
from pacplan.models.snapshots import (
    TIME_LIMIT,
    TRANSPARENT,
    EnvState,
    Workbench,
    all_layers,
    observation_key,
)
from pacplan.models.tabular import TabularMDP

_MOST_COMBINATIONS = 1000
_PREFLIGHT_DRAWS = 200
# It takes more draws to meet states that are taken for each other.
_KEYED_DRAWS = 1000
_PREFLIGHT_SECONDS = 1.0


def from_gymnasium(
    env: Any,
    *,
    successors: int | None = None,
    reward_range: tuple[float, float] | None = None,
    actions: Sequence[Hashable] | None = None,
    mask: bool | Callable[[Any], Any] = False,
    key: Callable[[Any], Hashable] | Literal["observation"] | None = None,
    ignore: Sequence[str] = (),
    time_limit: bool = False,
    table: bool | None = None,
    save: Callable[[Any], Any] | None = None,
    restore: Callable[[Any, Any], None] | None = None,
    redraw: Callable[[Any, np.random.Generator], None] | None = None,
    changing: Sequence[str] = (),
    check: bool = True,
) -> "GymnasiumTable | GymnasiumSimulator":
    """A model of a Gymnasium environment.

        env = gymnasium.make("FrozenLake-v1")
        env.reset(seed=0)
        model = pacplan.from_gymnasium(env)
        planner = pacplan.MDPGapE(
            epsilon=0.1, delta=0.1, gamma=0.95, horizon=6, rewards="known", transitions="known"
        )
        env.step(planner.plan(model).action)

    **From where.** `planner.plan(model)` plans from the state that `env` is in at that moment;
    `model.state_of(other)` is the state of another environment of the same kind, and can be passed
    as the state. The environment itself is only read: planning neither steps nor changes it.

    **Tables.** An environment that publishes its transitions as `env.unwrapped.P[state][action]`, a
    list of (probability, next state, reward, terminated), becomes an exact `TabularMDP` with the same
    states and one more, the end. FrozenLake, CliffWalking and Taxi do. `successors` and `reward_range`
    are read from the table.

    **Snapshots.** Any other environment becomes a simulator that brings a private copy of it back to
    the state asked for and steps it. Only what changes while it is played is copied, not what stays the
    same (`benchmarks/gymnasium_snapshots.py` measures it); its own methods are used if it has
    them (`clone_state` and `restore_state`, `get_state` and `set_state`, `save_state` and
    `load_state`). Copies never share what is random: all draws come from one stream, which the plan's
    seed starts.

    **Which states are the same.** Those whose saved content is the same, bit by bit, except for random
    generators, which are seeded anew: so a clock, a count of steps or a velocity that the observation
    leaves out makes states different, as it may make their futures. Name in `ignore` what has no
    bearing on the future and only keeps equal states apart, or pass a `key`. Then you promise that
    states with the same key have the same future: they are one state, brought back as it was first
    seen. `model.check()` looks for states for which that is not true, and `plan.assumptions` says what
    the plan depends on.

    **What is hidden.** A snapshot knows what an observation hides, such as the dealer's second card in
    Blackjack or the order of a deck: the plan is one for a player who sees it, and says so, unless
    `redraw` draws it anew.

    **Ends.** `terminated` ends an episode, and so does `truncated` if the environment itself says so:
    what comes after does not count. The limit of a `TimeLimit` wrapper is left out of the problem,
    since it is not a property of a state. It makes no difference as long as the planner's horizon is at
    most the number of steps left. With `time_limit=True` it ends episodes as well, and states at
    different times are different.

    Args:
        env: the environment. Wrappers apply, except those that only check, record or draw.
        successors: B, the largest number of next states of a state and action; 1 for deterministic
            environments such as CartPole and MountainCar. None: not known; `model.check().successors`
            is how many were seen in some draws.
        reward_range: lowest and highest reward. Needed unless there is a table.
        actions: actions to choose from, by default all of a discrete space. For a continuous space,
            list some: they are converted to arrays of the space's type.
        mask: True: offer only the actions that the environment's mask allows (`action_mask` of Taxi,
            `action_masks` or `get_available_actions` of others), or a function of the unwrapped
            environment that returns the mask.
        key: a function of the observation whose result identifies states: hashable, and equal only
            for states with the same future. "observation": its content. By default all that is saved.
        ignore: names of attributes on which the future does not depend, though they change: states that
            differ in nothing else are one.
        time_limit: whether the limit of a `TimeLimit` wrapper is a part of the problem.
        table: True or False to insist on a table or on snapshots; by default a table if there is one.
        save: function of the unwrapped environment that returns all that `restore` needs.
        restore: function of the unwrapped environment and of what `save` returned.
        redraw: function of the unwrapped environment and a generator, called before every step, that
            draws again what the observation hides, given what it shows. What was hidden before must
            make no difference to it: sort a deck before you shuffle it.
        changing: names of attributes that change, besides those that are seen to change while the
            environment is tried. A plan that finds another one ends with an error.
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
    ignored = _names_of("ignore", ignore)
    promised = None if reward_range is None else checks.reward_range(reward_range)
    published = None if table is False else _published(env)
    if table and published is None:
        raise ValueError(
            f"{_name(env)} publishes no table env.unwrapped.P[state][action] of (probability, next "
            "state, reward, terminated) that holds for it as it is wrapped; leave out table="
        )
    if published is not None and not time_limit and actions is None:
        if check:
            _check_table(env, published)
        return _table(env, published, successors, promised, mask)
    _check_ignored(env, ignored)
    if table:
        raise ValueError(
            "a table has no clock and all actions: with time_limit or actions, pass table=False. A "
            "limit makes no difference if the planner's horizon is at most the number of steps left"
        )
    labels, convert = _actions(env.action_space, actions)
    if promised is None:
        promised = _own_range(env)
    build = partial(
        Workbench,
        env,
        actions=labels,
        convert=convert,
        key=observation_key if key == "observation" else key,
        ignore=ignored,
        time_limit=checks.flag("time_limit", time_limit),
        save=save,
        restore=restore,
        redraw=redraw,
    )
    rests_on = _assumptions(env, key, ignored, redraw, time_limit)
    changes = _names_of("changing", changing)
    if not check and promised is not None:
        bench = build(changing=changes)
        return GymnasiumSimulator(env, bench, labels, successors, promised, mask, rests_on)
    bench, report = _tried(build, changes, labels, successors, promised)
    if promised is None:
        raise ValueError(
            "pass reward_range=(lowest, highest), the range that rewards are known to have. "
            f"{report.draws} draws paid from {report.rewards[0]:g} to {report.rewards[1]:g}"
        )
    if report.problems:
        raise BrokenPromiseError(
            f"{_name(env)} does not do what the model promises:\n"
            + "\n".join(f"- {words}" for words in (*report.problems, *report.notes))
        )
    return GymnasiumSimulator(env, bench, labels, successors, promised, mask, rests_on)


def _names_of(name: str, given: Any) -> frozenset[str]:
    if isinstance(given, str) or not all(isinstance(entry, str) for entry in given):
        raise TypeError(f"{name} must be a list of names of attributes, got {given!r}")
    return frozenset(given)


def _check_ignored(env: Any, names: frozenset[str]) -> None:
    unknown = names.difference(*(vars(layer) for layer in all_layers(env)))
    if unknown:
        raise ValueError(f"ignore={sorted(unknown)}: {_name(env)} has no such attribute")


def _assumptions(
    env: Any, key: Any, ignored: frozenset[str], redraw: Any, time_limit: bool
) -> tuple[str, ...]:
    """What everything said about the model depends on, in words."""
    stated = ["the saved state of the environment is all that its future depends on"]
    if ignored:
        stated.append(f"its future does not depend on {', '.join(sorted(ignored))}")
    if key is not None:
        what = "observation" if key == "observation" else "key"
        stated.append(f"states with the same {what} have the same future")
    if redraw is not None:
        stated.append("redraw draws what observations hide by its law given what they show")
    elif key is None:
        stated.append(_ALL_SEEING)
    return (*stated, *(() if time_limit else _unlimited(env)))


_ALL_SEEING = (
    "it is planned for someone who knows the simulator's whole state, also what observations hide"
)


def _unlimited(env: Any) -> tuple[str, ...]:
    """The assumption that the time limits which a model leaves out are not reached."""
    limits = [layer for layer in all_layers(env) if type(layer).__name__ == TIME_LIMIT]
    return tuple(
        f"the limit of {layer._max_episode_steps} steps of an episode is not reached"
        for layer in limits
    )


class GymnasiumTable(TabularMDP):
    """The table of an environment, made by `from_gymnasium`. The last state is the end.

    Attributes:
        assumptions: what all that is said of the model rests on, repeated in plans.
    """

    def __init__(self, env: Any, *tables: Any, **settings: Any) -> None:
        super().__init__(*tables, **settings)
        self._env = env
        self.assumptions: tuple[str, ...] = (
            "the environment behaves as its table says",
            *(() if _shows_states(env, self.states - 1) else (_ALL_SEEING,)),
            *_unlimited(env),
        )

    def initial_state(self) -> int:
        """The state that the environment is in now."""
        return self.state_of(self._env)

    def state_of(self, env: Any, observation: Any = None) -> int:
        """The state that an environment of the same kind is in now."""
        state = getattr(env.unwrapped, "s", None)
        if state is None:
            raise ValueError(
                "the environment has no state yet, or does not show it as env.unwrapped.s; call "
                "env.reset() before planning, or name the state: plan(model, state)"
            )
        return self._check_state(int(state))


class GymnasiumSimulator(Simulator):
    """An environment behind snapshots, made by `from_gymnasium`.

    Attributes:
        assumptions: what all that is said of the model rests on, repeated in plans.
    """

    def __init__(
        self,
        env: Any,
        bench: Workbench,
        labels: tuple[Hashable, ...],
        successors: int | None,
        reward_range: tuple[float, float],
        mask: bool | Callable[[Any], Any],
        assumptions: tuple[str, ...],
    ) -> None:
        self._env, self._bench, self._all = env, bench, labels
        self.assumptions = assumptions
        numbered = labels == tuple(range(len(labels)))
        self._mask = _mask_of(env) if mask is True else mask or None
        offered: Any = len(labels) if numbered else list(labels)
        super().__init__(
            bench.draw,
            actions=self._allowed if self._mask is not None else offered,
            max_actions=len(labels) if self._mask is not None else None,
            successors=successors,
            reward_range=reward_range,
        )

    def _allowed(self, state: EnvState) -> list[Hashable]:
        assert self._mask is not None
        allowed = self._bench.ask(state, self._mask)
        return [label for label, yes in zip(self._all, allowed, strict=True) if yes]

    def open(self, seed: np.random.SeedSequence) -> "_WatchedSession":
        """Start a session for one plan."""
        return _WatchedSession(self, self._step, self._actions, True, seed)

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
        return self._bench.state_of(env, observation)

    @property
    def needs_observations(self) -> bool:
        """Whether the state of an environment is recognised by what it shows, as with a `key`."""
        return not self._bench.by_content

    def __repr__(self) -> str:
        return (
            f"GymnasiumSimulator({self._bench}, max_actions={self.max_actions}, "
            f"successors={self.successors}, reward_range={self.reward_range})"
        )

    def check(self, draws: int = 2000, seed: int = 0) -> Preflight:
        """Draw from random states and report what was seen, and which promises were broken."""
        return examine(
            self._bench,
            self._all,
            draws=draws,
            successors=self.successors,
            reward_range=self.reward_range,
            seed=seed,
        )


class _WatchedSession(PythonSession):
    """A session that checks now and then that what copies share has stayed the same."""

    def __init__(self, model: GymnasiumSimulator, *arguments: Any) -> None:
        super().__init__(model, *arguments)
        self._bench = model._bench
        self._due = 1

    def call(self, key: int, action: int, h: int) -> tuple[int, float, int]:
        """One call to the environment."""
        if self._log is not None:
            # So that draws depend only on the generator, which a checkpoint can save.
            self._bench.forget_stream()
        return super().call(key, action, h)

    def memory(self) -> dict[str, NDArray[Any]]:
        """What a checkpoint needs: also the state of the environment that was planned from."""
        return super().memory() | {"session.root": self._root_mark()}

    def recall(self, memory: dict[str, NDArray[Any]]) -> None:
        """Reach the same states again.

        Raises:
            ValueError: the environment is in another state, or does not do what it did.
        """
        mark = self._root_mark()
        if not (mark.size and np.array_equal(mark, memory["session.root"])):
            raise ValueError(
                "the environment is in another state than when the plan of the checkpoint began, or it "
                "cannot be seen what it holds; plan anew"
            )
        super().recall(memory)

    def _root_mark(self) -> NDArray[np.uint8]:
        mark = self._bench.identify(self.states[0].saved)
        return np.frombuffer(mark if isinstance(mark, bytes) else b"", np.uint8).copy()

    def _inspect(self, key: int) -> None:
        super()._inspect(key)
        if self._calls >= self._due:
            self._due = 2 * self._calls
            self._see_constants()

    def verify(self) -> None:
        """Raise BrokenPromiseError if the plan cannot be trusted."""
        super().verify()
        self._see_constants()

    def _see_constants(self) -> None:
        classes = self._bench.changed_classes()
        if classes:
            raise BrokenPromiseError(
                f"{', '.join(classes)} changed during the plan, which is shared by all copies of the "
                "environment; keep what changes in the environment itself, or pass save= and restore="
            )
        changed = self._bench.changed_constants()
        if changed:
            raise BrokenPromiseError(
                f"{', '.join(changed)} of {type(self._bench.base).__name__} changed during the plan, "
                "but had not while the environment was tried, so all states share it; pass "
                f"changing={changed}"
            )


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
    env.reset(seed=seed)
    return from_gymnasium(env, **{k: v for k, v in settings.items() if k in own})


def check_name(name: str) -> None:
    """Raise unless there can be an environment with this name; none is made.

    Only `make` can resolve a name without a version, or a module of the user's.
    """
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


def _actions(
    space: Any, given: Sequence[Hashable] | None
) -> tuple[tuple[Hashable, ...], Callable[[Any], Any] | None]:
    """The actions to choose from, and what to make of one for the environment."""
    kind = type(space).__name__
    listed = None if given is None else _listed(given)
    if kind == "Discrete":
        first = int(space.start)
        return tuple(range(first, first + int(space.n))) if listed is None else listed, None
    convert = partial(np.asarray, dtype=space.dtype)
    if listed is not None:
        return listed, convert
    if kind in ("MultiDiscrete", "MultiBinary") and len(space.shape) == 1:
        counts = np.asarray(space.nvec) if kind == "MultiDiscrete" else np.full(space.shape, 2)
        starts = np.asarray(getattr(space, "start", np.zeros_like(counts)))
        if np.prod(counts.astype(float)) <= _MOST_COMBINATIONS:
            ranges = [range(a, a + n) for a, n in zip(starts.tolist(), counts.tolist(), strict=True)]
            return tuple(itertools.product(*ranges)), convert
    raise ValueError(
        f"the action space {space} is not a small discrete one; list the actions to choose from: "
        "actions=[(-1.0,), (0.0,), (1.0,)]"
    )


def _listed(given: Sequence[Hashable]) -> tuple[Hashable, ...]:
    """Actions of a list or an array, made hashable if they are arrays or lists themselves."""

    def plain(action: Any) -> Any:
        if isinstance(action, np.ndarray | np.generic):
            action = action.tolist()
        return tuple(map(plain, action)) if isinstance(action, list) else action

    return tuple(map(plain, given))


def _mask_of(env: Any) -> Callable[[Any], Any]:
    """A function of the unwrapped environment that gives its mask of actions."""
    base = env.unwrapped
    if callable(getattr(base, "action_masks", None)):
        return lambda env: env.action_masks()
    if callable(getattr(base, "get_available_actions", None)):
        return lambda env: np.isin(range(int(env.action_space.n)), env.get_available_actions())
    if callable(getattr(base, "action_mask", None)) and hasattr(base, "s"):
        return lambda env: env.action_mask(env.s)
    raise ValueError(
        f"{_name(env)} has no method action_masks, get_available_actions or action_mask(state); pass "
        "mask=, a function of the unwrapped environment that returns one truth value for each action"
    )


def _own_range(env: Any) -> tuple[float, float] | None:
    """The range that older environments state themselves, if it is finite."""
    stated = vars(env.unwrapped).get("reward_range", getattr(type(env.unwrapped), "reward_range", None))
    if stated is None or not np.isfinite(stated).all():
        return None
    return checks.reward_range(stated)


def _tried(
    build: Callable[..., Workbench],
    changing: frozenset[str],
    labels: tuple[Hashable, ...],
    successors: int | None,
    reward_range: tuple[float, float] | None,
) -> tuple[Workbench, Preflight]:
    """A bench and what was seen on it, built again if something changes that was not copied."""
    while True:
        bench = build(changing=changing)
        report = examine(
            bench,
            labels,
            draws=_PREFLIGHT_DRAWS if bench.by_content else _KEYED_DRAWS,
            successors=successors,
            reward_range=reward_range,
            seed=0,
            seconds=_PREFLIGHT_SECONDS,
        )
        if changing.issuperset(report.changed):
            return bench, report
        changing |= frozenset(report.changed)


Table = dict[int, dict[int, list[tuple[float, int, float, bool]]]]


def _published(env: Any) -> Table | None:
    """The table that an environment publishes, if it holds for the environment as it is wrapped."""
    base = getattr(env, "unwrapped", env)
    wrappers = {type(layer).__name__ for layer in all_layers(env)[:-1]}
    # Taxi's fickle passenger changes its mind outside the table.
    if not wrappers <= TRANSPARENT | {TIME_LIMIT} or getattr(base, "fickle_passenger", False):
        return None
    given = getattr(base, "P", None)
    try:
        table = {
            int(s): {
                int(a): [(float(p), int(to), float(r), bool(end)) for p, to, r, end in outcomes]
                for a, outcomes in _numbered(row)
            }
            for s, row in _numbered(given)
        }
    except (TypeError, ValueError):
        return None
    return table if table and sorted(table) == list(range(len(table))) else None


def _numbered(rows: Any) -> Any:
    """Pairs of a number and its entry, of a dictionary or a sequence."""
    return rows.items() if hasattr(rows, "items") else enumerate(rows)


def _shows_states(env: Any, states: int) -> bool:
    """Whether observations are the states of the table, as far as their space shows."""
    space = env.observation_space
    return type(space).__name__ == "Discrete" and int(space.start) == 0 and int(space.n) == states


def _check_table(env: Any, table: Table) -> None:
    """Raise if the environment departs from its table in some draws."""
    shows_states = _shows_states(env, len(table))
    tells_states = hasattr(env.unwrapped, "s")
    if not (shows_states or tells_states):
        return
    labels, convert = _actions(env.action_space, None)
    bench = Workbench(
        env,
        actions=labels,
        convert=convert,
        key=observation_key if shows_states else None,
        time_limit=False,
    )
    rng = np.random.default_rng(0)
    observation, state = bench.reset(rng)
    for _ in range(_PREFLIGHT_DRAWS):
        action = labels[int(rng.integers(len(labels)))]
        place = bench.ask(state, lambda base: int(base.s)) if tells_states else int(observation)
        observation, successor, reward, ended = bench.observe(state, action, rng)
        arrived = bench.base.s if tells_states else observation
        outcomes = table.get(place, {}).get(action, [])  # type: ignore[call-overload]
        if (int(arrived), float(reward), bool(ended)) not in [outcome[1:] for outcome in outcomes]:
            raise BrokenPromiseError(
                f"the table of {_name(env)} says that action {action!r} in state {place} leads to "
                f"{outcomes}, but it led to state {arrived} with reward {reward}; pass table=False"
            )
        if shows_states and int(observation) != int(arrived):
            raise BrokenPromiseError(
                f"{_name(env)} was in state {arrived} of its table and showed {observation!r}; pass "
                "table=False"
            )
        if successor is None:
            observation, successor = bench.reset(rng)
        state = successor
    report = examine(
        bench,
        labels,
        draws=_KEYED_DRAWS,
        successors=None,
        reward_range=None,
        seed=0,
        seconds=_PREFLIGHT_SECONDS,
    )
    if report.problems:
        raise BrokenPromiseError(
            f"{_name(env)} does not do what its table says:\n"
            + "\n".join(f"- {problem}" for problem in report.problems)
            + "\nPass table=False"
        )


def _table(
    env: Any,
    table: Table,
    successors: int | None,
    reward_range: tuple[float, float] | None,
    mask: bool | Callable[[Any], Any],
) -> GymnasiumTable:
    """The exact model. Transitions that terminate lead to one more state, the end."""
    end = len(table)
    actions = 1 + max(a for row in table.values() for a in row)
    width = max(len(outcomes) for row in table.values() for outcomes in row.values())
    shape = (end + 1, actions, width)
    probabilities, rewards = np.zeros(shape), np.zeros(shape)
    to = np.zeros(shape, np.int64)
    available = np.zeros(shape[:2], np.bool_)
    for s, row in table.items():
        for a, outcomes in row.items():
            available[s, a] = bool(outcomes)
            for k, (p, successor, reward, terminated) in enumerate(outcomes):
                probabilities[s, a, k] = p
                to[s, a, k] = end if terminated else successor
                rewards[s, a, k] = reward
    possible = rewards[probabilities > 0.0]
    if reward_range is None:
        reward_range = _range_of(possible)
    rewards[probabilities == 0.0] = reward_range[0]
    if mask is not False:
        available &= _masks(env, mask, available)
    model = GymnasiumTable(
        env,
        probabilities,
        rewards,
        successors=to,
        terminal=[end],
        available=available,
        reward_range=reward_range,
    )
    if successors is not None and model.successors is not None and successors < model.successors:
        raise ValueError(
            f"successors={successors}, but the environment's table has {model.successors} of some "
            "pair; leave it out"
        )
    return model


def _range_of(rewards: NDArray[np.float64]) -> tuple[float, float]:
    """Lowest and highest reward; 0 and the reward if there is only one, or 0 and 1 if that is 0."""
    low, high = float(rewards.min()), float(rewards.max())
    if low < high:
        return low, high
    return (min(low, 0.0), max(high, 0.0)) if low != 0.0 else (0.0, 1.0)


def _masks(
    env: Any, mask: bool | Callable[[Any], Any], available: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """What the mask allows in each state, and all in states where it allows nothing."""
    base = env.unwrapped
    if mask is not True or not callable(getattr(base, "action_mask", None)):
        raise ValueError(
            f"a table takes mask=True, for environments with a method action_mask(state); "
            f"{_name(env)} {'has one' if hasattr(base, 'action_mask') else 'has none'}. For your own "
            "mask, pass table=False"
        )
    masks = available.copy()
    for state in range(len(available) - 1):
        allowed = np.asarray(base.action_mask(state), np.bool_)
        if allowed.any():
            masks[state] = allowed
    return masks
