"""What a model has promised, and the errors for broken promises."""

from typing import Any

import numpy as np

from pacplan.core import checks
from pacplan.core.notes import shown
from pacplan.models.protocol import BrokenPromiseError, Model, Session
from pacplan.models.states import advice

# Which promise a model broke.
BAD_REWARD = 1
TOO_MANY_SUCCESSORS = 2
NO_ACTIONS = 3
TOO_MANY_ACTIONS = 4
REWARD_VARIES = 5
ENDED_EARLY = 6
MOVE_PAYS = 7
ENDLESS_GAME = 8
BAD_ANSWER = 9  # of a function of the user's, which raised something
FALSE_BOUND = 10  # on a value, by the user
OUTSIDE = 11  # more states than there can be


# The ground rules of a search: what the model promised, and what the planner did. One record.
PROBLEM = np.dtype(
    [
        ("lowest", np.float64),  # lowest reward
        ("width", np.float64),  # highest reward minus lowest
        ("gamma", np.float64),
        ("successors", np.int64),  # B
        ("most_actions", np.int64),  # K
        ("horizon", np.int64),  # most steps of an episode
        ("pairs_a_step", np.int64),  # most records of pairs that one step takes
        ("may_end", np.bool_),
        ("ties_by_episode", np.bool_),  # whether each episode has its own stream for ties
    ],
    align=True,
)


def problem_of(model: Model, *, successors: int, horizon: int) -> Any:
    """The ground rules of searches of so many steps in a model."""
    low, high = model.reward_range
    problem = np.zeros(1, PROBLEM)
    problem["lowest"], problem["width"], problem["may_end"] = low, high - low, model.may_end
    problem["successors"] = successors
    problem["most_actions"] = model.max_actions or checks.LARGEST
    problem["horizon"] = horizon
    return problem


def broken_promise(
    report: Any, problem: Any, session: Session, deterministic: bool
) -> BrokenPromiseError:
    """The error for a model that broke a promise, from the records of the call and of the promises."""
    promise, key, action, h = (int(report[name]) for name in ("promise", "state", "action", "h"))
    seen = key if session.states is None else session.states[key]
    state = shown(seen)
    where = f"state {state}, step {h}"
    if promise not in (NO_ACTIONS, TOO_MANY_ACTIONS, FALSE_BOUND):
        where = f"state {state}, action {shown(session.label(key, action))}, step {h}"
    excess = f"more than the promised {problem['successors']} successors were seen; raise successors="
    if deterministic:
        excess = "transitions='deterministic', but a second successor was seen"
    low, high = float(problem["lowest"]), float(problem["lowest"] + problem["width"])
    reward, most = report["reward"], problem["most_actions"]
    said = {
        BAD_REWARD: f"the reward {reward} lies outside the promised reward_range=({low}, {high})",
        TOO_MANY_SUCCESSORS: f"{excess}, or {advice(seen)}",
        REWARD_VARIES: f"rewards='deterministic', but this pair paid {reward} after another reward",
        ENDED_EARLY: "the episode ended, but the model promises may_end=False",
        MOVE_PAYS: f"a move that did not end the game paid {reward}; only the last move of a game pays",
        OUTSIDE: f"this led to a state outside the {reward:.0f} states of states=; correct states=",
        ENDLESS_GAME: f"the game is not over after {problem['horizon']} moves; raise the planner's "
        "horizon=",
        FALSE_BOUND: f"the search contradicts the bound {reward} on its value; correct value_bounds= "
        "or value_range=",
    }
    if promise in said:
        return BrokenPromiseError(f"{where}: {said[promise]}")
    return BrokenPromiseError(
        f"the successor {state} offers no action; a transition to such a state must terminate"
        if promise == NO_ACTIONS
        else f"state {state} offers {action} actions, more than the promised {most}"
    )
