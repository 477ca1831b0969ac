"""Models given by tables of probabilities and rewards."""

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pacplan.compiled.streams import Stream
from pacplan.core import checks
from pacplan.core.identity import described
from pacplan.models.handles import OUTCOME, TableHandle, draw_from_table, handle_of
from pacplan.models.protocol import Session, Table


class TabularMDP(Table):
    """A Markov decision process given by its tables, with states 0..S-1 and actions 0..A-1.

    Args:
        transitions: probabilities. Dense: shape (S, A, S), or sparse: shape (S, A, B), entry k being
            the probability of `successors[s, a, k]`. With a leading axis of length H the model is
            non-stationary (the paper's p_h): entry h is used after h steps from the root.
        rewards: mean rewards of shape (S, A), or of the shape of `transitions` if they depend on the
            successor; with the same leading axis as `transitions` if it has one.
        successors: states that sparse transitions lead to, integers of the shape of `transitions`.
        terminal: states that end the episode, as indices or as a mask of shape (S,). The reward of the
            transition into them counts, but nothing after it. Their own rows are ignored.
        noise: "none": a transition pays its mean reward; "bernoulli": it pays the highest reward of
            `reward_range` or the lowest, with that mean.
        reward_range: (lowest, highest) reward; every mean must lie in it.
        available: mask of shape (S, A) of the actions that each state offers; all by default.
        initial: state to plan from if none is given.
        two_player: True: a game, for planners of games (`UGapEMCTS`). The players move in turn.

    Raises:
        ValueError: tables of the wrong shape, rows that are not probabilities, rewards out of range.
    """

    def __init__(
        self,
        transitions: ArrayLike,
        rewards: ArrayLike,
        successors: ArrayLike | None = None,
        terminal: ArrayLike | None = None,
        noise: Literal["none", "bernoulli"] = "none",
        *,
        reward_range: tuple[float, float] = (0.0, 1.0),
        available: ArrayLike | None = None,
        initial: int = 0,
        two_player: bool = False,
    ) -> None:
        self.two_player = checks.flag("two_player", two_player)
        self.noise = checks.choice("noise", noise, ("none", "bernoulli"))
        self.reward_range = checks.reward_range(reward_range)
        p = _numbers("transitions", transitions)
        if p.ndim not in (3, 4) or 0 in p.shape:
            raise ValueError(
                "transitions must have shape (S, A, S), or (S, A, B) with successors, "
                f"with an axis of steps before these if it has four; got shape {p.shape}"
            )
        self.steps = p.shape[0] if p.ndim == 4 else None
        self.stationary = self.steps is None
        p = p if p.ndim == 4 else p[np.newaxis]
        states, actions = p.shape[1:3]
        self.states = states
        self._terminal = _terminal_mask(terminal, states)
        self.may_end = bool(self._terminal.any())
        self._available = _available_mask(available, states, actions, self._terminal)
        self.max_actions = int(self._available.sum(-1).max())
        self.same_actions = bool(self._available[~self._terminal].all())
        offered = self._available & ~self._terminal[:, np.newaxis]
        _check_finite("transitions", p, offered)
        single = _array("transitions", transitions).dtype.itemsize < 8
        _check_rows(p, offered, tolerance=1e-6 if single else 1e-8)
        r = self._mean_rewards(rewards, p.shape, offered)
        to = _successor_table(successors, p.shape, states)
        self._probabilities, self._rewards, self._to = _possible(p, r, to, offered)
        self.successors = _most_successors(self._probabilities, self._to, self._terminal)
        vary = _rewards_vary(self._probabilities, self._rewards, self.reward_range)
        self.random_rewards = vary or self.noise != "none"
        self._initial = self._check_state(initial, "initial")
        # A stable sort of "not available" lists the available actions first, in order.
        self._listed = np.argsort(~self._available, axis=-1, kind="stable")
        self._table = self._tables()

    def _mean_rewards(
        self, rewards: ArrayLike, shape: tuple[int, ...], offered: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        r = _numbers("rewards", rewards)
        full = shape if self.steps is not None else shape[1:]
        if r.shape not in (full, full[:-1]):
            raise ValueError(
                f"rewards must have shape {full[:-1]} or {full} to go with the transitions, "
                f"got shape {r.shape}"
            )
        if r.shape == full[:-1]:
            r = r[..., np.newaxis]
        r = np.broadcast_to(r if self.steps is not None else r[np.newaxis], shape).copy()
        _check_finite("rewards", r, offered)
        r[:, ~offered] = self.reward_range[0]
        low, high = self.reward_range
        rounding = checks.REWARD_ROUNDING * (high - low)
        wrong = ~((r >= low - rounding) & (r <= high + rounding))
        if wrong.any():
            step, s, a, k = (int(i) for i in np.argwhere(wrong)[0])
            raise ValueError(
                f"the reward {r[step, s, a, k]} of state {s}, action {a} lies outside "
                f"reward_range=({low}, {high}); pass the range your rewards have"
            )
        return r

    def _tables(self) -> TableHandle:
        outcomes = np.zeros(self._probabilities.shape, OUTCOME)
        cumulative = np.cumsum(self._probabilities, axis=-1)
        # Everything from the last possible outcome on gets probability 1, against rounding.
        possible = self._probabilities > 0
        last = possible.shape[-1] - 1 - np.argmax(possible[..., ::-1], axis=-1)
        outcomes["cumulative"] = np.where(
            np.arange(possible.shape[-1]) >= last[..., np.newaxis], 1.0, cumulative
        )
        outcomes["reward"] = self._rewards
        outcomes["state"] = self._to
        outcomes["ended"] = self._terminal[self._to]
        counts = self._available.sum(-1).astype(np.int32)
        low, high = self.reward_range
        listed = self._listed[np.newaxis, :, :, np.newaxis]
        return TableHandle(
            np.take_along_axis(outcomes, listed, axis=2),
            counts,
            self.steps is not None,
            self.noise == "bernoulli",
            low,
            high - low,
        )

    def _check_state(self, state: Any, name: str = "state") -> int:
        index = checks.integer(name, state, least=0)
        if index >= self.states:
            raise ValueError(f"{name} must be one of 0..{self.states - 1}, got {index}")
        return index

    def initial_state(self) -> int:
        """The state given as `initial`."""
        return self._initial

    def actions(self, state: Any) -> tuple[int, ...]:
        """The actions available in a state."""
        index = self._check_state(state)
        if self._terminal[index]:
            raise ValueError(f"state {index} is terminal: there is nothing to decide in it")
        return tuple(np.flatnonzero(self._available[index]).tolist())

    def step(
        self, state: int, action: int, rng: np.random.Generator | Stream, h: int = 0
    ) -> tuple[int, float, bool]:
        """One draw, in Python: (next state, reward, terminated), with the same law as planners see."""
        available = self.actions(state)
        if action not in available:
            raise ValueError(f"state {state} has no action {action!r}; it has {available}")
        if self.steps is not None and not 0 <= h < self.steps:
            raise ValueError(f"h must lie in 0..{self.steps - 1}, got {h}")
        index = available.index(action)
        table = self._table._replace(outcomes=self._table.outcomes.view(np.recarray))
        successor, reward, flag = draw_from_table(table, state, index, h, rng)
        return int(successor), float(reward), bool(flag)

    def dense(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Expected rewards (..., S, A) and transition probabilities (..., S, A, S).

        Transitions out of the problem (into terminal states, or from them) are left out, so rows may
        sum to less than one. Only non-stationary models have the leading axis of steps.
        """
        rewards, probabilities, to = self.sparse()
        full = np.zeros((*probabilities.shape[:-1], self.states))
        index = np.indices(probabilities.shape[:-1])
        for k in range(probabilities.shape[-1]):
            np.add.at(full, (*index, to[..., k]), probabilities[..., k])
        return rewards, full

    def sparse(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
        """Expected rewards (..., S, A), probabilities and successors (..., S, A, B), as in `dense`.

        Actions that a state does not offer have reward minus infinity.
        """
        expected = (self._probabilities * self._rewards).sum(-1)
        going_on = np.where(self._terminal[self._to], 0.0, self._probabilities)
        going_on[:, self._terminal] = 0.0
        expected[:, self._terminal] = 0.0
        expected[:, ~self._available & ~self._terminal[:, np.newaxis]] = -np.inf
        if self.steps is None:
            return expected[0], going_on[0], self._to[0]
        return expected, going_on, self._to

    def open(self, seed: np.random.SeedSequence) -> Session:
        """Start a session for one plan."""
        # Here, not before: a model may have been pickled in a process where kernels are compiled.
        table = self._table
        return Session(handle_of(table=table), None if self.same_actions else self._listed)

    def fingerprint(self) -> str:
        """What identifies this model: its tables."""
        return f"{self!r} {self.two_player} {described(tuple(self._table))}"

    def __repr__(self) -> str:
        steps = "" if self.steps is None else f", steps={self.steps}"
        return (
            f"TabularMDP(states={self.states}, max_actions={self.max_actions}, "
            f"successors={self.successors}, reward_range={self.reward_range}, "
            f"noise={self.noise!r}{steps})"
        )


def _array(name: str, value: ArrayLike) -> NDArray[Any]:
    try:
        return np.asarray(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array: {error}") from None


def _numbers(name: str, value: ArrayLike) -> NDArray[np.float64]:
    array = _array(name, value)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be an array of real numbers, got an array of {array.dtype}")
    return array.astype(np.float64)


def _whole_numbers(name: str, value: ArrayLike) -> NDArray[np.int64]:
    array = _array(name, value)
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"{name} must hold integers, got an array of {array.dtype}")
    return array.astype(np.int64)


def _check_finite(name: str, table: NDArray[np.float64], offered: NDArray[np.bool_]) -> None:
    """Raise for a NaN or an infinity in the rows of an offered action; table[step, s, a, ...]."""
    wrong = ~np.isfinite(table) & offered.reshape(offered.shape + (1,) * (table.ndim - 3))
    if wrong.any():
        s, a = (int(i) for i in np.argwhere(wrong)[0][1:3])
        raise ValueError(f"{name} has a NaN or an infinity at state {s}, action {a}")


def _terminal_mask(terminal: ArrayLike | None, states: int) -> NDArray[np.bool_]:
    mask = np.zeros(states, np.bool_)
    if terminal is None:
        return mask
    given = _array("terminal", terminal)
    if given.dtype == np.bool_:
        if given.shape != (states,):
            raise ValueError(f"the mask terminal must have shape ({states},), got {given.shape}")
        return given.copy()
    indices = _whole_numbers("terminal", terminal)
    if indices.ndim != 1 or (indices < 0).any() or (indices >= states).any():
        raise ValueError(f"terminal must be a list of states in 0..{states - 1}, got {terminal!r}")
    mask[indices] = True
    return mask


def _available_mask(
    available: ArrayLike | None, states: int, actions: int, terminal: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    if available is None:
        return np.ones((states, actions), np.bool_)
    mask = _array("available", available)
    if mask.dtype != np.bool_ or mask.shape != (states, actions):
        raise ValueError(
            f"available must be a mask of booleans of shape ({states}, {actions}), "
            f"got {mask.dtype} of shape {mask.shape}"
        )
    stuck = ~mask.any(-1) & ~terminal
    if stuck.any():
        raise ValueError(
            f"state {int(np.flatnonzero(stuck)[0])} offers no action; make it terminal or give it one"
        )
    return mask.copy()


def _check_rows(p: NDArray[np.float64], offered: NDArray[np.bool_], tolerance: float) -> None:
    rows = p[:, offered]
    if (rows < 0).any():
        _, row, _ = (int(i) for i in np.argwhere(rows < 0)[0])
        s, a = (int(i) for i in np.argwhere(offered)[row])
        raise ValueError(
            f"transitions has a negative probability, {rows.min()}, at state {s}, action {a}"
        )
    sums = rows.sum(-1)
    wrong = np.abs(sums - 1.0) > tolerance
    if wrong.any():
        step, row = (int(i) for i in np.argwhere(wrong)[0])
        s, a = (int(i) for i in np.argwhere(offered)[row])
        raise ValueError(
            f"the transition probabilities of state {s}, action {a} sum to {sums[step, row]}, not 1"
        )


def _successor_table(
    successors: ArrayLike | None, shape: tuple[int, ...], states: int
) -> NDArray[np.int64]:
    if successors is None:
        if shape[-1] != states:
            raise ValueError(
                f"transitions without successors must be dense, of shape (S, A, S); got "
                f"{states} states but {shape[-1]} columns. For sparse transitions pass successors"
            )
        return np.broadcast_to(np.arange(states), shape)
    to = _whole_numbers("successors", successors)
    if to.shape not in (shape, shape[1:]):
        raise ValueError(f"successors must have the shape of transitions, got shape {to.shape}")
    if (to < 0).any() or (to >= states).any():
        raise ValueError(f"successors must be states in 0..{states - 1}, got {to.min()}..{to.max()}")
    return np.broadcast_to(to, shape)


def _possible(
    p: NDArray[np.float64], r: NDArray[np.float64], to: NDArray[np.int64], offered: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """The tables with possible outcomes first, cut to the length of the longest row of these."""
    p = np.where(offered[np.newaxis, :, :, np.newaxis], p, 0.0)
    p = p / np.maximum(p.sum(-1, keepdims=True), 1e-300)
    order = np.argsort(p == 0.0, axis=-1, kind="stable")
    order = order[..., : max(1, int((p > 0).sum(-1).max()))]
    return (
        np.take_along_axis(p, order, -1),
        np.take_along_axis(r, order, -1),
        np.take_along_axis(to, order, -1),
    )


def _most_successors(p: NDArray[np.float64], to: NDArray[np.int64], terminal: NDArray[np.bool_]) -> int:
    """B: most distinct possible successors of a pair. All ends of an episode count as one."""
    impossible = np.iinfo(np.int64).max
    outcome = np.where(terminal[to], -1, to)
    outcome = np.sort(np.where(p > 0, outcome, impossible), axis=-1)
    first = np.ones(outcome.shape, np.bool_)
    first[..., 1:] = outcome[..., 1:] != outcome[..., :-1]
    return max(1, int((first & (outcome != impossible)).sum(-1).max()))


def _rewards_vary(
    p: NDArray[np.float64], r: NDArray[np.float64], reward_range: tuple[float, float]
) -> bool:
    """Whether some pair has possible outcomes with different rewards, by more than rounding."""
    spread = np.where(p > 0, r, -np.inf).max(-1) - np.where(p > 0, r, np.inf).min(-1)
    return bool((spread > checks.REWARD_ROUNDING * (reward_range[1] - reward_range[0])).any())
