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
from functools import partial
from operator import sub
from typing import Any
from unittest import mock

from pacplan.algorithms.bracket.search import BracketSearch
from pacplan.algorithms.canopy.search import CanopySearch
from pacplan.bounds import thresholds
from pacplan.testing import FALSE_ALARM, FAMILIES, PLANNERS, Verdict, clopper_pearson, verify

_STEP = 25

Cut = Callable[[float], AbstractContextManager[None]]


@contextmanager
def _spoilt(kind: Any, array: str, names: str, change: Any, nats: float) -> Iterator[None]:
    """Searches of a planner start from other settings or levels: so many nats cheaper."""
    honest = kind.__init__

    def begin(self: Any, *asked: Any) -> None:
        honest(self, *asked)
        self.arrays[array] = self.arrays[array].copy()
        for name in names.split():
            self.arrays[array][name] = change(self.arrays[array][name], nats)

    with mock.patch.object(kind, "__init__", begin):
        yield


def _larger(share: Any, nats: float) -> Any:
    return share * math.exp(nats)


@contextmanager
def _lemma(rewards: float, transitions: float, nats: float) -> Iterator[None]:
    """MDP-GapE's confidence sets are too small: of mean rewards, or of transitions."""
    honest = thresholds._lemma

    def cut(setting: Any) -> Any:
        found = honest(setting)
        return replace(
            found,
            reward=lambda n: (found.reward(n) - nats * rewards).clip(min=0.0),
            transition=lambda n: (found.transition(n) - nats * transitions).clip(min=0.0),
        )

    # Plans share what follows from the thresholds.
    thresholds._shared.cache_clear()
    with mock.patch.object(thresholds, "_lemma", cut):
        yield
    thresholds._shared.cache_clear()


# Bracket's bounds from above: the product of bets along the optimal policy is too cheap.
bracket_above: Cut = partial(_spoilt, BracketSearch, "settings", "log_share", sub)
# From below: bets on returns need to win too little.
bracket_below: Cut = partial(_spoilt, BracketSearch, "settings", "delta_exploit", _larger)
# What is proven of two actions at once is too cheap; the bounds of each are honest.
bracket_joint: Cut = partial(_spoilt, BracketSearch, "settings", "log_joint", sub)
# Bounds from above: the sets of transitions are too small.
bracket_sets: Cut = partial(_spoilt, BracketSearch, "levels", "price", sub)
# Canopy's bets on the values of trees, and on returns, need to win too little.
_TREES, _RETURNS = "delta_tree delta_forced_tree", "delta_exploit delta_forced"
canopy_above: Cut = partial(_spoilt, CanopySearch, "settings", _TREES, _larger)
canopy_below: Cut = partial(_spoilt, CanopySearch, "settings", _RETURNS, _larger)
mdp_gape_rewards: Cut = partial(_lemma, 1.0, 0.0)
mdp_gape_transitions: Cut = partial(_lemma, 0.0, 1.0)

SABOTAGES: dict[str, tuple[Cut, str, tuple[str, ...]]] = {
    "bracket_above": (bracket_above, "bracket", ("anytime", "strict", "deep")),
    "bracket_below": (bracket_below, "bracket", ("anytime", "strict", "deep")),
    "bracket_joint": (bracket_joint, "bracket", ("anytime", "strict", "deep")),
    "bracket_sets": (bracket_sets, "bracket", ("joint", "mixed")),
    "canopy_above": (canopy_above, "canopy", ("anytime", "continuous")),
    "canopy_below": (canopy_below, "canopy", ("anytime", "continuous")),
    "mdp_gape_rewards": (mdp_gape_rewards, "mdp-gape", ("lucky", "unlucky")),
    "mdp_gape_transitions": (mdp_gape_transitions, "mdp-gape", ("joint", "mixed")),
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
    for sabotage, (cut, planner, families) in SABOTAGES.items():
        for nats in given.nats:
            with cut(nats):
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
            print(f"| {sabotage} | {nats:g} | {row} |", flush=True)


if __name__ == "__main__":
    main()
