import numpy as np
import pytest


pytest.importorskip("pymc")
pytest.importorskip("statsmodels")
pytest.importorskip("matplotlib")

import ar


@pytest.fixture(scope="module")
def sunspots():
    fitted = ar.fit_sunspots(ar.load_sunspots()[1])
    return fitted, ar.compile_forecast(fitted.params[0], fitted.params[1:])


def test_pymc_derives_the_density_of_the_innovations():
    derived, by_hand = ar.ar2_log_densities(ar.simulate(40))
    np.testing.assert_allclose(derived, by_hand, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("horizon", [1, 24])
def test_the_forecast_is_that_of_statsmodels(sunspots, horizon):
    fitted, forecast = sunspots
    predicted, future = forecast(ar.load_sunspots()[1], horizon)
    np.testing.assert_allclose(predicted, fitted.fittedvalues, rtol=1e-10)
    np.testing.assert_allclose(future, fitted.forecast(horizon), rtol=1e-10)


@pytest.mark.slow
def test_a_forecast_of_no_years_is_empty(sunspots):
    _, forecast = sunspots
    assert forecast(ar.load_sunspots()[1], 0)[1].shape == (0,)


@pytest.mark.slow
def test_the_script_runs():
    numbers = ar.main()
    for ours, theirs in (numbers["predicted"], numbers["forecast"], numbers["log_densities"]):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10)
    assert len(numbers["nothing"]) == 0
