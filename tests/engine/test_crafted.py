"""Checkpoints with a right checksum that no search has written: refused, or resumed within limits."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CRAFTING = Path(__file__).with_name("crafting.py")


@pytest.mark.parametrize(
    ("files", "interpreted"),
    [
        (12, False),
        pytest.param(200, False, marks=pytest.mark.statistical),
        pytest.param(10, True, marks=pytest.mark.statistical),
    ],
    ids=["some", "many", "interpreted"],
)
def test_crafted_checkpoints_crash_nothing(files, interpreted):
    """Without compilation, what leads outside an array is found for certain."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    if interpreted:
        environment["NUMBA_DISABLE_JIT"] = "1"
    # In case one hangs; its line is the last.
    patience = 3600
    done = subprocess.run(
        [sys.executable, CRAFTING, str(files), "1"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=patience,
    )
    *_, last = done.stdout.splitlines()
    assert done.returncode == 0, f"{last}\n{done.stderr[-2000:]}"
    counts = json.loads(last)
    # Both happen, so neither was tested in vain.
    assert min(counts.values()) >= 0.2 * sum(counts.values())
