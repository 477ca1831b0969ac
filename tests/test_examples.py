"""Every example runs, and prints what its readers look for."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
# What a script needs beyond the library, and words that it prints.
EXPECTED = {
    "certified_decision": (None, ["wear 0: run", "wear 4: repair", "with probability at least 0.95"]),
    "cluster_sweep": ("distributed", ["120 runs on 2 workers", "MDP-GapE", "none computed"]),
    "compare_planners": (None, ["40 problems, 1,000 calls each", "kl-olop", "None of these"]),
    "flat_monte_carlo": (None, ["FlatMonteCarlo gives no guarantee"]),
    "gymnasium_agent": ("gymnasium", ["The pole stood after 100 of 100 steps"]),
    "jitted_model": (None, ["jitted: send the crew", "python: send the crew", "million per second"]),
    "rddl": ("rddlrepository", ["11 actions: {}", "is within 2 of optimal in the 3-step problem"]),
    "sailing": (None, ["Across in", "The best sailor needs"]),
}


def test_all_examples_are_here():
    assert sorted(EXPECTED) == sorted(path.stem for path in EXAMPLES.glob("*.py"))


@pytest.mark.parametrize("name", EXPECTED)
def test_example(name, tmp_path):
    needs, words = EXPECTED[name]
    if needs is not None and importlib.util.find_spec(needs) is None:
        pytest.skip(f"needs {needs}")
    ran = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py"],
        env=os.environ | {"PYTHONIOENCODING": "utf-8"},
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        timeout=600,
    )
    assert ran.returncode == 0, ran.stderr
    for word in words:
        assert word in ran.stdout
    assert list(tmp_path.iterdir()) == []
