"""A certified decision in your own simulator: run the machine for another day, or repair it?

Shows what a planner needs (a function that draws one transition, and two promises about it), what it
returns (an action, bounds, and a guarantee in words), and what is left of that within a budget.

    python examples/certified_decision.py
"""

import pacplan

BROKEN = 4


def step(wear, action, rng):
    """One day. A worn machine earns less, wears on, and may break; a repair costs a day and parts."""
    if action == "repair":
        return 0, 0.0, False
    if wear == BROKEN:
        return BROKEN, 0.2, False  # It stands still; 0.2 is what renting one leaves.
    earned = 1.0 - 0.1 * wear
    return wear + int(rng.random() < 0.3 + 0.15 * wear), earned, False


def main():
    """Decide for every state of the machine."""
    model = pacplan.Simulator(
        step,
        actions=["run", "repair"],
        successors=2,  # at most two different next states follow a state and an action
        reward_range=(0, 1),
        may_end=False,
    )
    planner = pacplan.MDPGapE(epsilon=0.3, delta=0.05, gamma=0.8, horizon=6, rewards="deterministic")
    print(f"{planner!r}\n")
    for wear in range(BROKEN + 1):
        plan = planner.plan(model, wear, seed=0)
        assert plan.certified
        print(f"wear {wear}: {plan.action:6}  {plan.samples:7,} calls")

    print("\nThe machine at wear 3, in full:\n")
    print(planner.plan(model, 3, seed=0))
    print("\nIt depends on:", "; ".join(plan.assumptions) + ".")

    hasty = planner.plan(model, 3, seed=0, budget=1000)
    print(f"\nWith only 1,000 calls: {hasty.guarantee}")


if __name__ == "__main__":
    main()
