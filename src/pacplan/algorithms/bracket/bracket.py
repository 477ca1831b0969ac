"""Bracket: the algorithm on one page. docs/bracket.md has the proof; names are those of the proof."""

from math import sqrt
from typing import Any, Literal

import numpy as np

from pacplan.algorithms.betting.planner import BettingPlanner
from pacplan.algorithms.betting.returns import (
    FIRST_BET,
    accounts_have_room,
    bet_exploit,
    bet_forced,
    note_return,
    raise_floor,
)
from pacplan.algorithms.bracket.constants import ADVICE, PRIOR, TIE
from pacplan.algorithms.bracket.outcomes import add_unvisited, fill_in, note_outcome
from pacplan.algorithms.bracket.pool import note_in_pool, refresh_estimates, score_actions, update_pool
from pacplan.algorithms.bracket.records import EXPLOIT, EXPLORE, Search
from pacplan.algorithms.bracket.schedule import adapt, concluded, decide, imagine, optimistic
from pacplan.algorithms.bracket.search import BracketSearch
from pacplan.algorithms.bracket.upper_bound import (
    largest_gap,
    refresh_arm,
    refresh_node,
    refresh_pair,
    renew_gap,
)
from pacplan.algorithms.common.confidence import check_known, declared
from pacplan.bounds.product import log_stake
from pacplan.compiled.jit import inlined
from pacplan.core import checks
from pacplan.engine import episodes
from pacplan.engine.calls import BAD_ANSWER, CHUNK_DONE, REWARD_VARIES, break_promise
from pacplan.engine.driver import Limits
from pacplan.engine.query import Query
from pacplan.engine.root_rules import argmax_at_random, largest, least_gap
from pacplan.engine.tree import NONE, add_node, untried_action
from pacplan.models import handles
from pacplan.models.knowledge import Bounds, Function
from pacplan.models.protocol import Model, Session


