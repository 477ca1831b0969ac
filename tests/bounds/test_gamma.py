"""The logarithm of the gamma function."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln

from pacplan.bounds import gamma
from pacplan.compiled.interpreted import interpreted

log_gamma = interpreted(gamma.log_gamma)


@settings(max_examples=200, deadline=None)
@given(st.floats(1e-3, 1e9))
def test_log_gamma(x):
    # Small arguments cancel some 30 in absolute terms.
    assert log_gamma(x) == pytest.approx(gammaln(x), rel=1e-14, abs=1e-13)
