"""Planning in processes: the first one compiles, those after it start warm."""

import os
import subprocess
import sys
from pathlib import Path

import pacplan

PLAN = """
import pacplan
model = pacplan.envs.garnet(states=20, seed=0)
print(pacplan.SparseSampling(gamma=0.5, horizon=3, width=5).plan(model, 0, seed=0).values)
"""


def plan_in_a_process(**environment):
    process = subprocess.run(
        [sys.executable, "-c", PLAN],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return process.stdout, process.stderr


def test_only_the_first_process_compiles(tmp_path):
    cold, message = plan_in_a_process(NUMBA_CACHE_DIR=str(tmp_path))
    assert "compiling sparse_sampling for a tabular model" in message
    warm, silence = plan_in_a_process(NUMBA_CACHE_DIR=str(tmp_path))
    assert silence == "", "every compilation is announced"
    assert warm == cold
    package = Path(pacplan.__file__).parent
    assert not list(package.rglob("*.nbi")), "nothing is written beside the sources"
