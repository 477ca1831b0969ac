import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pacplan.bounds import elementary


@given(st.lists(st.floats(1e-300, 700.0), max_size=20), st.floats(0.0, 1.0))
def test_numbers_are_those_of_the_c_library(numbers, base):
    array = np.array(numbers)
    assert elementary.log(array).tolist() == [math.log(x) for x in numbers]
    assert elementary.log1p(array).tolist() == [math.log1p(x) for x in numbers]
    assert elementary.powers(base, 20).tolist() == [math.pow(base, k) for k in range(20)]
