"""Does an environment do what its model promises? A quick look before planning."""

import time
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pacplan.core import checks
from pacplan.core.keys import same
from pacplan.core.notes import pass_on
from pacplan.models import forms
from pacplan.models.bench import Bench, EnvState, chosen

_STATES_A_WALK = 8
_REPEATS = 4
_STEPS_BETWEEN = 2
# States that look alike: how many of them are kept, and the least (if there are any) and largest number
# of pairs that are compared.
_TWINS = 4
_LEAST_COMPARED, _MOST_COMPARED = 2, 32
_FUTURES = 4
_STEPS_AHEAD = 4
# Problems of bringing an environment back.
_UNCOPIED = ("classes", "hidden", "replay", "snapshots")
# How many futures are drawn if chance may play a part, and how much the frequencies of one of them must
# differ. With the same law they do so with probability at most 4^-16 = 2e-10 in the first, quick look,
# and at most 2 exp(-256 * 0.3^2) = 2e-10 in the second.
_LOOKS = ((16, 1.0), (256, 0.3))


@dataclass(frozen=True)
class Preflight:
    """What some draws from an environment have shown.

    Attributes:
        draws: how many there were.
        successors: most distinct next states seen after one state and action. The promise B must be
            at least this; it may have to be more, since rare successors take many draws to see.
        rewards: lowest and highest reward seen.
        problems: broken promises, in words; none if all is well.
        notes: what is good to know but breaks no promise, in words.
        changed: attributes that had been taken for constant and are not.
        uncopied: whether the environment, brought back, was seen to differ from what it had been.
    """

    draws: int
    successors: int
    rewards: tuple[float, float]
    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    uncopied: bool = False

    def __str__(self) -> str:
        low, high = self.rewards
        seen = (
            f"{self.draws} draws: at most {self.successors} successors of a state and action, "
            f"rewards from {low:g} to {high:g}"
        )
        problems = [f"problem: {problem}" for problem in self.problems]
        return "\n".join([seen, *problems, *(f"note: {note}" for note in self.notes)])


def examine(
    bench: Bench,
    *,
    draws: int,
    successors: int | None,
    reward_range: tuple[float, float] | None,
    seed: int,
    seconds: float = float("inf"),
) -> Preflight:
    """Play random walks, in one go and by snapshots, and draw from each state several times.

    It ends after a number of draws or seconds, whichever comes first, with at least one whole walk.
    """
    deadline = time.perf_counter() + seconds
    look = _Look(bench, successors, reward_range, np.random.default_rng(seed), deadline)

    walked = False
    while not walked or (look.drawn < draws and not look.late()):
        for _ in look.walk():
            if walked and (look.drawn >= draws or look.late()):
                break
        walked = True
    changed = bench.changed_classes()
    if changed:
        look.problems["classes"] = (
            f"{', '.join(changed)} changed, which all copies of the environment share; keep what "
            "changes in the environment itself, or pass save= and restore="
        )
    if bench.cost is not None:
        look.notes["cost"] = bench.cost
    if bench.unidentified is not None:
        look.notes["unidentified"] = (
            f"{bench.unidentified}: there is no way to see what that holds, so no state is equal to "
            "another. Name it in ignore= if the future does not depend on it, or pass key="
        )
    return Preflight(
        look.drawn + look.looked_ahead,
        look.most,
        (float(look.lowest), float(look.highest)),
        tuple(look.problems.values()),
        tuple(look.notes.values()),
        tuple(sorted(look.changed)),
        not look.problems.keys().isdisjoint(_UNCOPIED),
    )


