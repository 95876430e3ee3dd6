import numpy as np
import pytest
from numpy.testing import assert_allclose


pytest.importorskip("statsmodels")
pytest.importorskip("matplotlib")

import nile


@pytest.fixture(scope="module")
def results():
    return nile.compute()


def test_the_variances_are_those_of_durbin_and_koopman(results):
    """Their table rounds to five digits."""
    for name, published in nile.PUBLISHED.items():
        assert_allclose(results["variances"][name], published, rtol=1e-4)


def test_the_likelihood_and_its_gradient_are_those_of_statsmodels(results):
    ours, theirs = results["ours"], results["statsmodels"]
    assert_allclose(ours["log_likelihood"], theirs["log_likelihood"], rtol=1e-8)
    assert_allclose(ours["score"], theirs["score"], atol=1e-8)


def test_the_levels_and_the_forecast_are_those_of_statsmodels(results):
    ours, theirs = results["ours"], results["statsmodels"]
    assert_allclose(ours["filtered"]["mean"], theirs["filtered"], rtol=1e-8)
    assert_allclose(ours["smoothed"]["mean"], theirs["smoothed"], rtol=1e-8)
    forecast = theirs["forecast"]
    assert_allclose(ours["forecast"]["mean"], forecast.predicted_mean, rtol=1e-8)
    flow_variance = ours["forecast"]["var"] + results["variances"]["var_obs"]
    assert_allclose(flow_variance, forecast.var_pred_mean, rtol=1e-8)


def test_the_script_writes_a_picture(results, monkeypatch, capsys):
    monkeypatch.setattr(nile, "compute", lambda: results)
    nile.main()
    assert "picture: " in capsys.readouterr().out
    assert np.all(np.isfinite(results["ours"]["smoothed"]["var"]))
