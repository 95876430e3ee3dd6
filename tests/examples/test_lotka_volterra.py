import numpy as np
import pytest


pytest.importorskip("scipy")
pytest.importorskip("matplotlib")

import lotka_volterra


@pytest.fixture(scope="module")
def compiled():
    return lotka_volterra.compile_residuals()


def test_the_path_of_2100_steps_is_that_of_a_python_loop(compiled):
    _, _, path = compiled
    ours = np.array(path(lotka_volterra.START))
    assert ours.shape == (2, 2100)
    expected = lotka_volterra.populations_numpy(lotka_volterra.START)
    np.testing.assert_allclose(ours, expected, rtol=1e-10)


@pytest.mark.slow
def test_the_jacobian_is_that_of_complex_steps(compiled):
    _, jacobian, _ = compiled
    exact = lotka_volterra.jacobian_numpy(lotka_volterra.START)
    np.testing.assert_allclose(jacobian(lotka_volterra.START), exact, rtol=1e-8, atol=1e-10)


@pytest.mark.slow
def test_the_script_finds_rates_that_fit():
    numbers = lotka_volterra.main()
    np.testing.assert_allclose(*numbers["path"], rtol=1e-8)
    np.testing.assert_allclose(*numbers["jacobian"], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(numbers["parameters"][:4], [0.55, 0.028, 0.80, 0.024], rtol=0.1)
