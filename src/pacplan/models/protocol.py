"""The Model protocol: what a planner may ask of a problem."""

from collections.abc import Callable
from itertools import repeat
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


class BrokenPromiseError(ValueError):
    """A model did what it had promised not to do: a reward out of range, too many successors, ..."""


class Session(Protocol):
    """A model made ready for one plan: states become integers, and kernels get a handle.

    Attributes:
        handle: what kernels see of it (`pacplan.models.handles`).
        slow: whether a call to the model runs Python code.
        labels: the actions as the user has them, `labels[state][index]`, the state as its integer; None
            if the indices are they.
        error: what the model's own code raised during the last aborted call, if anything.
    """

    handle: Any
    slow: bool
    labels: Any
    error: BaseException | None

    @property
    def states(self) -> list[Any] | None:
        """The states by their integer; None if the integers are the states."""

    def encode(self, state: Any) -> int:
        """The integer of a state."""

    def label(self, key: int, action: int) -> Any:
        """The user's action behind an index, in the state of an integer."""

    def agree(self, state: Any, actions: tuple[Any, ...]) -> None:
        """Offer these actions in a state; raises BrokenPromiseError if the model now says otherwise."""

    def offered(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many actions each of these integers offers; 0: it is no state.

        Asked of what a file names as states.
        """

    def stop_at(self, deadline: float | None) -> None:
        """Abort calls made after this reading of `time.perf_counter`."""

    def interrupt(self) -> None:
        """Abort the call under way, or the next one, if the model can."""

    def diagnose(self, key: int, action: int | None, h: int) -> None:
        """After a failed call, make sure that `error` holds what was raised, if anything.

        `action` is None if the call was for the number of actions.
        """

    def verify(self) -> None:
        """Raise BrokenPromiseError if the model was seen to differ from what the plan assumed."""

    def remember(self) -> None:
        """Record from now on what `memory` returns."""

    def memory(self) -> dict[str, NDArray[Any]]:
        """What a checkpoint needs besides the search itself; names begin with "session."."""

    def recall(self, memory: dict[str, NDArray[Any]]) -> None:
        """Restore what `memory` returned, in a new session for the same plan."""

    def close(self) -> None:
        """Release what the plan held."""


class CompiledSession:
    """What the sessions of all models with compiled calls share: nothing is left to do."""

    slow = False
    states: list[Any] | None = None

    def __init__(self, handle: Any) -> None:
        self.handle = handle
        self.error: BaseException | None = None

    def encode(self, state: Any) -> int:
        """The state itself: states are integers already."""
        return int(state)

    def offered(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """By the table."""
        counts = self.handle.table.action_counts
        states = np.clip(keys, 0, len(counts) - 1)
        return np.where(keys == states, counts[states], 0)

    def stop_at(self, deadline: float | None) -> None:
        """Nothing: the search watches its deadline."""

    def interrupt(self) -> None:
        """Nothing: chunks are short."""

    def diagnose(self, key: int, action: int | None, h: int) -> None:
        """Nothing: tables do not raise."""

    def agree(self, state: Any, actions: tuple[Any, ...]) -> None:
        """Nothing: tables do not change."""

    def verify(self) -> None:
        """Nothing: tables do not change, and states are numbers."""

    def remember(self) -> None:
        """Nothing: the search holds everything."""

    def memory(self) -> dict[str, NDArray[Any]]:
        """Nothing: the search holds everything."""
        return {}

    def recall(self, memory: dict[str, NDArray[Any]]) -> None:
        """Nothing: the search holds everything."""

    def close(self) -> None:
        """Nothing is held."""


@runtime_checkable
class Model(Protocol):
    """A Markov decision process that can be sampled: the only thing that planners see of a problem.

    Attributes:
        successors: B, the largest number of successors of any pair: next states, and the end of the
            episode, which is one however it comes about. None if it is not known. With B = 1 a pair
            always leads to the same state, or always to an end; what it pays may still be random.
        max_actions: K, the largest number of actions of any state; None if it is not known.
        same_actions: whether every state offers the same actions.
        reward_range: lowest and highest reward.
        random_rewards: whether some pair may pay different rewards, with one successor or with several;
            False says that every pair always pays the same. None if it is not known.
        may_end: whether an episode may end early; rewards after its end are zero.
        steps: number of steps for which a non-stationary model is defined; None: any number.
        two_player: whether it is a game: two players move in turn, the first to gain the most, the
            second to let the first gain the least.

    A model may say more about itself: see `Facts`.
    """

    successors: int | None
    max_actions: int | None
    same_actions: bool
    reward_range: tuple[float, float]
    random_rewards: bool | None
    may_end: bool
    steps: int | None
    two_player: bool

    def initial_state(self) -> Any:
        """The state to plan from if the user names none; raises ValueError if there is none."""

    def actions(self, state: Any) -> tuple[Any, ...]:
        """The actions available in a state; raises if the state is unknown or nothing can be done."""

    def open(self, seed: np.random.SeedSequence) -> Session:
        """Start a session for one plan.

        Kernels draw from a stream that the planner gives them; a model that draws outside of them does
        so from the first child of `seed`.
        """


class Facts(NamedTuple):
    """What a model may say about itself. These are the defaults for what it leaves out.

    Attributes:
        states: S, the most states there can be, so that they are met again on other paths; None: not
            known.
        listed: these states; None: not known.
        stationary: whether what follows a state is the same at every step. If `steps` is given it is
            not, whatever is said here.
        known: whether the model is a `Table`.
        compiled: whether drawing from it runs no Python code, so that plans run side by side in
            threads; so it is with a `Table`.
        anywhere: whether it is a `Simulator` whose function may be called in other threads and
            processes, several times at once.
        needs_observations: whether the state of an environment is recognised by what it showed last.
        assumptions: clauses: what everything said about the model depends on. Plans repeat them.
        fingerprint: a function that identifies the model, for checkpoints; by default its repr.
    """

    states: int | None = None
    listed: Any = None
    stationary: bool = True
    known: bool = False
    compiled: bool = False
    anywhere: bool = False
    needs_observations: bool = False
    assumptions: tuple[str, ...] = ()
    fingerprint: Callable[[], str] | None = None


class Table(Model, Protocol):
    """A model that publishes its probabilities and mean rewards, in the form that `TabularMDP` has.

    Its states are 0, 1, ..., `known` is true, and the handle of its sessions has a `TableHandle`.
    """

    states: int
    known: bool

    def sparse(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
        """As `TabularMDP.sparse`."""


def facts(model: Any) -> Facts:
    """What a model says about itself, completed."""
    said = Facts._make(map(getattr, repeat(model), Facts._fields, Facts()))
    stationary = said.stationary and getattr(model, "steps", None) is None
    return said._replace(stationary=stationary, compiled=said.compiled or said.known)


_members = (*Model.__annotations__, "initial_state", "actions", "open")
_checked: set[type] = set()


def check_model(model: Any) -> None:
    """Raise unless `model` has all that a `Model` has. Each class is looked at once."""
    if type(model) in _checked:
        return
    missing = [name for name in _members if not hasattr(model, name)]
    if missing:
        what = instead(model) or f", which has no {', '.join(missing)}"
        raise TypeError(
            "model must be a pacplan model such as TabularMDP or Simulator, got "
            f"{type(model).__name__}{what}"
        )
    _checked.add(type(model))


def instead(thing: Any) -> str:
    """How a model is made of what is none, if that can be told; else nothing."""
    if callable(getattr(thing, "reset", None)) and callable(getattr(thing, "step", None)):
        return "; for a Gymnasium environment pass pacplan.from_gymnasium(env)"
    if callable(thing) and not isinstance(thing, type):
        return "; for a function that draws one transition pass pacplan.Simulator(step, actions=...)"
    return ""
