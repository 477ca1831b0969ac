"""Sail across a lake while the wind turns: an agent against the best sailor.

Shows a problem of the library whose tables are known to the planner, an agent in a loop, what is proven
about each leg when a budget ends the search, and exact dynamic programming to see what it really lost.

    python examples/sailing.py
"""

import numpy as np

import pacplan

WINDS = ("N", "NE", "E", "SE", "S", "SW", "W", "NW")
ARROWS = dict(zip(WINDS, "↑↗→↘↓↙←↖", strict=True))
SIZE = 5


def place(state):
    """Where the boat is: (x, y)."""
    return divmod(state // 24, SIZE)


def main():
    """Sail once, leg by leg."""
    lake = pacplan.envs.sailing(SIZE)
    q = pacplan.exact.finite_horizon(lake, gamma=1.0, horizon=60)[0]
    planner = pacplan.ValueIteration(gamma=1.0, horizon=12)
    agent = pacplan.Agent(planner, lake, budget=100_000, seed=0)
    weather = np.random.default_rng(4)

    state, minutes, arrived = lake.initial_state(), 0.0, False
    print("   at     wind to  leg   minutes  loses at most  in truth")
    while not arrived:
        action = agent.act(state)
        decision = agent.history[-1]
        lost = q[state].max() - q[state, action]
        (x, y), wind, leg = place(state), WINDS[state % 8], WINDS[action]
        state, reward, arrived = lake.step(state, action, weather)
        minutes -= reward
        print(
            f"  ({x}, {y})  {ARROWS[wind]} {wind:2}     {ARROWS[leg]} {leg:2}  {-reward:5.1f}  "
            f"{max(0.0, decision.plan.gap):12.2f}  {lost:9.2f}"
        )
    best = -q[lake.initial_state()].max()
    print(f"\nAcross in {minutes:.1f} minutes. The best sailor needs {best:.1f} on average.")


if __name__ == "__main__":
    main()
