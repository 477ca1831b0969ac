"""A simulator at compiled speed: 24 machines, 16 million states, a few million calls per second.

Shows a step function jitted with Numba, which runs inside the search: states are integers, here one
bit for each machine. The same function in plain Python makes the same model, slower.

    python examples/jitted_model.py
"""

import time

import numba

import pacplan

MACHINES, GROUPS = 24, 4


@numba.njit
def step(broken, group, rng):
    """One hour: the crew repairs a machine of the group it is sent to, and another one may break."""
    size = MACHINES // GROUPS
    for machine in range(group * size, (group + 1) * size):
        if broken >> machine & 1:
            broken ^= 1 << machine
            break
    # Machines of higher groups break more often.
    machine = int(MACHINES * rng.random() ** 0.5)
    if rng.random() < 0.8:
        broken |= 1 << machine
    running = 0
    for machine in range(MACHINES):
        running += 1 - (broken >> machine & 1)
    return broken, running / MACHINES, False


def main():
    """Plan with both, and time them."""
    morning = sum(1 << machine for machine in (2, 3, 9, 13, 18, 19, 20, 23))
    print("broken:", *(f"{m}" for m in range(MACHINES) if morning >> m & 1))
    planner = pacplan.UCT(gamma=0.9, horizon=20)
    for kind, function, budget in (("jitted", step, 2_000_000), ("python", step.py_func, 20_000)):
        model = pacplan.Simulator(function, actions=GROUPS, successors=None)
        start = time.perf_counter()
        planner.plan(model, morning, seed=0, budget=budget)
        first = time.perf_counter() - start
        plan = planner.plan(model, morning, seed=0, budget=budget)
        values = " ".join(f"{value:.2f}" for value in plan.values)
        print(
            f"{kind}: send the crew to group {plan.action} (values {values}), {plan.samples:,} calls, "
            f"{plan.samples / plan.seconds / 1e6:.2f} million per second (the first: {first:.1f} s)"
        )


if __name__ == "__main__":
    main()
