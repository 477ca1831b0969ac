"""What `pacplan verify` catches: planners whose bounds were made too narrow on purpose.

    python3 dev.py python benchmarks/sabotage.py                 some minutes
    python3 dev.py python benchmarks/sabotage.py --plans 300     a first look

A bound that may fail with probability delta costs log(1/delta) nats of evidence. Each sabotage takes
some nats off one of the costs. The table shows on which family it is caught first, by which check, and
after how many plans of that planner on that family, at the confidence of a whole run.
"""

import argparse
import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

from pacplan.algorithms.bracket.search import BracketSearch
from pacplan.algorithms.canopy.search import CanopySearch
from pacplan.bounds import thresholds
from pacplan.testing import FALSE_ALARM, FAMILIES, PLANNERS, Verdict, clopper_pearson, verify

_STEP = 25


Edit = Callable[[Any], None]


@contextmanager
def _edited(search: Any, of: str, edit: Edit) -> Iterator[None]:
    """Let the searches of a planner start from another record, of settings or of levels."""
    honest = search.__init__

    def cut(self: Any, *asked: Any) -> None:
        honest(self, *asked)
        self.arrays[of] = self.arrays[of].copy()
        edit(self.arrays[of])

    with mock.patch.object(search, "__init__", cut):
        yield


def _larger(search: Any, nats: float, *names: str) -> AbstractContextManager[None]:
    """Shares of delta are larger than they are, by so many nats."""

    def edit(settings: Any) -> None:
        for name in names:
            settings[name] *= math.exp(nats)

    return _edited(search, "settings", edit)


def _cheaper(nats: float, of: str, name: str) -> AbstractContextManager[None]:
    """What Bracket's evidence costs is so many nats less than it is."""

    def edit(records: Any) -> None:
        records[name] -= nats

    return _edited(BracketSearch, of, edit)


def bracket_above(nats: float) -> AbstractContextManager[None]:
    """Bracket's bounds from above: the product of bets along the optimal policy is too cheap."""
    return _cheaper(nats, "settings", "log_share")


def bracket_joint(nats: float) -> AbstractContextManager[None]:
    """What Bracket proves of two actions at once is too cheap; the bounds of each are honest."""
    return _cheaper(nats, "settings", "log_joint")


def bracket_sets(nats: float) -> AbstractContextManager[None]:
    """Bracket's bounds from above: the sets of transitions are too small."""
    return _cheaper(nats, "levels", "price")


def bracket_below(nats: float) -> AbstractContextManager[None]:
    """Bracket's bounds from below: bets on returns need to win too little."""
    return _larger(BracketSearch, nats, "delta_exploit")


@contextmanager
def _lemma(rewards: float, transitions: float) -> Iterator[None]:
    honest = thresholds._lemma

    def cut(setting: Any) -> Any:
        found = honest(setting)
        return replace(
            found,
            reward=lambda n: (found.reward(n) - rewards).clip(min=0.0),
            transition=lambda n: (found.transition(n) - transitions).clip(min=0.0),
        )

    with mock.patch.object(thresholds, "_lemma", cut):
        yield


def mdp_gape_rewards(nats: float) -> AbstractContextManager[None]:
    """MDP-GapE's confidence sets of mean rewards are too small."""
    return _lemma(nats, 0.0)


def mdp_gape_transitions(nats: float) -> AbstractContextManager[None]:
    """MDP-GapE's confidence sets of transitions are too small."""
    return _lemma(0.0, nats)


def canopy_above(nats: float) -> AbstractContextManager[None]:
    """Canopy's bounds from above: bets on the values of trees need to win too little."""
    return _larger(CanopySearch, nats, "delta_tree", "delta_forced_tree")


def canopy_below(nats: float) -> AbstractContextManager[None]:
    """Canopy's bounds from below: bets on returns need to win too little."""
    return _larger(CanopySearch, nats, "delta_exploit", "delta_forced")


SABOTAGES: dict[Callable[[float], AbstractContextManager[None]], tuple[str, tuple[str, ...]]] = {
    bracket_above: ("bracket", ("anytime", "strict", "deep")),
    bracket_below: ("bracket", ("anytime", "strict", "deep")),
    bracket_joint: ("bracket", ("anytime", "strict", "deep")),
    bracket_sets: ("bracket", ("joint", "mixed")),
    canopy_above: ("canopy", ("anytime", "continuous")),
    canopy_below: ("canopy", ("anytime", "continuous")),
    mdp_gape_rewards: ("mdp-gape", ("lucky", "unlucky")),
    mdp_gape_transitions: ("mdp-gape", ("joint", "mixed")),
}
"""Each with the planner that it spoils and the families that are tried."""


def checks_of_a_run() -> int:
    """How many promises a whole run judges."""
    return sum(
        len(promise.shares)
        for family in FAMILIES.values()
        for entry in PLANNERS.values()
        if entry.suits(family) and (promise := entry.promise(family)).judged
    )


def caught_after(verdict: Verdict) -> int | None:
    """The plans after which a check was sure, at the confidence of a whole run; None: never."""
    tail = FALSE_ALARM / checks_of_a_run()
    for plans in range(_STEP, verdict.plans + 1, _STEP):
        failures = sum(case < plans for case in verdict.cases)
        if clopper_pearson(failures, plans, tail)[0] > verdict.promised:
            return plans
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plans", type=int, default=1000, help="of the planner on each family")
    parser.add_argument("--nats", type=float, nargs="+", default=[1.0, 2.0, 4.0])
    given = parser.parse_args()
    print("| too cheap | nats | caught after | by | fails | promised |")
    print("| --- | ---: | ---: | --- | ---: | ---: |")
    for sabotage, (planner, families) in SABOTAGES.items():
        for nats in given.nats:
            with sabotage(nats):
                verdicts = [
                    verdict
                    for name in families
                    for verdict in verify(planner, families=[name], plans=given.plans).verdicts
                ]
            found = [(plans, v) for v in verdicts if (plans := caught_after(v)) is not None]
            row = "- | - | - | -"
            if found:
                plans, first = min(found, key=lambda pair: pair[0])
                row = (
                    f"{plans:,} | {first.family}, {first.check} "
                    f"| {100 * first.rate:.3g} % | {100 * first.promised:.3g} %"
                )
            print(f"| {sabotage.__name__} | {nats:g} | {row} |", flush=True)


if __name__ == "__main__":
    main()
