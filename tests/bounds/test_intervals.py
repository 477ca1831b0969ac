"""The checked forms of confidence sets."""

import math

import numpy as np
import pytest

from pacplan.bounds import expectation_interval, mean_interval
from pacplan.bounds.intervals import ball_max, kl_lower, kl_upper


def test_checked_forms_give_what_the_solvers_give():
    assert mean_interval(0.3, 0.1) == (kl_lower(0.3, 0.1), kl_upper(0.3, 0.1))
    p, f = np.array([0.2, 0.8]), np.array([1.0, 3.0])
    low, high = expectation_interval(p, f, 0.1, unseen=(0.0, 5.0))
    assert low == -ball_max(p, -f, 2, 0.0, 0.1)
    assert high == ball_max(p, f, 2, 5.0, 0.1)
    # An outcome of probability 0 is one that was not seen.
    assert expectation_interval([0.2, 0.8, 0.0], [1.0, 3.0, 5.0], 0.1)[1] == high


def test_checked_forms_refuse_nonsense():
    for mean, radius in ((1.1, 0.1), (0.5, -1.0), (math.nan, 0.1)):
        with pytest.raises(ValueError, match=r"mean|radius"):
            mean_interval(mean, radius)
    for p, f in (
        ([], []),
        ([1.0], [1.0, 2.0]),
        ([0.5, 0.6], [1.0, 2.0]),
        ([-0.5, 1.5], [1.0, 2.0]),
        ([0.5, 0.5], [1.0, math.nan]),
    ):
        with pytest.raises(ValueError, match="probabilities"):
            expectation_interval(p, f, 0.1)
    with pytest.raises(ValueError, match="radius"):
        expectation_interval([0.5, 0.5], [1.0, 2.0], math.inf)
