"""Environments of Gymnasium as models: exact tables if they publish one, else simulators."""

from collections.abc import Callable, Sequence
from typing import Any

from pacplan.core import checks
from pacplan.models.actions import actions_of
from pacplan.models.consistency import examine
from pacplan.models.environments import GymnasiumSimulator
from pacplan.models.layers import TIME_LIMIT, all_layers
from pacplan.models.protocol import BrokenPromiseError
from pacplan.models.published import GymnasiumTable, check_table, published, table_of

_DRAWS = 200
_SECONDS = 1.0
_ALL_SEEING = (
    "it is planned for someone who knows the simulator's whole state, also what observations hide"
)


def from_gymnasium(
    env: Any,
    *,
    successors: int | None = None,
    reward_range: tuple[float, float] | None = None,
    actions: Sequence[Any] | Callable[[Any], Sequence[Any]] | None = None,
    states: int | None = None,
    table: bool = True,
    check: bool = True,
) -> "GymnasiumTable | GymnasiumSimulator":
    """Make a model of a Gymnasium environment; the documentation has a page about them.

        env = gymnasium.make("CartPole-v1")
        env.reset(seed=0)
        model = pacplan.from_gymnasium(env, successors=1, reward_range=(0, 1))
        env.step(planner.plan(model).action)

    `planner.plan(model)` plans from the current state of `env`, and `planner.plan(model,
    model.state_of(other))` from that of another environment of the same kind. Planning does not change
    the environment.

    An environment that publishes its transitions as `env.unwrapped.P`, as FrozenLake does, becomes an
    exact `TabularMDP`. Any other becomes a simulator, which restores a private copy to the requested
    state and steps it. So its state must be in attributes that can be pickled. States are the same if
    their pickles are, so the plan is for a player who sees what an observation hides.

    Args:
        env: the environment. Wrappers apply, except those that only check, record, draw or limit time.
        successors: B, the largest number of next states of a state and action; 1 for deterministic
            environments such as CartPole and MountainCar. None: unknown; `model.check().successors`
            counts those seen in some draws.
        reward_range: lowest and highest reward. Needed unless there is a table.
        actions: the actions to choose from, any objects that the environment takes. By default all
            actions of its space, if there are at most 5,000: Discrete, MultiDiscrete, MultiBinary, and
            Dict and Tuple of these; in pyRDDLGym all that the domain admits in a state. For a
            continuous space, list some actions: tuples and lists become arrays of the space's type. Or
            a function of the unwrapped environment that lists the actions of its current state.
            `plan.action` is what `env.step` takes.
        states: the maximum number of distinct states. Once `Atlas` has seen as many, it knows that
            there are no others.
        table: False: do not use the table that the environment publishes.
        check: check that states are brought back in full, by a few hundred draws.

    Raises:
        ValueError: something is missing or cannot be copied; the message says what to pass.
        BrokenPromiseError: the check found a promise broken.
    """
    if not all(hasattr(env, name) for name in ("step", "reset", "action_space")):
        raise TypeError(f"env must be a Gymnasium environment, got {type(env).__name__}")
    if hasattr(env, "num_envs"):
        raise TypeError(f"{type(env).__name__} is a vector of environments; pass one of them")
    promised = None if reward_range is None else checks.interval("reward_range", reward_range, "reward")
    found = published(env) if table and actions is None else None
    if found is not None:
        if check:
            check_table(env, found)
        exact = table_of(env, found, promised)
        exact.assumptions = _assumptions(env, exact)
        return exact
    offered, most = actions_of(env, actions)
    model = GymnasiumSimulator(
        env,
        actions=offered,
        max_actions=most,
        successors=successors,
        states=states,
        reward_range=promised or (0.0, 1.0),
    )
    if check or promised is None:
        report = examine(model, draws=_DRAWS, seconds=_SECONDS)
        if promised is None:
            raise ValueError(
                "pass reward_range=(lowest, highest), the known range of rewards. Some draws paid from "
                f"{report.rewards[0]:g} to {report.rewards[1]:g}"
            )
        if report.problems:
            raise BrokenPromiseError(
                f"{type(env.unwrapped).__name__} does not do what the model promises: "
                f"{report.problems[0]}"
            )
    model.assumptions = _assumptions(env, model)
    return model


def _assumptions(env: Any, model: Any) -> tuple[str, ...]:
    """What everything said about the model depends on, in words."""
    stated = ["the saved state of the environment is all that its future depends on", _ALL_SEEING]
    if isinstance(model, GymnasiumTable):
        stated[0] = "the environment behaves as its table says"
        space = env.observation_space
        if type(space).__name__ == "Discrete" and (space.start, space.n) == (0, model.states - 1):
            stated.pop()  # Observations are the states of the table.
    return *stated, *(
        f"the limit of {layer._max_episode_steps} steps of an episode is not reached"
        for layer in all_layers(env)
        if type(layer).__name__ == TIME_LIMIT
    )


def make(name: str, seed: int | None = 0, **settings: Any) -> GymnasiumTable | GymnasiumSimulator:
    """A model of a registered environment, reset.

    Args:
        name: as for `gymnasium.make`.
        seed: for the environment's `reset`.
        settings: for `from_gymnasium` those that it has, the others for `gymnasium.make`.
    """
    try:
        import gymnasium
    except ImportError:
        raise ImportError(
            f"{name!r} needs Gymnasium, which is not installed: pip install pacplan[gym]"
        ) from None
    own = from_gymnasium.__kwdefaults__ or {}
    try:
        env: Any = gymnasium.make(name, **{k: v for k, v in settings.items() if k not in own})
    except gymnasium.error.Error as error:
        raise ValueError(f"cannot make {name!r}: {error}") from error
    env.reset(seed=seed)
    return from_gymnasium(env, **{k: v for k, v in settings.items() if k in own})