class Bracket(BettingPlanner):
    """Proven answers for a fraction of the calls: bounds only where a proof needs them.

    Above, U(a) holds for the optimal action because the evidence holds along one optimal policy,
    whichever it is: the evidence on all its pairs is one product of bets, each raised to the
    probability of reaching its pair, so there is no union bound over the tree. Below, L(a) comes from
    bets on returns of episodes declared beforehand to do what seems best. The two may be multiplied,
    which bounds how much better a may be than b by less than U(a) - L(b). The search stops when that
    bound, for all a != b, is at most epsilon for some b, which it returns. The documentation has the
    proof.

    Where states recur at many steps, `Atlas` mostly needs fewer calls; where every successor is new,
    `Canopy` does.

    **What is guaranteed.** With probability at least 1 - delta, at all times, L(a) <= Q(a) for every
    action of the state, and Q(a*) <= U(a*) for an optimal one (the upper bound of another action may
    lie below its value). So max L <= V <= max U, and whenever the search ends, the action returned is
    `plan.gap`-optimal in the problem of H steps (`plan.gap` may be less than U - L). For the infinite
    horizon add w gamma^H / (1 - gamma), w the width of the rewards; `target="infinite"` does so and
    stops at epsilon in all.

    Args:
        epsilon: how far from optimal the answer may be, in the model's reward units. 0 stops only when
            the action is proven optimal, so it needs a budget or a deadline.
        delta: probability with which the guarantee may fail.
        gamma: discount in [0, 1]; 1 needs an explicit horizon.
        horizon: number of steps H; by default as for `MDPGapE`, and for `target="infinite"` the least
            whose tail is at most 15 % of epsilon. With epsilon = 0 it follows from the budget; with a
            time limit alone, it is the smallest H with gamma^H <= 1/100.
        goal: "action", or "value": stops when the interval of the state's value is at most 2 epsilon
            wide, so that its middle, `plan.value`, is within epsilon.
        rewards: "unknown"; "deterministic": a pair always pays the same reward, so one visit reveals it
            (checked on every visit).
        transitions: "unknown"; "deterministic": every pair has one successor (checked). If both are
            declared, nothing is left to chance: that is for `OPD`.
        target: "horizon": epsilon-optimal in the problem of H steps; "infinite": in the
            infinite-horizon discounted problem.
        value_bounds: (lower, upper), functions of a state and the number h of steps taken, or numbers,
            that bound its optimal value over the H - h remaining steps, in the model's units. (Only the
            upper one helps Bracket.) The guarantee depends on them.
        value_range: (low, high), bounds on every discounted return from any state on, if you
            know them. A game that is won or lost once has returns between -1 and 1, however long it
            takes. The returns of whole episodes are checked. The guarantee depends on them.
        policy: a policy that may be good: a function of a state, or of a state and the number h of
            steps taken, that returns an action, or None for no advice. Episodes follow it while it
            earns more than the search's own choice. It only steers.
        value: guesses of optimal values over the H - h remaining steps, in the model's units, a
            function like `policy`, for what was never tried. They only steer.
    """

    name = "bracket"

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        gamma: float,
        horizon: int | None = None,
        goal: Literal["action", "value"] = "action",
        rewards: Literal["unknown", "deterministic"] = "unknown",
        transitions: Literal["unknown", "deterministic"] = "unknown",
        target: Literal["horizon", "infinite"] = "horizon",
        value_bounds: Bounds | None = None,
        value_range: tuple[float, float] | None = None,
        policy: Function | None = None,
        value: Function | None = None,
    ) -> None:
        super().__init__(
            epsilon=epsilon,
            delta=delta,
            gamma=gamma,
            horizon=horizon,
            target=target,
            value_bounds=value_bounds,
            value_range=value_range,
            policy=policy,
            value=value,
        )
        self.goal = checks.choice("goal", goal, ("action", "value"))
        self.rewards = checks.choice("rewards", rewards, ("unknown", "deterministic"))
        self.transitions = checks.choice("transitions", transitions, ("unknown", "deterministic"))
        if self.target == "infinite" and self.goal == "value":
            raise ValueError(
                'goal="value" is for the problem of H steps; for an infinite horizon use '
                'target="horizon" and add what the tail can be worth'
            )

    def check_query(self, query: Query, limits: Limits) -> None:
        model = query.model
        super().check_query(query, limits)
        check_known(self, model)
        one = self.horizon_for(model, limits.budget) == 1 or model.successors == 1
        if self.rewards != "unknown" and (one or self.transitions != "unknown"):
            raise ValueError(
                "nothing is random, because rewards and transitions are declared: use OPD, or "
                "ValueIteration for a table, or remove rewards="
            )

    def start(self, query: Query, session: Session) -> BracketSearch:
        return BracketSearch(self, query, session)

    def assumptions(self, model: Model, search: Any) -> tuple[str, ...]:
        return declared(self, model)


# The algorithm, in the order of an episode.


@episodes.make_root.register(Search)
def _make_root(search: Any, model: Any, state: int, ties: Any) -> int:
    settings, actions = search.settings[0], search.root.size
    root = search.tree.nodes[add_node(search.tree, state, actions)]
    root.branch = NONE
    status = fill_in(search, model, 0, 0)
    for action in range(actions):
        arm = search.root[action]
        arm.upper = root.cap
        raise_floor(arm, settings.floor)
        arm.estimate = PRIOR * root.cap
        arm.penalty, arm.asked, arm.pair = settings.least, settings.log_share, NONE
    return int(status)


