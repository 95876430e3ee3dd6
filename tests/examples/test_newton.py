import numpy as np
import pytest
from numpy.testing import assert_allclose


pytest.importorskip("matplotlib")
pytest.importorskip("scipy")

import newton
from scipy.stats import gamma


@pytest.fixture(scope="module")
def root():
    return newton.compile_square_root()


@pytest.fixture(scope="module")
def quantile():
    return newton.compile_gamma_quantile()


@pytest.mark.parametrize("number", [1e-6, 0.5, 1.0, 2.0, 1e6])
def test_the_babylonian_root_and_its_derivative(root, number):
    found, done, guesses, slope = root(number)
    assert done
    assert guesses[-1] == found
    assert_allclose(found, np.sqrt(number), rtol=1e-14)
    assert_allclose(slope, 0.5 / np.sqrt(number), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [0.7, 3.0, 40.0])
@pytest.mark.parametrize("probability", [0.05, 0.5, 0.99])
def test_the_gamma_quantile_and_its_derivative(quantile, probability, shape):
    found, done, slope = quantile(probability, shape)
    assert done
    assert_allclose(found, gamma.ppf(probability, shape), rtol=1e-12)
    assert_allclose(slope, newton.quantile_slope(probability, shape), rtol=1e-8)


@pytest.mark.slow
def test_the_script_runs(capsys):
    newton.main()
    assert "1.4142135623731" in capsys.readouterr().out
