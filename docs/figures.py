"""Draw the pictures of README and documentation: python3 dev.py figures."""

from pathlib import Path

import matplotlib.pyplot as plt

import pacplan
from pacplan import exact
from pacplan.views.style import CHALLENGER, TAKEN

FOLDER = Path(__file__).parent / "images"


def convergence():
    """The root's intervals closing in, up to the certificate, around the exact values."""
    model = pacplan.envs.garnet(seed=0)
    trace = pacplan.views.Trace()
    plan = pacplan.MDPGapE(epsilon=0.5, delta=0.1, gamma=0.7).plan(model, 0, seed=0, callback=trace)
    figure, axes = plt.subplots(figsize=(8, 3.8), layout="constrained")
    pacplan.views.convergence(trace, axes)
    truth = exact.finite_horizon(model, gamma=0.7, horizon=plan.horizon)[0, 0]
    best = plan.actions.index(plan.action)
    challenger = max((a for a in range(len(truth)) if a != best), key=lambda a: plan.upper[a])
    for a, colour in ((best, TAKEN), (challenger, CHALLENGER)):
        axes.plot(plan.samples * 1.12, truth[a], marker="D", color=colour, markersize=6)
    axes.plot([], [], marker="D", color="black", linestyle="", label="exact value")
    axes.set_xlim(right=plan.samples * 1.3)
    axes.set_title(
        f"Action {plan.action} against action {challenger}: certified after {plan.samples:,} calls "
        "(ε = 0.5, δ = 0.1, γ = 0.7)",
        fontsize=11,
    )
    axes.legend(title="action", loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    figure.savefig(FOLDER / "convergence.png", dpi=150)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    convergence()
