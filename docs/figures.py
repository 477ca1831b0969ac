"""Draw the pictures of README and documentation: python3 dev.py figures."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import pacplan
from pacplan import exact

# From Okabe and Ito's palette, which the colour-blind can tell apart.
BLUE, ORANGE = "#0072B2", "#D55E00"
FOLDER = Path(__file__).parent / "images"


def convergence():
    """The root's intervals closing in, up to the certificate."""
    model = pacplan.envs.garnet(seed=0)
    trace = []
    plan = pacplan.MDPGapE(epsilon=0.5, delta=0.1, gamma=0.7).plan(
        model, 0, seed=0, callback=trace.append
    )
    calls = np.array([snapshot.samples for snapshot in trace])
    best = plan.actions.index(plan.action)
    challenger = int(np.argmax(np.where(np.arange(5) == best, -np.inf, plan.upper)))
    truth = exact.finite_horizon(model, gamma=0.7, horizon=plan.horizon)[0, 0]
    figure, axes = plt.subplots(figsize=(8, 3.8), layout="constrained")
    names = {best: "action taken, b", challenger: "its challenger, c"}
    others = [i for i in range(5) if i not in names]
    for i, colour in [*((i, "#999999") for i in others), (challenger, ORANGE), (best, BLUE)]:
        upper = [snapshot.upper[i] for snapshot in trace]
        lower = [snapshot.lower[i] for snapshot in trace]
        width = 2.2 if i in names else 1.0
        label = names.get(i, "other actions" if i == others[0] else None)
        axes.plot(calls, upper, color=colour, linewidth=width)
        axes.plot(calls, lower, color=colour, linewidth=width, label=label)
        if i in names:
            axes.fill_between(calls, lower, upper, color=colour, alpha=0.12, linewidth=0)
            axes.plot(plan.samples * 1.12, truth[i], marker="D", color=colour, markersize=6)
    axes.plot([], [], marker="D", color="black", linestyle="", label="exact value")
    axes.axvline(plan.samples, color="black", linestyle=":", linewidth=1)
    axes.annotate(
        f"certified after {plan.samples:,} calls:\nU(c) - L(b) ≤ ε",
        (plan.samples, 0.52),
        xytext=(-10, 0),
        textcoords="offset points",
        ha="right",
    )
    axes.set(
        xscale="log",
        xlim=(200, plan.samples * 1.3),
        xlabel="calls to the model",
        ylabel="value of the action",
    )
    axes.set_title("The bounds L ≤ Q ≤ U closing in: ε = 0.5, δ = 0.1, γ = 0.7", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    figure.savefig(FOLDER / "convergence.png", dpi=150)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    convergence()
