import numpy as np
import pytest
from numpy.testing import assert_allclose


pytest.importorskip("statsmodels")
pytest.importorskip("matplotlib")

import var


@pytest.fixture(scope="module")
def loops():
    return var.compile_loops()


def test_powers_are_those_of_numpy(loops):
    power, _ = loops
    matrix = np.random.default_rng(0).normal(size=(3, 3)) / 2
    stacked, last = power(matrix, 8)
    expected = [np.linalg.matrix_power(matrix, n) for n in range(9)]
    assert_allclose(stacked, expected[:8], rtol=1e-10)
    assert_allclose(last, expected[8], rtol=1e-10)


def test_no_powers_leave_the_identity(loops):
    stacked, last = loops[0](np.ones((3, 3)), 0)
    assert stacked.shape == (0, 3, 3)
    assert_allclose(last, np.eye(3))


@pytest.mark.slow
def test_the_script_has_the_responses_of_statsmodels():
    numbers = var.main()
    for name in ("responses", "orthogonal", "path"):
        assert_allclose(*numbers[name], rtol=1e-8, atol=1e-14)
    assert_allclose(numbers["powers"][1], np.linalg.matrix_power(numbers["matrix"], 13), rtol=1e-10)