class _Look:
    """What was seen so far."""

    def __init__(
        self,
        bench: Bench,
        successors: int | None,
        reward_range: tuple[float, float] | None,
        rng: np.random.Generator,
        deadline: float,
    ) -> None:
        self._bench, self._rng = bench, rng
        self._deadline = deadline
        self._successors, self._range = successors, reward_range
        self._alike: dict[Hashable, list[tuple[Hashable, EnvState]]] = {}
        self._compared = 0
        self._taken: list[Any] = []
        self.problems: dict[str, str] = {}
        self.notes: dict[str, str] = {}
        self.changed: set[str] = set()
        self.lowest, self.highest, self.most = np.inf, -np.inf, 1
        self.drawn, self.looked_ahead = 0, 0

    def late(self) -> bool:
        """Whether the time is up."""
        return time.perf_counter() >= self._deadline

    def walk(self) -> Iterable[None]:
        """A random walk; pauses after each state."""
        bench, rng = self._bench, self._rng
        seed = int(rng.integers(2**32))
        lucks = rng.random(_STATES_A_WALK).tolist()
        streams = [(luck, np.random.default_rng([seed, k])) for k, luck in enumerate(lucks)]
        played = bench.play(np.random.default_rng(seed), streams)
        plan = [action for action, *_ in played]
        hidden = bench.hidden_randomness(rng, lucks)
        if hidden is not None:
            self.problems["hidden"] = hidden
        observation, state = bench.reset(np.random.default_rng(seed))
        self._meet(observation, state)
        for k, (_, *expected) in enumerate(played):
            self._draw(state, plan[k])
            self._disturb()
            found = bench.observe(state, plan[k], np.random.default_rng([seed, k]))
            if found[1] is not None:
                self._meet(found[0], found[1])
            self._disturb()
            again = bench.observe(state, plan[k], np.random.default_rng([seed, k]))
            self.drawn += 2
            # Now, since the next reset may undo it.
            self.changed.update(bench.changed_constants())
            self._replayed(state, plan[k], found, again)
            if not _alike((found[0], *found[2:]), tuple(expected)):
                self.problems["snapshots"] = (
                    f"after a reset and the actions {plan[: k + 1]}, with the same random numbers, the "
                    f"environment gave {expected} when played in one go, but {(found[0], *found[2:])} "
                    f"when it was brought back to each state on the way. {_UNSEEN}"
                )
            if found[1] is None:
                return
            state = found[1]
            yield

    def _disturb(self) -> None:
        """Play something else, which must make no difference to the states that are kept."""
        steps = [(luck, self._rng) for luck in self._rng.random(_STEPS_BETWEEN)]
        self.drawn += len(self._bench.play(self._rng, steps))

    def _draw(self, state: EnvState, action: Any) -> None:
        """Draw several times from a state: rewards and successors."""
        where = f"action {action!r} in state {state!r}"
        seen: dict[Hashable, EnvState | None] = {}
        for _ in range(_REPEATS):
            successor, reward, ended = self._bench.draw(state, action, self._rng)
            self.drawn += 1
            self.lowest, self.highest = min(self.lowest, reward), max(self.highest, reward)
            if not np.isfinite(reward) or _outside(reward, self._range):
                self.problems["reward"] = f"{where} paid {reward}, outside reward_range={self._range}"
            try:
                seen.setdefault(None if ended else successor, successor)
            except Exception as error:
                pass_on(error)
                self.problems["key"] = (
                    f"the key of what follows {where} does not hash and compare "
                    f"({type(error).__name__}: {error}); return tuples, strings or numbers from key="
                )
        self.most = max(self.most, len(seen))
        if self._successors is not None and len(seen) > self._successors:
            self.problems["successors"] = (
                f"{where} has led to {len(seen)} different states, but successors={self._successors}"
                + self._apart([found for found in seen.values() if found is not None])
            )

    def _apart(self, found: Sequence[EnvState]) -> str:
        """What some states differ in, in words."""
        if not self._bench.by_content or len(found) < 2:
            return ""
        names = {name for other in found[1:] for name in self._bench.differences(found[0], other)}
        return f". They differ in {', '.join(sorted(names))}; {self._bench.if_too_many}"

    def _replayed(self, state: EnvState, action: Any, first: Any, again: Any) -> None:
        """Is a state brought back in full? The same random numbers must have the same outcome."""
        alike = _alike((first[0], *first[2:]), (again[0], *again[2:]))
        if alike and (self._bench.unidentified is not None or _equal(first[1], again[1])):
            return
        differ = ""
        if alike and first[1] is not None and again[1] is not None:
            differ = self._apart((first[1], again[1]))
        self.problems["replay"] = (
            f"action {action!r} in state {state!r}, replayed with the same random numbers, gave "
            f"{first} and then {again}{differ}. {_UNSEEN}"
        )

    def _meet(self, observation: Any, state: EnvState) -> None:
        """Compare a state with others that are taken for the same, or that look the same."""
        bench = self._bench
        try:
            group = forms.form(observation) if bench.by_content else state.key
            others = self._alike.setdefault(group, [])
        except Exception as error:
            pass_on(error)
            return  # It has no form, or does not hash, which is reported elsewhere.
        mark = bench.identify(state.saved)
        if len(others) >= _TWINS or any(mark == known for known, _ in others):
            return
        others.append((mark, state))
        for _, other in others[:-1]:
            told = "alike" in self.problems or "alike" in self.notes
            late = self._compared >= _LEAST_COMPARED and self.late()
            if told or late or self._compared >= _MOST_COMPARED:
                return
            self._compared += 1
            difference = self._different_futures(other, state)
            if difference is None:
                continue
            names = ", ".join(bench.differences(other, state))
            if bench.by_content:
                self.notes["alike"] = (
                    f"states with the same observation have different futures: they differ in {names}, "
                    f"and {difference}. They are different states here: it is planned for someone who "
                    "knows the simulator's whole state"
                )
            else:
                self.problems["alike"] = (
                    f"states with the same key have different futures: {other!r} and {state!r} differ "
                    f"in {names}, and {difference}. Leave key= out, or make it tell them apart"
                )

    def _different_futures(self, one: EnvState, other: EnvState) -> str | None:
        """What shows that two states have different futures, in words; None: nothing did."""
        rng = self._rng
        offered = [list(self._bench.actions(state)) for state in (one, other)]
        if not same(*offered):
            return f"they offer the actions {offered[0]} and {offered[1]}"
        count = len(offered[0])
        sequences = [[(i + 0.5) / count] for i in range(min(count, _STATES_A_WALK))]
        sequences += [list(rng.random(_STEPS_AHEAD)) for _ in range(_FUTURES)]
        for sequence in sequences:
            seed = int(rng.integers(2**32))
            if self._future(one, sequence, seed) != self._future(other, sequence, seed):
                # Perhaps they only use random numbers in a different way.
                for samples, apart in _LOOKS:
                    if samples > _LOOKS[0][0] and self.late():
                        return None
                    frequent = [self._frequencies(state, sequence, samples) for state in (one, other)]
                    kinds = zip(*frequent, strict=True)
                    if any(_differ(a, b, apart * samples) for a, b in kinds):
                        return f"the actions {self._taken} have different outcomes"
        return None

    def _future(self, state: EnvState, lucks: Sequence[float], seed: int) -> tuple[Any, ...]:
        """What some actions lead to: observations or keys, None at the end, and rewards.

        The actions are chosen by their places, from 0 to 1, in the list of those that a state offers.
        """
        bench, rng = self._bench, np.random.default_rng(seed)
        future: list[tuple[Hashable, float]] = []
        self._taken = []
        for luck in lucks:
            action = chosen(bench.actions(state), luck)
            self._taken.append(action)
            observation, successor, reward, _ = bench.observe(state, action, rng)
            self.looked_ahead += 1
            if successor is None:
                future.append((None, float(reward)))
                break
            shown = _form_or_none(observation) if bench.by_content else successor.key
            future.append((shown, float(reward)))
            state = successor
        return tuple(future)

    def _frequencies(
        self, state: EnvState, sequence: Sequence[float], samples: int
    ) -> tuple[Counter[Any], Counter[Any]]:
        """How often each future, and each sequence of rewards, came in some draws."""
        seeds = self._rng.integers(2**32, size=samples).tolist()
        futures = [self._future(state, sequence, seed) for seed in seeds]
        rewards = [tuple(reward for _, reward in future) for future in futures]
        return Counter(futures), Counter(rewards)


_UNSEEN = (
    "The environment has state or randomness that copies do not see (a module's own random generator, "
    "an object outside Python, an array that is a view of another): pass save= and restore=, or "
    "check=False if only its randomness is its own"
)


def _differ(one: Counter[Any], other: Counter[Any], by: float) -> bool:
    return any(abs(one[x] - other[x]) >= by for x in one.keys() | other.keys())


def _alike(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Whether (observation, reward, ended) are the same, as far as can be seen."""
    return one[1:] == other[1:] and _form_or_none(one[0]) == _form_or_none(other[0])


def _equal(one: EnvState | None, other: EnvState | None) -> bool:
    try:
        return one == other
    except Exception as error:
        pass_on(error)
        return True  # Keys that do not compare are reported elsewhere.


def _form_or_none(observation: Any) -> bytes | None:
    try:
        return forms.form(observation)
    except forms.UnidentifiedError:
        return None


def _outside(reward: float, reward_range: tuple[float, float] | None) -> bool:
    if reward_range is None:
        return False
    low, high = reward_range
    rounding = checks.REWARD_ROUNDING * (high - low)
    return not low - rounding <= reward <= high + rounding