@episodes.finished.register(Search)
def _finished(search: Any, model: Any, most_calls: int, ties: Any) -> bool:
    """Whether some b has a gap of at most epsilon, and is then the answer.

    Its gap is the largest over a != b of U(a) - L(b), or of gap(a, b) where that is kept and is less.
    For the value goal, max U - max L <= 2 epsilon.
    """
    root, settings = search.root, search.settings[0]
    if settings.value_goal:
        return bool(largest(root.upper) - largest(root.lower) <= 2.0 * settings.epsilon)
    best, least = least_gap(root.upper, root.lower)
    for b in range(root.size):
        if root[b].exploits > FIRST_BET and largest_gap(search, b) < least:
            best = b
            least = largest_gap(search, b)
    if least > settings.epsilon:
        return False
    search.decision[0].best = best
    return True


@episodes.begin_episode.register(Search)
def _begin_episode(search: Any, model: Any, ties: Any) -> None:
    """EXPLOIT the best estimate b to raise L(b), or EXPLORE its rival to lower U, or play a FORCED one.

    An episode that explores is imagined first, up to where a call is worth most. Then lambda of the
    action to be played follows the evidence.
    """
    update_pool(search)
    decide(search, ties)
    decision = search.decision[0]
    decision.target = imagine(search, ties) if decision.kind == EXPLORE else NONE
    adapt(search)


@episodes.select.register(Search)
def _select(search: Any, at: int, h: int, ties: Any) -> int:
    """At the root the action decided on; below it what the user advises, the best estimate or W."""
    decision, step = search.decision[0], search.path[h]
    # What was imagined before the first call.
    decision.foreseen = step.child if h < decision.target else NONE
    if h <= decision.target and step.pair != NONE:
        return int(step.pair)
    if h == 0:
        action, link = decision.play, search.root[decision.play].pair
    elif decision.kind == EXPLOIT and score_actions(search, at, h) > 0:
        action = _best_estimate(search, at, h, ties)
        link = search.scratch.link[action]
    else:
        action, link = NONE, optimistic(search, at, ties)
    if link != NONE:
        return int(link)
    if action == NONE:
        action = untried_action(search.tree, at, ties)
    return int(add_unvisited(search, at, action, h))


@inlined
def _best_estimate(search: Any, at: int, h: int, ties: Any) -> int:
    """The action with the best of the estimates in `scratch`, or the one advised.

    That is taken if what was seen leaves room for it to be as good. As both are tried more often in
    this state, there is less room.
    """
    node, pool, score = search.tree.nodes[at], search.pool, search.scratch.score
    advised = search.decision[0].advised
    best = argmax_at_random(score[: node.actions], NONE, TIE, ties)
    if advised == handles.NO_ADVICE:
        return int(best)
    tried = 0
    if node.place >= 0:
        first = pool.states[node.place].first
        tried = min(pool.pairs[first + best].n, pool.pairs[first + advised].n)
    room = ADVICE * search.levels[h].span / sqrt(1.0 + tried)
    return int(advised if score[best] - score[advised] <= room else best)


@episodes.known_child.register(Search)
def _known_child(search: Any, link: int) -> int:
    return int(search.decision[0].foreseen)


@episodes.skip_call.register(Search)
def _skip_call(search: Any, link: int) -> bool:
    """Whether a reward is revealed: then the last call would tell nothing, and it counts without."""
    settings, decision, pair = search.settings[0], search.decision[0], search.tree.pairs[link]
    if not settings.told or pair.n == 0:
        return False
    decision.paid += settings.gamma ** (settings.horizon - 1) * pair.reward
    decision.earned += decision.discount * pair.reward
    decision.discount = 0.0
    if decision.kind != EXPLORE:
        note_return(settings, decision.paid)
    return True


