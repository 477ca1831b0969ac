"""What notebooks show of a model: what it promises."""

from typing import Any

from pacplan.core.fragments import settings_html
from pacplan.core.words import exactly
from pacplan.models.protocol import facts


def model_html(model: Any, about: str) -> str:
    """The promises of a model, as a table."""
    told = facts(model)
    low, high = model.reward_range
    promises = {
        "states": "not known" if told.states is None else f"{told.states:,}",
        "actions of a state": "depends on the state"
        if model.max_actions is None
        else f"{'' if model.same_actions else 'at most '}{model.max_actions:,}",
        "successors of an action": "not known"
        if model.successors is None
        else f"at most {model.successors:,}",
        "rewards": f"from {exactly(low)} to {exactly(high)}",
        "episodes": "may end" if model.may_end else "never end",
        "steps": "any number" if model.steps is None else f"{model.steps:,}",
        "players": "two" if model.two_player else "one",
    }
    if told.assumptions:
        promises["given that"] = ", ".join(told.assumptions)
    return settings_html(type(model).__name__, about, promises)
