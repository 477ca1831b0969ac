"""Control of a Gymnasium environment: an agent balances a pole by planning alone, without learning.

Shows `from_gymnasium` on an environment without tables (it is copied and put back, not changed), and
an agent as the policy in Gymnasium's usual loop. Needs `pip install pacplan[gym]`.

    python examples/gymnasium_agent.py
"""

import gymnasium

import pacplan


def main():
    """Balance for 100 steps, and say what it took."""
    env = gymnasium.make("CartPole-v1", max_episode_steps=100)
    env.reset(seed=0)
    over, total = False, 0.0

    model = pacplan.from_gymnasium(env, reward_range=(0, 1))
    agent = pacplan.Agent(None, model, gamma=0.99, budget=400, seed=0)
    while not over:
        _, reward, terminated, truncated, _ = env.step(agent.act(env))
        over, total = terminated or truncated, total + reward

    angles = " ".join("<" if decision.action == 0 else ">" for decision in agent.history)
    calls = sum(decision.plan.samples for decision in agent.history)
    kept = sum(decision.reused_samples > 0 for decision in agent.history)
    print(angles)
    print(f"\nThe pole {'fell' if terminated else 'stood'} after {total:.0f} of 100 steps.")
    print(f"{calls:,} calls to copies of the environment; {kept} decisions used a kept chart.")


if __name__ == "__main__":
    main()
