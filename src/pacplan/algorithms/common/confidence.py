"""What planners of fixed confidence share: settings, refusals, and the certificate in words."""

import math
from typing import Any, Literal

from pacplan.algorithms.common.horizons import check_steps, default_horizon, horizon_for
from pacplan.algorithms.common.plans import nearly_optimal, value_said
from pacplan.core import checks
from pacplan.core.words import at_least, at_most, complement, exactly
from pacplan.engine.driver import Limits, Snapshot
from pacplan.engine.values import discounted_steps, step_width
from pacplan.models.protocol import Model

# What a user may declare about a model's rewards and transitions.
Declared = Literal["unknown", "deterministic"]
DECLARED = ("unknown", "deterministic")

# A tail of so many times epsilon says nothing of an infinite horizon.
_DWARFS = 10.0


def check_accuracy(epsilon: Any) -> float:
    """Epsilon, at least 0."""
    if isinstance(epsilon, str) and epsilon.endswith("%"):
        raise ValueError(
            f"epsilon={epsilon!r}: only pacplan.plan takes per cent; pass a number in the model's "
            "reward units"
        )
    return checks.at_least_zero("epsilon", epsilon)


def in_reward_units(epsilon: str, width: float) -> float:
    """An accuracy that is given in per cent of a range, such as "5%".

    It has four digits, rounded down, so that it can be written, and is no more than was asked for.
    """
    try:
        part = float(epsilon.removesuffix("%")) / 100.0
    except ValueError:
        part = -1.0
    if not epsilon.endswith("%") or not 0.0 <= part <= 1.0:
        raise ValueError(f"epsilon must be a number, or per cent as in '5%', got {epsilon!r}")
    # Twelve digits first: what sums of doubles are off by is not rounded down.
    return float(at_least(float(f"{part * width:.12g}")))


def check_stops(epsilon: float, limits: Limits) -> None:
    """Refuse a search that nothing would end."""
    if epsilon == 0.0 and not limits.any:
        raise ValueError("epsilon=0 may never stop by itself; pass budget= or time_limit=")


def check_known(planner: Any, model: Model) -> None:
    """Refuse a declaration that the model contradicts."""
    if planner.rewards == "deterministic" and model.random_rewards:
        raise ValueError(
            "rewards='deterministic', but this model's rewards are random; remove rewards="
        )
    if planner.transitions == "deterministic" and model.known and model.successors != 1:
        raise ValueError(
            "transitions='deterministic', but in this model's table some state and action has more "
            "than one successor; remove transitions="
        )


# Part of epsilon that the tail may take, if the answer is for the infinite horizon.
_TAIL = 0.15
# Discount of the last step: less would underflow.
_LEAST_DISCOUNT = 1e-150


class Targeted:
    """A planner with an accuracy: its horizon, for the problem of H steps or the infinite one."""

    epsilon: float
    gamma: float
    target: str = "horizon"
    _horizon: int | None

    @property
    def horizon(self) -> int | None:
        """The number of steps it will plan; None if that depends on whether there is a budget.

        For rewards of a width other than 1 the default is `horizon_for(model)`.
        """
        return self._horizon if self._horizon is not None else self._default_horizon(1.0)

    def horizon_for(self, model: Model, budget: int | None = None) -> int:
        """The number of steps it will plan in `model`: 1 if gamma is 0, since nothing later counts."""
        if self.gamma == 0.0:
            return 1
        if self._horizon is not None:
            return self._horizon
        default = self._default_horizon(step_width(model.reward_range, model.may_end))
        return horizon_for(default, self.gamma, budget)

    def gap_for(self, model: Model, horizon: int) -> float:
        """The gap to stop at in the problem of so many steps."""
        rest = tail(model, self.gamma, horizon) if self.target == "infinite" else 0.0
        return self.epsilon - rest

    def _default_horizon(self, width: float) -> int | None:
        """The default for rewards of a width; None if there is none."""
        if self.epsilon == 0.0:
            return None
        # The paper's default leaves a tail of epsilon / 2.
        part = 2.0 * _TAIL if self.target == "infinite" else 1.0
        return default_horizon(part * self.epsilon / width, self.gamma)

    def check_target(self) -> None:
        """Refuse settings that no horizon suits."""
        if self.target == "infinite" and (self.gamma == 1.0 or self.epsilon == 0.0):
            raise ValueError(
                'target="infinite" needs gamma < 1 and epsilon > 0: every horizon cuts off some rewards'
            )
        if self._horizon is None:
            _ = self.horizon  # Raises if the default would be out of reach.

    def check_reach(self, model: Model, budget: int | None) -> None:
        """Refuse a model in which the horizon is too short for the target, or too long to compute."""
        horizon = self.horizon_for(model, budget)
        if self.target == "infinite":
            check_steps(model, None)
            rest = tail(model, self.gamma, horizon)
            if rest >= self.epsilon:
                raise ValueError(
                    f"horizon={horizon} cuts off up to {at_most(rest)}, which is at least "
                    "epsilon; pass a longer horizon, or none"
                )
        check_steps(model, horizon)
        if self.gamma > 0.0 and self.gamma ** (horizon - 1) < _LEAST_DISCOUNT:
            most = 1 + int(math.log(_LEAST_DISCOUNT) / math.log(self.gamma))
            raise ValueError(
                f"horizon={horizon} with gamma={exactly(self.gamma)} has steps that count for less "
                f"than {_LEAST_DISCOUNT:g}; give a horizon of at most {most}"
            )


