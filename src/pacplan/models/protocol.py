"""What a planner may ask of a problem: a model, and its session during one plan."""

from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray


class BrokenPromiseError(ValueError):
    """A model broke a promise: a reward out of range, too many successors, ..."""


class Session:
    """A model made ready for one plan: states become integers, and kernels get a handle.

    As it stands it serves compiled models, whose states are integers already.

    Attributes:
        handle: what kernels see of the model (`pacplan.models.handles`).
        states: the states by their integer; None if the integers are the states.
        labels: the user's actions, `labels[state][index]`, the state as its integer; None: the indices.
        error: what the model's own code raised during the last aborted call, if anything.
        knowledge: user knowledge, kept alive for the kernels.
        deadline: reading of `time.perf_counter` after which calls are aborted.
        saves: whether checkpoints are written.
    """

    states: list[Any] | None = None
    error: BaseException | None = None
    knowledge: Any = None
    deadline: float = inf
    saves: bool = False

    def __init__(self, handle: Any, labels: Any = None) -> None:
        self.handle, self.labels = handle, labels

    def encode(self, state: Any) -> int:
        """The integer of a state."""
        return int(state)

    def label(self, key: int, action: int) -> Any:
        """The user's action behind an index, in the state of an integer."""
        label = action if self.labels is None else self.labels[key][action]
        return int(label) if isinstance(label, np.integer) else label

    def agree(self, state: Any, actions: tuple[Any, ...]) -> None:
        """Offer these actions in a state; raises BrokenPromiseError if the model now says otherwise."""

    def interrupt(self) -> None:
        """Abort the call under way, or the next one, if the model can."""

    def diagnose(self, key: int, action: int | None, h: int) -> None:
        """After a failed call, or if `action` is None a failed count, see to it that `error` is set."""

    def verify(self) -> None:
        """Raise BrokenPromiseError if the model was seen to differ from what the plan assumed."""

    def memory(self) -> dict[str, NDArray[Any]]:
        """What a checkpoint needs besides the search itself; names begin with "session."."""
        return {}

    def recall(self, memory: dict[str, NDArray[Any]]) -> None:
        """Restore what `memory` returned, in a new session for the same plan."""

    def close(self) -> None:
        """Release what the plan held."""
        self.knowledge = None


class Model:
    """A Markov decision process that can be sampled. Planners see nothing else of a problem.

    Models derive from it and replace defaults.

    Attributes:
        successors: B, the largest number of successors of any pair: next states, and the end of the
            episode, which is one however it comes about. None if unknown. With B = 1 a pair
            always leads to the same state, or always to an end; what it pays may still be random.
        max_actions: K, the largest number of actions of any state; None if unknown.
        same_actions: whether every state offers the same actions.
        reward_range: lowest and highest reward.
        random_rewards: whether some pair may pay different rewards, with one successor or with several;
            False: every pair always pays the same. None if unknown.
        may_end: whether an episode may end early; rewards after its end are zero.
        steps: number of steps for which a non-stationary model is defined; None: any number.
        stationary: whether what follows a state is the same at every step.
        two_player: whether it is a game: two players move in turn, the first to gain the most, the
            second to let the first gain the least.
        states: S, the maximum number of states, which then recur on other paths; None if unknown.
        listed: these states; None if unknown.
        known: whether the model is a `Table`.
        compiled: whether drawing from it runs no Python code, so that plans can run in parallel
            threads.
        anywhere: whether it is a `Simulator` whose function can be called in parallel, in threads and
            processes.
        assumptions: clauses: the assumptions behind all these attributes. Plans repeat them.
    """

    successors: int | None = None
    max_actions: int | None = None
    same_actions: bool = False
    reward_range: tuple[float, float] = (0.0, 1.0)
    random_rewards: bool | None = None
    may_end: bool = True
    steps: int | None = None
    stationary: bool = True
    two_player: bool = False
    states: int | None = None
    listed: tuple[Any, ...] | None = None
    known: bool = False
    compiled: bool = False
    anywhere: bool = False
    assumptions: tuple[str, ...] = ()

    def initial_state(self) -> Any:
        """The state to plan from if the user names none; raises ValueError if there is none."""
        raise ValueError("name a state to plan from: pass state=")

    def actions(self, state: Any) -> tuple[Any, ...]:
        """The actions available in a state; raises if the state is unknown or nothing can be done."""
        raise NotImplementedError

    def open(self, seed: np.random.SeedSequence) -> Session:
        """Start a session for one plan.

        Kernels draw from a stream that the planner gives them; a model that draws outside of them does
        so from the first child of `seed`.
        """
        raise NotImplementedError

    def fingerprint(self) -> str:
        """What identifies the model, for checkpoints."""
        return repr(self)


class Table(Model):
    """A model that publishes its probabilities and mean rewards, in the form that `TabularMDP` has.

    Its states are 0, 1, ..., and the handle of its sessions has a `TableHandle`.
    """

    states: int
    known = True
    compiled = True

    def sparse(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
        """As `TabularMDP.sparse`."""
        raise NotImplementedError


def check_model(model: Any) -> None:
    """Raise unless `model` is a model."""
    if not isinstance(model, Model):
        raise TypeError(
            "model must be a pacplan model such as TabularMDP or Simulator, got "
            f"{type(model).__name__}{instead(model)}"
        )


def instead(thing: Any) -> str:
    """How a model is made of what is none, if that can be told; else nothing."""
    if callable(getattr(thing, "reset", None)) and callable(getattr(thing, "step", None)):
        return "; for a Gymnasium environment pass pacplan.from_gymnasium(env)"
    if callable(thing) and not isinstance(thing, type):
        return "; for a function that draws one transition pass pacplan.Simulator(step, actions=...)"
    return ""
