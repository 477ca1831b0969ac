import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pacplan.bounds import elementary

NUMBERS = st.lists(st.floats(1e-300, 700.0), max_size=20)


@pytest.mark.parametrize("name", ["log", "log1p", "exp"])
@given(numbers=NUMBERS)
def test_each_number_is_mapped_as_python_does(name, numbers):
    before = np.array(numbers)
    expected = [getattr(math, name)(x) for x in numbers]
    assert getattr(elementary, name)(before).tolist() == expected
    assert before.tolist() == numbers


@given(base=st.floats(0.0, 1.0), count=st.integers(0, 40))
def test_powers_are_pythons(base, count):
    assert elementary.powers(base, count).tolist() == [math.pow(base, k) for k in range(count)]
