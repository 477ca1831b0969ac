"""Environments that publish their transitions, as exact tables."""

from typing import Any

import numpy as np

from pacplan.models.actions import actions_of
from pacplan.models.copying import EnvCopy
from pacplan.models.layers import TRANSPARENT, all_layers
from pacplan.models.protocol import BrokenPromiseError
from pacplan.models.tabular import TabularMDP

_DRAWS = 200


class GymnasiumTable(TabularMDP):
    """The table of an environment, made by `from_gymnasium`. The last state is the end."""

    _env: Any

    def initial_state(self) -> int:
        """The state that the environment is in now."""
        return self.state_of(self._env)

    def state_of(self, env: Any) -> int:
        """The state that an environment of the same kind is in now."""
        state = getattr(env.unwrapped, "s", None)
        if state is None:
            raise ValueError(
                "the environment has no state yet, or does not show it as env.unwrapped.s; call "
                "env.reset() before planning, or name the state: pass state="
            )
        return self._check_state(int(state))


Table = dict[int, dict[int, list[tuple[float, int, float, bool]]]]


def published(env: Any) -> Table | None:
    """The table that an environment publishes, if it holds for the environment as it is wrapped."""
    base = getattr(env, "unwrapped", env)
    wrappers = {type(layer).__name__ for layer in all_layers(env)[:-1]}
    # Taxi's fickle passenger changes its mind outside the table.
    if not wrappers <= TRANSPARENT or getattr(base, "fickle_passenger", False):
        return None
    try:
        table = {
            int(s): {
                int(a): [(float(p), int(to), float(r), bool(end)) for p, to, r, end in outcomes]
                for a, outcomes in row.items()
            }
            for s, row in base.P.items()
        }
    except (AttributeError, TypeError, ValueError):
        return None
    return table if table and sorted(table) == list(range(len(table))) else None


def check_table(env: Any, table: Table) -> None:
    """Raise if a copy of the environment departs from the table in a random walk."""
    held, rng = EnvCopy(env), np.random.default_rng(0)
    base = held.layers[-1]
    held.reset(rng)
    actions: Any = actions_of(env, None)[0]
    for _ in range(_DRAWS if hasattr(base, "s") else 0):
        place, action = int(base.s), actions[int(rng.integers(len(actions)))]
        _, reward, terminated, truncated, _ = held.step(action, rng)
        found = int(base.s), float(reward), bool(terminated or truncated)
        listed = [outcome[1:] for outcome in table[place].get(action, [])]
        if found not in listed:
            raise BrokenPromiseError(
                f"{type(base).__name__} does not do what its table says: action {action!r} in state "
                f"{place} led to {found}, but the table lists {listed} (state, reward, end). Pass "
                "table=False"
            )
        if terminated or truncated:
            held.reset(rng)


def table_of(env: Any, table: Table, reward_range: tuple[float, float] | None) -> GymnasiumTable:
    """The exact model. Transitions that terminate lead to one more state, the end."""
    end = len(table)
    rows = [
        (s, a, k, p, end if terminated else successor, reward)
        for s, row in table.items()
        for a, outcomes in row.items()
        for k, (p, successor, reward, terminated) in enumerate(outcomes)
    ]
    s, a, k, p, successor, reward = map(np.array, zip(*rows, strict=True))
    probabilities, rewards = np.zeros((2, end + 1, a.max() + 1, k.max() + 1))
    probabilities[s, a, k], rewards[s, a, k] = p, reward
    to = np.zeros(probabilities.shape, np.int64)
    to[s, a, k] = successor
    if reward_range is None:
        possible = rewards[probabilities > 0.0]
        low, high = float(possible.min()), float(possible.max())
        if low == high:  # A range has a width.
            low, high = (min(low, 0.0), max(high, 0.0)) if low else (0.0, 1.0)
        reward_range = low, high
    rewards[probabilities == 0.0] = reward_range[0]
    model = GymnasiumTable(
        probabilities,
        rewards,
        successors=to,
        terminal=[end],
        available=probabilities.any(-1),
        reward_range=reward_range,
    )
    model._env = env
    return model
