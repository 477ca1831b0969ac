"""What the proof forbids is noticed: trees are then worth less than the action."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from test_canopy import FAR


@pytest.mark.statistical
@pytest.mark.parametrize("sabotage", ["honest", "clipped", "stopped", "leaking"])
def test_trees_that_break_the_rules_are_worth_too_little(sabotage, tmp_path):
    # A sabotaged kernel has the sources of an honest one, so it must not meet its cache.
    environment = os.environ | {
        "NUMBA_CACHE_DIR": str(tmp_path),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    script = Path(__file__).with_name("canopy_sabotage.py")
    done = subprocess.run(
        [sys.executable, str(script), sabotage],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    found = [float(score) for score in done.stdout.split()]
    assert (min(found) < -FAR) == (sabotage != "honest"), found
