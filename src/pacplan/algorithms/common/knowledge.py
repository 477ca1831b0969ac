"""What a user may declare about a model's rewards and transitions."""

from typing import Literal

from pacplan.models.protocol import Model

Knowledge = Literal["unknown", "deterministic", "known"]
KNOWLEDGE = ("unknown", "deterministic", "known")


def check_known(model: Model, rewards: str, transitions: str) -> None:
    """Refuse to take from a model what it does not publish."""
    if not model.known and "known" in (rewards, transitions):
        raise ValueError(
            "rewards='known' and transitions='known' need a model that publishes its tables, "
            f"such as TabularMDP; {type(model).__name__} does not"
        )


def known_assumptions(rewards: str, transitions: str) -> tuple[str, ...]:
    """What was declared, in words."""
    declared = (("rewards", rewards), ("transitions", transitions))
    return tuple(f"{what} are {knowledge}" for what, knowledge in declared if knowledge != "unknown")
