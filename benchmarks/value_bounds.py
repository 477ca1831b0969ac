"""Calls that knowing bounds on values saves, on sailing and a gridworld.

    python3 dev.py python benchmarks/value_bounds.py      a minute

The bounds are what is known of these problems without solving them: a leg takes at least a minute, and
no goal is reached in fewer steps than its distance.
"""

import numpy as np

import pacplan

RUNS = 10


def sailing():
    """From a far corner; every leg costs at least a minute, and the distance is the fewest legs."""
    size, gamma, horizon = 5, 0.9, 5
    model = pacplan.envs.sailing(size=size)

    def upper(state, h):
        x, y = state // 24 // size, state // 24 % size
        legs = min(max(size - 1 - x, size - 1 - y), horizon - h)
        return -(1.0 - gamma**legs) / (1.0 - gamma)

    def lower(state, h):
        return -8.66 * (1.0 - gamma ** (horizon - h)) / (1.0 - gamma)

    return model, (lower, upper), {"epsilon": 6.0, "gamma": gamma, "horizon": horizon}


def gridworld():
    """Near the goal; it pays once, and not before it is reached."""
    rows = ("....G", ".#.#.", "S....")
    gamma, horizon = 0.9, 8
    model = pacplan.envs.gridworld(rows, step=0.0, pit=0.0)

    def upper(state, h):
        away = abs(state // 5) + abs(4 - state % 5)
        return gamma ** (away - 1) if 0 < away <= horizon - h else 0.0

    return model, (lambda state, h: 0.0, upper), {"epsilon": 0.1, "gamma": gamma, "horizon": horizon}


def main():
    for name, problem in (("sailing", sailing), ("gridworld", gridworld)):
        model, bounds, settings = problem()
        for make in (pacplan.Bracket, pacplan.MDPGapE):
            found = []
            for given in (None, bounds):
                planner = make(delta=0.1, value_bounds=given, **settings)
                plans = [planner.plan(model, seed=seed, budget=3_000_000) for seed in range(RUNS)]
                found.append(np.median([plan.samples for plan in plans]))
                reached = sum(plan.certified for plan in plans)
            print(
                f"{name:10} {make.__name__:8} median calls {found[0]:9,.0f} without, {found[1]:9,.0f} "
                f"with bounds: {found[1] / found[0]:.2f} ({reached} of {RUNS} certified)"
            )


if __name__ == "__main__":
    main()
