"""A sweep on a cluster: every planner on every problem with every budget, on two workers of Dask.

Shows sweeps whose rows are written as runs end, so that the same call continues after a crash, and
whose results do not depend on where they are computed. Put the address of your scheduler, such as
"tcp://host:8786", in place of "local". Needs `pip install pacplan[cluster]`.

    python examples/cluster_sweep.py
"""

import tempfile
from pathlib import Path

import pacplan
from pacplan.experiments import PlannerSpec, ProblemSpec, Sweep, dask_cluster, groups, run

SWEEP = Sweep(
    planners=[
        PlannerSpec(pacplan.UCT(gamma=0.8, horizon=10), label="UCT"),
        PlannerSpec(pacplan.BRUE(gamma=0.8, horizon=10), label="BRUE"),
        PlannerSpec(
            "mdp-gape", {"gamma": 0.8, "epsilon": 0.0, "thresholds": "sharp"}, label="MDP-GapE"
        ),
    ],
    problems=[ProblemSpec("garnet", {"states": 50, "noise": "bernoulli"})],
    budgets=[100, 1000],
    seeds=20,
)


def main():
    """Run it on the cluster, then again from the rows that were written."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "results"
        with dask_cluster("local", workers=2) as (executor, at_once):
            records = run(SWEEP, folder, executor=executor, workers=at_once)
        print(f"{len(records)} runs on {at_once} workers, {sum(r.samples for r in records):,} calls\n")
        print("planner    budget  mean regret")
        for group in groups(records):
            print(f"{group.planner:10} {group.budget:6,}  {group.regret.value:.4f}")
        again = run(SWEEP, folder, workers=1)
        print(f"\nOnce more: {len(again)} runs, all read from {folder.name}/runs.jsonl, none computed.")
        assert again == records


if __name__ == "__main__":
    main()
