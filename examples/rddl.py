"""A certified decision in a benchmark of the planning competitions, by way of pyRDDLGym.

Shows `from_gymnasium` on an environment of pyRDDLGym: its actions are those that the domain admits, its
states are the values of the domain's fluents. In SysAdmin, ten computers fail, the sooner if their
neighbours have failed, and one of them can be restarted at a time. Needs `pip install pacplan[rddl]`.

    python examples/rddl.py
"""

import pyRDDLGym

import pacplan


def main():
    """Plan after a few steps without care, and say what is known of the decision."""
    env = pyRDDLGym.make("SysAdmin_MDP_ippc2011", "1")
    state, _ = env.reset(seed=1)
    for _ in range(3):
        state, *_ = env.step({})
    down = [name for name, running in state.items() if not running]

    # Each computer runs or not: so many states may be next that Canopy suits it. Restarting costs 0.75.
    model = pacplan.from_gymnasium(env, reward_range=(-0.75, 10))
    planner = pacplan.Canopy(epsilon=2.0, delta=0.1, gamma=0.95, horizon=3)
    plan = planner.plan(model, seed=0, time_limit=60)

    print(f"{len(plan.actions)} actions: {plan.actions[0]}, {plan.actions[1]}, ...")
    print(f"down: {', '.join(down) or 'none'}; to do: {plan.action or 'nothing'}")
    print(plan.guarantee)
    print(plan.effort)
    _, reward, *_ = env.step(plan.action)
    print(f"reward: {reward}")


if __name__ == "__main__":
    main()
