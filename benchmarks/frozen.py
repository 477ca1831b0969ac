"""Some hundreds of small plans to the bit: has a change of the code changed an answer?

    python3 dev.py python benchmarks/frozen.py record plans.json   before the change
    python3 dev.py python benchmarks/frozen.py compare plans.json  after it: exits with 1 if one differs

Every planner, kind of model, way of merging and several seeds. Only files recorded on one machine
compare: another computes logarithms with other last bits.
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np

import pacplan
from pacplan.compiled.tiered import waiting

SEEDS = range(3)
TABLE = pacplan.envs.garnet(states=30, actions=3, seed=2, noise="bernoulli")
FIXED = pacplan.envs.garnet(states=30, actions=3, successors=1, seed=2)
GAME = pacplan.envs.game_tree(np.random.default_rng(2).random((3, 3, 3)).tolist())
CERTAIN = {"epsilon": 0.0, "delta": 0.1, "gamma": 0.7, "horizon": 5}
SHORT = {"epsilon": 0.5, "delta": 0.1, "gamma": 0.3}
# Of each planner: settings, and whether a budget ends it.
PLANNERS: dict[str, list[dict[str, Any]]] = {
    "bracket": [
        CERTAIN | more
        for more in (
            {},
            {"value_range": (0.0, 2.9)},
            {"value": lambda s: 0.3},
            {"goal": "value"},
            {"epsilon": 0.4},
            {"value_bounds": (0.0, 2.9)},
            {"policy": lambda s: 0},
        )
    ],
    "canopy": [CERTAIN, CERTAIN | {"epsilon": 0.6}],
    "mdp-gape": [
        CERTAIN,
        CERTAIN | {"merge": "depth"},
        CERTAIN | {"goal": "value"},
        CERTAIN | {"thresholds": "sharp"},
        CERTAIN | {"value_bounds": (0.0, 2.9)},
    ],
    "sparse-sampling": [{"gamma": 0.7, "horizon": 2, "width": 3}],
    "anytime": [{"gamma": 0.7}, {"gamma": 0.7, "horizon": 5}],
    "uct": [{"gamma": 0.7, "horizon": 8}, {"gamma": 0.7, "horizon": 8, "rollout": "random"}],
    "brue": [{"gamma": 0.7, "horizon": 5}],
    "olop": [{"gamma": 0.7, "horizon": 5}],
    "kl-olop": [{"gamma": 0.7, "horizon": 5}],
    "opd": [{"gamma": 0.7, "rewards": "deterministic"}],
    "op-mdp": [{"gamma": 0.7}],
    "stop": [SHORT | {"epsilon": 0.01}],
    "trailblazer": [SHORT],
    "smooth-cruiser": [SHORT | {"epsilon": 0.9, "temperature": 0.05}],
    "ugape-mcts": [{"epsilon": 0.0, "delta": 0.1}],
    "value-iteration": [{"gamma": 0.7}],
}


def walk(state: int, action: int, rng: Any) -> tuple[int, float, bool]:
    """Ten places in a row; one end ends the episode."""
    move = 1 if rng.random() < 0.4 + 0.1 * action else -1
    place = max(state + move, 0)
    return place, 1.0 if place == 9 else 0.0, place == 9


def drift(x: float, action: int, rng: Any) -> tuple[float, float, bool]:
    """No state comes twice."""
    x = 0.8 * x + (action - 1.0) + 0.3 * rng.standard_normal()
    return x, np.exp(-x * x), False


def models(name: str) -> Iterator[tuple[str, Any, Any]]:
    """The models that a planner can plan in: their kinds, and the state to plan from."""
    if name == "ugape-mcts":
        yield "table", GAME, 0
        return
    if name in ("opd", "op-mdp", "value-iteration"):
        yield "table", FIXED if name == "opd" else TABLE, 0
        return
    yield "table", TABLE, 0
    facts: dict[str, Any] = {"actions": 3, "reward_range": (0.0, 1.0), "successors": 2}
    yield "python", pacplan.Simulator(walk, **facts), 3
    yield "jitted", pacplan.Simulator(numba.njit(walk), **facts), 3
    if name in ("canopy", "sparse-sampling", "uct"):
        yield "drift", pacplan.Simulator(drift, **(facts | {"successors": None})), 1.0


def cases() -> Iterator[tuple[str, Callable[[int], pacplan.Plan]]]:
    """Names of plans, and functions that make them from a seed."""
    for name, settings in PLANNERS.items():
        for number, each in enumerate(settings):
            for kind, model, state in models(name):

                def plan(
                    seed: int, name: str = name, each: Any = each, at: Any = (model, state)
                ) -> Any:
                    budget = None if name == "sparse-sampling" else 2000
                    return pacplan.planners[name](**each).plan(*at, seed=seed, budget=budget)

                yield f"{name} {number} {kind}", plan
    for kind, model, state in models("canopy"):
        if kind != "jitted":
            sample = {"sample": True} if kind == "table" else {}
            yield (
                f"plan {kind}",
                lambda seed, at=(model, state), sample=sample: pacplan.plan(
                    *at, epsilon=0.5, delta=0.1, gamma=0.6, seed=seed, budget=3000, **sample
                ),
            )
    python = pacplan.Simulator(walk, actions=3, reward_range=(0.0, 1.0), successors=2)
    for name in ("bracket", "mdp-gape"):
        yield (
            f"{name} workers",
            lambda seed, name=name: pacplan.planners[name](**CERTAIN).plan(
                python, 3, seed=seed, budget=500, workers=2
            ),
        )
    yield "agent", _agent


def _agent(seed: int) -> pacplan.Plan:
    agent = pacplan.Agent(pacplan.UCT(gamma=0.7, horizon=8), TABLE, seed=seed, budget=500)
    for state in (0, 3, 3):
        agent.act(state)
    return agent.history[-1].plan


def digest(plan: pacplan.Plan) -> list[Any]:
    """What must not change: action, calls, episodes, and bounds and estimates to the bit."""
    arrays = (plan.lower, plan.upper, plan.values, plan.calls, plan.gaps)
    bits = hashlib.sha256()
    for array in arrays:
        bits.update(b"-" if array is None else np.ascontiguousarray(array).tobytes())
    bits.update(repr((plan.gap, plan.value)).encode())
    return [repr(plan.action), plan.samples, plan.episodes, plan.stopped_by, bits.hexdigest()[:16]]


def main() -> int:
    """Record or compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("record", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="", help="plans whose name contains this")
    options = parser.parse_args()
    with waiting():
        found = {
            f"{name} seed {seed}": digest(plan(seed))
            for name, plan in cases()
            if options.only in name
            for seed in SEEDS
        }
    if options.what == "record":
        options.file.write_text(json.dumps(found, indent=0) + "\n")
        print(f"{len(found)} plans recorded")
        return 0
    recorded = json.loads(options.file.read_text())
    differ = [name for name in found if recorded.get(name) != found[name]]
    for name in differ:
        print(f"{name}: {recorded.get(name)} was recorded, {found[name]} is planned")
    missing = [name for name in recorded if name not in found and options.only in name]
    print(f"{len(found)} plans, {len(differ)} differ; of the record, {len(missing)} are not made")
    return 1 if differ or missing else 0


if __name__ == "__main__":
    sys.exit(main())
