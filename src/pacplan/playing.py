"""Episodes that an agent played: what was done in each step, why, and what it brought."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pacplan.core.words import estimated

if TYPE_CHECKING:
    from pacplan.agent import Decision


@dataclass(frozen=True, eq=False)
class Episode:
    """An episode: its decisions in order, and the reward that followed each.

    Attributes:
        decisions: state, action and plan of each step.
        rewards: one for each decision.
        terminated: whether the episode came to an end, rather than to the limit of its steps.
    """

    decisions: tuple["Decision", ...]
    rewards: NDArray[np.float64]
    terminated: bool

    @property
    def total(self) -> float:
        """The sum of the rewards."""
        return float(self.rewards.sum())

    def to_html(self, path: str | os.PathLike[str]) -> Path:
        """Write a page with each step: the state, the actions' values, what was taken and ruled out.

        Raises:
            ValueError: nothing can be written to the path.
        """
        from pacplan.views.page import check_page, episode_page

        target = check_page(path)
        target.write_text(episode_page(self), "utf-8")
        return target

    def __str__(self) -> str:
        end = "terminated" if self.terminated else "was cut off"
        return f"{len(self.rewards)} steps, total reward {estimated(self.total)}; the episode {end}"


@dataclass(frozen=True, eq=False)
class Played:
    """Episodes that an agent played.

    Attributes:
        episodes: the episodes in order.
    """

    episodes: tuple[Episode, ...]

    @property
    def returns(self) -> NDArray[np.float64]:
        """The total reward of each episode, without discount."""
        return np.array([episode.total for episode in self.episodes])

    @property
    def seconds(self) -> NDArray[np.float64]:
        """The time of each decision."""
        return np.array([d.plan.seconds for episode in self.episodes for d in episode.decisions])

    def __str__(self) -> str:
        returns, n = self.returns, len(self.episodes)
        error = f" ± {estimated(float(returns.std(ddof=1)) / n**0.5)} (standard error)" if n > 1 else ""
        low, high = estimated(float(returns.min())), estimated(float(returns.max()))
        steps = len(self.seconds) / n
        return (
            f"{n} episode{'s' * (n > 1)}: mean return {estimated(float(returns.mean()))}{error}, "
            f"from {low} to {high}. {steps:.1f} steps an episode, "
            f"{1e3 * float(self.seconds.mean()):.1f} ms a decision."
        )
