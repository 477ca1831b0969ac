"""Models given by tables of probabilities and rewards."""

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pacplan.compiled.streams import Stream
from pacplan.core import checks
from pacplan.core.identity import described
from pacplan.models.handles import OUTCOME, Handle, TableHandle, draw_from_table
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
        self.reward_range = low, high = checks.interval("reward_range", reward_range, "reward")
        p = _array("transitions", transitions, "iuf", "of real numbers")
        # Single numbers are rounded more.
        tolerance = 1e-6 if np.asarray(transitions).dtype.itemsize < 8 else 1e-8
        if p.ndim not in (3, 4) or 0 in p.shape:
            raise ValueError(
                "transitions must have shape (S, A, S), or (S, A, B) with successors, "
                f"with an axis of steps before these if it has four; got shape {p.shape}"
            )
        r = _full_rewards(rewards, p.shape)
        self.steps = p.shape[0] if p.ndim == 4 else None
        self.stationary = self.steps is None
        p, r = (table.astype(np.float64).reshape(-1, *p.shape[-3:]) for table in (p, r))
        self.states = p.shape[1]
        self._terminal = _terminal_mask(terminal, self.states)
        self.may_end = bool(self._terminal.any())
        self._available = _available_mask(available, p.shape[1:3], self._terminal)
        self.max_actions = int(self._available.sum(-1).max())
        self.same_actions = bool(self._available[~self._terminal].all())
        offered = (self._available & ~self._terminal[:, np.newaxis])[..., np.newaxis]
        _refuse_any(
            ~((p >= 0) & np.isfinite(p)) & offered,
            p,
            "transitions has a negative probability, a NaN or an infinity, {value}, at {pair}",
        )
        sums = p.sum(-1, keepdims=True)
        _refuse_any(
            (np.abs(sums - 1.0) > tolerance) & offered,
            sums,
            "the transition probabilities of {pair} sum to {value}, not 1",
        )
        rounding = checks.REWARD_ROUNDING * (high - low)
        _refuse_any(
            ~((r >= low - rounding) & (r <= high + rounding)) & offered,
            r,
            f"the reward {{value}} of {{pair}} lies outside reward_range=({low}, {high}), or is a NaN; "
            "pass the range your rewards have",
        )
        to = _successor_table(successors, p.shape, self.states)
        p = np.where(offered, p, 0.0)
        p /= np.maximum(p.sum(-1, keepdims=True), 1e-300)
        # Possible outcomes first, cut to the length of the longest row of these.
        order = np.argsort(p == 0.0, axis=-1, kind="stable")
        order = order[..., : max(1, int((p > 0).sum(-1).max()))]
        tables = p, np.where(offered, r, low), to
        self._probabilities, self._rewards, self._to = (
            np.take_along_axis(table, order, -1) for table in tables
        )
        self.successors = _most_successors(self._probabilities, self._to, self._terminal)
        # Whether some pair has possible outcomes with different rewards, by more than rounding.
        met = self._probabilities > 0
        highest, lowest = np.where(met, self._rewards, -np.inf), np.where(met, self._rewards, np.inf)
        vary = (highest.max(-1) - lowest.min(-1) > rounding).any()
        self.random_rewards = bool(vary) or self.noise != "none"
        self._initial = self._check_state(initial, "initial")
        # A stable sort of "not available" lists the available actions first, in order.
        self._listed = np.argsort(~self._available, axis=-1, kind="stable")
        self._table = self._tables()

    def _tables(self) -> TableHandle:
        outcomes = np.zeros(self._probabilities.shape, OUTCOME)
        # Everything from the last possible outcome on gets probability 1, against rounding.
        possible = self._probabilities > 0
        reached = np.cumsum(possible, axis=-1) == possible.sum(-1, keepdims=True)
        outcomes["cumulative"] = np.where(reached, 1.0, np.cumsum(self._probabilities, axis=-1))
        outcomes["reward"] = self._rewards
        outcomes["state"] = self._to
        outcomes["ended"] = self._terminal[self._to]
        low, high = self.reward_range
        return TableHandle(
            np.take_along_axis(outcomes, self._listed[np.newaxis, :, :, np.newaxis], axis=2),
            self._available.sum(-1).astype(np.int32),
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

    def sparse(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
        """Expected rewards (..., S, A), probabilities and successors (..., S, A, B).

        Transitions out of the problem (into terminal states, or from them) are left out, so rows may
        sum to less than one. Only non-stationary models have the leading axis of steps. Actions that a
        state does not offer have reward minus infinity.
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
        return Session(Handle(table=table), None if self.same_actions else self._listed)

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


def _array(name: str, value: Any, kinds: str, what: str) -> NDArray[Any]:
    """The value as an array of some kinds of numbers."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array: {error}") from None
    if array.size and array.dtype.kind not in kinds:
        raise TypeError(f"{name} must be an array {what}, got an array of {array.dtype}")
    return array


def _full_rewards(rewards: ArrayLike, shape: tuple[int, ...]) -> NDArray[Any]:
    """Rewards of every transition."""
    r = _array("rewards", rewards, "iuf", "of real numbers")
    if r.shape not in (shape, shape[:-1]):
        raise ValueError(
            f"rewards must have shape {shape[:-1]} or {shape} to go with the transitions, "
            f"got shape {r.shape}"
        )
    return np.broadcast_to(r if r.shape == shape else r[..., np.newaxis], shape)


def _terminal_mask(terminal: ArrayLike | None, states: int) -> NDArray[np.bool_]:
    given = _array("terminal", () if terminal is None else terminal, "iub", "of integers")
    mask = given.dtype == np.bool_
    if mask and given.shape == (states,):
        return given.copy()
    if mask or given.ndim != 1 or not ((given >= 0) & (given < states)).all():
        raise ValueError(
            f"terminal must be a list of states in 0..{states - 1}, or a mask of shape ({states},); "
            f"got {terminal!r} of shape {given.shape}"
        )
    return np.isin(np.arange(states), given)


def _available_mask(
    available: ArrayLike | None, shape: tuple[int, ...], terminal: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    mask = np.ones(shape, np.bool_) if available is None else np.array(available)
    if mask.dtype != np.bool_ or mask.shape != shape:
        raise ValueError(
            f"available must be a mask of booleans of shape {shape}, got {mask.dtype} of shape "
            f"{mask.shape}"
        )
    stuck = ~mask.any(-1) & ~terminal
    if stuck.any():
        raise ValueError(f"state {stuck.argmax()} offers no action; make it terminal or give it one")
    return mask


def _refuse_any(wrong: NDArray[np.bool_], values: NDArray[np.float64], words: str) -> None:
    """Raise if some entry (step, state, action, ...) of a table is wrong."""
    if wrong.any():
        _, state, action, _ = np.argwhere(wrong)[0]
        value = values[wrong][0]
        raise ValueError(words.format(value=value, pair=f"state {state}, action {action}"))


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
    to = _array("successors", successors, "iu", "of integers").astype(np.int64)
    if to.shape not in (shape, shape[1:]):
        raise ValueError(f"successors must have the shape of transitions, got shape {to.shape}")
    if (to < 0).any() or (to >= states).any():
        raise ValueError(f"successors must be states in 0..{states - 1}, got {to.min()}..{to.max()}")
    return np.broadcast_to(to, shape)


def _most_successors(p: NDArray[np.float64], to: NDArray[np.int64], terminal: NDArray[np.bool_]) -> int:
    """B: most distinct possible successors of a pair. All ends of an episode count as one."""
    impossible = terminal.size
    outcome = np.sort(np.where(p > 0, np.where(terminal[to], -1, to), impossible), axis=-1)
    new = np.diff(outcome, axis=-1, prepend=-2) != 0
    return max(1, int((new & (outcome != impossible)).sum(-1).max()))