def tail(model: Model, gamma: float, horizon: int) -> float:
    """How much actions can differ after H steps: w gamma^H / (1 - gamma), for gamma < 1."""
    return step_width(model.reward_range, model.may_end) * gamma**horizon / (1.0 - gamma)


def certificate(planner: Any, model: Model, horizon: int, snapshot: Snapshot) -> str:
    """What is proven when the search stands as the snapshot says."""
    surely = f"with probability at least {complement(planner.delta)}"
    proven = nearly_optimal(snapshot, horizon)
    if planner.goal == "value":
        return f"{proven}, and {value_said(snapshot)}, {surely}."
    if planner.gamma == 1.0 or model.steps is not None:
        return f"{proven}, {surely}."
    rest = tail(model, planner.gamma, horizon)
    width = step_width(model.reward_range, model.may_end) * discounted_steps(planner.gamma, horizon)
    if rest > _DWARFS * planner.epsilon > 0.0 or rest > width:
        return f"{proven}, {surely}. {_only(planner, model, horizon, rest)}"
    ever = f"within {at_most(max(0.0, snapshot.gap) + rest)} over an infinite horizon"
    return f"{proven} and {ever}, {surely}."


def _only(planner: Any, model: Model, horizon: int, rest: float) -> str:
    """That a certificate says nothing of an infinite horizon, and which horizon it would take."""
    words = f"The certificate covers {horizon} step{'s' * (horizon > 1)} only: later rewards can add"
    if planner.epsilon == 0.0 or planner.gamma == 0.0:
        return f"{words} up to {at_most(rest)}."
    # The quotient of the two could underflow.
    excess = math.log(planner.epsilon) - math.log(rest)
    needed = horizon + math.ceil(excess / math.log(planner.gamma))
    return f"{words} up to {at_most(rest)}. With horizon={needed} they add at most epsilon."


def ranges_assumed(planner: Any, model: Model) -> list[str]:
    """Where the certificate assumes that rewards, values and returns lie, in words."""
    low, high = model.reward_range
    said = [f"rewards lie in [{exactly(low)}, {exactly(high)}]"]
    if getattr(planner, "value_bounds", None) is not None:
        said.append("value_bounds bound the values")
    returns = getattr(planner, "value_range", None)
    if returns is not None:
        said.append(f"returns lie in [{exactly(returns[0])}, {exactly(returns[1])}]")
    return said


def declared(planner: Any, model: Model) -> tuple[str, ...]:
    """What the certificate assumes, in words."""
    knowledge = {name: getattr(planner, name, "unknown") for name in ("rewards", "transitions")}
    b = 1 if knowledge["transitions"] == "deterministic" else model.successors
    said = [] if b is None else [f"every state and action has at most {b} successor{'s' * (b != 1)}"]
    said += ranges_assumed(planner, model)
    said += [f"{name} are {known}" for name, known in knowledge.items() if known != "unknown"]
    if getattr(planner, "merge", "tree") != "tree":
        said.append("equal states have equal futures")
        if model.states is not None and not model.known:
            said.append(f"there are at most {model.states} states")
    return tuple(said)