@episodes.transition.register(Search)
def _transition(
    search: Any, model: Any, h: int, successor: int, ended: bool, ties: Any
) -> tuple[int, int]:
    """Bet on the call of a pair: on x = r - d(s'), reward and successor together.

    What was known before the call fixes d = gamma (max f - f) and whether the episode is cut off after
    it.
    """
    at, link, reward = search.path[h].node, search.path[h].pair, search.path[h].reward
    settings, pair, decision = search.settings[0], search.tree.pairs[link], search.decision[0]
    cut = decision.kind == EXPLORE and pair.n < settings.cut
    x = settings.offset + settings.slope * reward
    if not settings.told:
        pair.reward += x
    elif pair.n == 0:
        pair.reward = x
        if at == 0:
            raise_floor(search.root[pair.action], x)
    elif abs(pair.reward - x) > 1e-9:
        problem, state = search.problem[0], search.tree.nodes[at].state
        paid = problem.lowest + problem.width * reward
        return NONE, int(break_promise(search, REWARD_VARIES, state, pair.action, h, paid))
    child, drift, last = NONE, 0.0, h + 1 == settings.horizon
    if not last:
        child, drift, status = note_outcome(search, model, at, link, h, successor, ended)
        if status != CHUNK_DONE:
            return NONE, status
    on = (1.0 if settings.told else x) - drift
    for j in range(search.stakes.shape[1]):
        search.bets[link, j] += log_stake(search.stakes[h, j], on)
    pair.n += 1
    note_in_pool(search, at, pair.action, h, successor, ended, child, x)
    decision.paid += settings.gamma**h * x
    decision.earned += decision.discount * x
    decision.discount *= settings.gamma
    if cut:
        return child, episodes.BREAK_OFF
    if ended or last:
        return child, CHUNK_DONE
    node = search.tree.nodes[child]
    if concluded(search, h + 1, node.estimate, ties):
        return child, episodes.CONCLUDE
    if decision.guided:
        decision.advised = handles.advice(model, int(node.state), h + 1, int(node.actions))
        if decision.advised == handles.BAD_ADVICE:
            return child, int(break_promise(search, BAD_ANSWER, node.state, 0, h + 1, 0.0))
    return child, CHUNK_DONE


@episodes.update.register(Search)
def _update(search: Any, model: Any, length: int, ties: Any) -> None:
    """Renew W and the estimates on the path, from the last step to the first, then U and the gaps."""
    decision, arm = search.decision[0], search.root[search.decision[0].play]
    for h in range(length - 1, -1, -1):
        at, link = search.path[h].node, search.path[h].pair
        # Nothing was bet on steps that were imagined.
        refresh_pair(search, at, link, h, arm.penalty, h < decision.target)
        refresh_node(search, at)
        refresh_estimates(search, at, link, h)
    arm.estimate = search.tree.pairs[arm.pair].estimate
    refresh_arm(search, decision.play)


@episodes.backup.register(Search)
def _backup(search: Any, length: int, rest: float, ties: Any) -> None:
    """Bet on the return, if the episode was declared to exploit or to be forced before it began."""
    settings, decision, root = search.settings[0], search.decision[0], search.root
    if decision.kind == EXPLORE:
        return
    after, play = search.levels[length].ended, decision.play
    earned = decision.earned + decision.discount * after
    # One that a coin has ended has no return, and no discount. If the last reward is known, it has none
    # left either, and its return was noted then. (If gamma is 0, no step leaves any.)
    if decision.discount > 0.0 or settings.gamma == 0.0:
        note_return(settings, decision.paid + settings.gamma**length * after)
    if decision.kind != EXPLOIT:
        bet_forced(search, play, earned)
        return
    bet_exploit(search, play, earned, decision.guided)
    if root[play].exploits == FIRST_BET + 1:
        search.gaps[root[play].account] = np.inf
    for a in range(root.size):
        renew_gap(search, a, play)


@episodes.has_room.register(Search)
def _has_room(search: Any) -> bool:
    pool, settings, steps = search.pool, search.settings[0], search.settings[0].horizon
    pairs = pool.used[1] + (steps + 1) * settings.most_actions
    fits = pool.used[0] + steps < pool.states.size and pool.used[2] + steps < pool.outcomes.size
    return bool(
        (settings.pool_full or (fits and pairs <= pool.pairs.size))
        and search.scratch.size > settings.widest + steps
        and accounts_have_room(search)
    )
