import numpy as np
import pytest


pytest.importorskip("pymc")
pytest.importorskip("matplotlib")

import bandit


@pytest.fixture(scope="module")
def data():
    return bandit.simulate(60)


@pytest.fixture(scope="module")
def log_likelihood(data):
    return bandit.log_likelihood(bandit.build_model(*data))


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "greed"), [(0.2, 3.0), (0.9, 0.5)])
def test_likelihood_and_gradient_are_those_of_a_python_loop(data, log_likelihood, rate, greed):
    total, gradient = log_likelihood(rate, greed)
    expected = bandit.log_likelihood_numpy(rate, greed, *data)
    np.testing.assert_allclose(total, expected, rtol=1e-10)
    np.testing.assert_allclose(gradient, bandit.gradient_numpy(rate, greed, *data), rtol=1e-8)


@pytest.mark.slow
def test_the_script_recovers_the_learner():
    numbers = bandit.main()
    np.testing.assert_allclose(*numbers["gradient"], rtol=1e-8)
    assert abs(numbers["mode"]["rate"] - bandit.TRUE["rate"]) < 0.15
    assert abs(numbers["mode"]["greed"] - bandit.TRUE["greed"]) < 1.5
