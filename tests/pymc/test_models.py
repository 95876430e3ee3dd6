"""Loops in whole models: draws, log-probabilities and gradients, predictions, interventions."""

import numpy as np
import pymc as pm
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from pytensor_loop import scan, taps
from tests.pymc.models import ZERO, ar1, ar1_model, ar2, custom, regimes, simulated, walk


OBSERVED = simulated(20)


@pytest.fixture(scope="module")
def model():
    return ar1_model(OBSERVED)


@pytest.fixture(scope="module")
def idata(model):
    """Two draws of a posterior that we know, in the place of a sampler's."""
    xr = pytest.importorskip("xarray")
    draws = {"phi": [[0.6, 0.2]], "sigma": [[0.5, 1e-6]]}
    posterior = xr.Dataset({name: (("chain", "draw"), values) for name, values in draws.items()})
    return xr.DataTree.from_dict({"posterior": posterior})


def residuals(phi, values=OBSERVED):
    return values - phi * np.concatenate([[0.0], values[:-1]])


# --- draws ----------------------------------------------------------------------------------------


def build_draws():
    return {
        "ar1": custom("ar1", ar1, 0.6, 0.5, ZERO, 6),
        "ar2": custom("ar2", ar2, [0.5, 0.2], 0.5, np.zeros(2), 6),
        "walk": custom("walk", walk, 0.1, 1.0, 6),
        "regimes": custom("regimes", regimes, [0.0, 100.0], 1.0, np.array([0, 1, 1, 0, 0, 0])),
    }


@pytest.fixture(scope="module")
def draws():
    with pm.Model():
        variables = build_draws()
        values = [
            pm.draw(list(variables.values()), draws=50, random_seed=seed) for seed in (1, 1, 2)
        ]
    return [dict(zip(variables, value, strict=True)) for value in values]


@pytest.mark.parametrize("name", ["ar1", "ar2", "walk", "regimes"])
def test_draws_differ_in_every_step_and_draw_but_not_for_one_seed(draws, name):
    first, same, other = (value[name] for value in draws)
    assert first.shape == (50, 6)
    assert len(np.unique(first)) == first.size
    np.testing.assert_array_equal(first, same)
    assert not np.any(first == other)


def test_draws_depend_on_the_parameters(draws):
    means = draws[0]["regimes"].mean(axis=0)
    assert np.all(np.abs(means - [0, 100, 150, 75, 37.5, 18.75]) < 2)


# --- log-probability of a model -------------------------------------------------------------------


def test_logp_of_a_model_is_the_sum_of_its_terms(model):
    total = model.compile_logp(jacobian=False)({"phi": 0.3, "sigma_log__": np.log(0.7)})
    expected = [
        stats.norm.logpdf(0.3),
        stats.halfnorm.logpdf(0.7),
        stats.norm.logpdf(residuals(0.3), scale=0.7).sum(),
    ]
    assert_allclose(total, sum(expected), rtol=1e-10)


def test_dlogp_of_a_model_is_its_gradient(model):
    by_phi, by_log_sigma = model.compile_dlogp(jacobian=False)({
        "phi": 0.3,
        "sigma_log__": np.log(0.7),
    })
    e, before = residuals(0.3), np.concatenate([[0.0], OBSERVED[:-1]])
    assert_allclose(by_phi, -0.3 + (e * before).sum() / 0.7**2, rtol=1e-10)
    expected = -(0.7**2) - len(e) + (e**2).sum() / 0.7**2
    assert_allclose(by_log_sigma, expected, rtol=1e-10)


@pytest.mark.parametrize("dist", ["ar2", "walk", "regimes"])
def test_logp_of_other_series(dist):
    values = OBSERVED[:6]
    with pm.Model() as model:
        scale = pm.HalfNormal("scale")
        if dist == "ar2":
            phi = pm.Normal("parameter", shape=2)
            custom("x", ar2, phi, scale, np.zeros(2), 6, observed=values)
        elif dist == "walk":
            custom("x", walk, pm.Normal("parameter", shape=2)[0], scale, 6, observed=values)
        else:
            means = pm.Normal("parameter", shape=2)
            regime = np.array([0, 1, 1, 0, 1, 0])
            custom("x", regimes, means, scale, regime, observed=values)
    point = {"parameter": np.array([0.4, -0.3]), "scale_log__": np.log(0.7)}
    before = np.concatenate([[0.0, 0.0], values])
    mu = {
        "ar2": 0.4 * before[1:-1] - 0.3 * before[:-2],
        "walk": np.array([0.0, *(0.4 + values[:-1])]),
        "regimes": np.array([0.4, -0.3])[[0, 1, 1, 0, 1, 0]] + 0.5 * before[1:-1],
    }[dist]
    sigma = np.array([1.0] + 5 * [0.7]) if dist == "walk" else 0.7
    total = model.compile_logp(vars=model.observed_RVs)(point)
    assert_allclose(total, stats.norm.logpdf(values, mu, sigma).sum(), rtol=1e-10)
    assert np.all(np.isfinite(model.compile_dlogp()(point)))


def test_the_terms_of_a_posterior_are_computed_row_by_row(model, idata):
    with model:
        terms = pm.compute_log_likelihood(idata, progressbar=False, extend_inferencedata=False)
    expected = stats.norm.logpdf(residuals(0.6), scale=0.5)
    assert_allclose(terms["x"].values[0, 0], expected, rtol=1e-10)


# --- predictions ----------------------------------------------------------------------------------


def test_prior_predictive(model):
    prior = pm.sample_prior_predictive(40, model=model, random_seed=1)
    assert prior["prior_predictive"]["x"].shape == (1, 40, 20)
    sigma = prior["prior"]["sigma"].values.ravel()
    first = prior["prior_predictive"]["x"].values[0, :, 0]
    # The first value is sigma times a standard normal draw.
    assert stats.kstest(first / sigma, "norm").pvalue > 0.01


def test_posterior_predictive(model, idata):
    predicted = pm.sample_posterior_predictive(
        idata, model=model, progressbar=False, random_seed=1
    )["posterior_predictive"]["x"]
    assert predicted.shape == (1, 2, 20)
    assert predicted.values[0, 0].std() > 0.1
    assert np.abs(predicted.values[0, 1]).max() < 1e-4


def test_a_forecast_continues_the_loop(model, idata):
    """The loop over what was seen leaves the last values, and the next loop starts from them."""
    with model.copy() as longer:
        _, last = scan(lambda _, seen: (seen, seen), ZERO, xs=OBSERVED)
        custom("future", ar1, longer["phi"], longer["sigma"], last[-1], 3)
        predicted = pm.sample_posterior_predictive(
            idata, var_names=["future"], progressbar=False, random_seed=1, predictions=True
        )["predictions"]["future"]
    assert predicted.shape == (1, 2, 3)
    # The second draw has next to no noise.
    assert_allclose(predicted.values[0, 1], OBSERVED[-1] * 0.2 ** np.arange(1, 4), atol=1e-4)


def test_a_forecast_from_taps_continues_the_loop():
    past = taps(np.zeros(2), [-2, -1])
    past, _ = scan(lambda past, seen: (past.push_tap(seen), None), past, xs=OBSERVED)
    future = custom_dist(ar2, [0.5, 0.2], 1e-9, past.values, 2)
    first = 0.5 * OBSERVED[-1] + 0.2 * OBSERVED[-2]
    expected = [first, 0.5 * first + 0.2 * OBSERVED[-1]]
    assert_allclose(pm.draw(future), expected, atol=1e-6)


def custom_dist(dist, *parameters):
    return pm.CustomDist.dist(*parameters, dist=dist, signature="(p),(),(p),()->(t)")


# --- what is known changes ------------------------------------------------------------------------


def test_data_of_a_new_length():
    with pm.Model() as model:
        data = pm.Data("data", OBSERVED)
        phi = pm.Normal("phi")
        custom("x", ar1, phi, np.float64(0.5), ZERO, data.shape[0], observed=data)
    logp = model.compile_logp(vars=model.observed_RVs)
    for length in (20, 7):
        pm.set_data({"data": OBSERVED[:length]}, model=model)
        expected = stats.norm.logpdf(residuals(0.3)[:length], scale=0.5).sum()
        assert_allclose(logp({"phi": 0.3}), expected, rtol=1e-10)
    prior = pm.sample_prior_predictive(3, model=model, random_seed=1)
    assert prior["prior_predictive"]["x"].shape == (1, 3, 7)


def test_a_step_that_closes_over_variables_and_data_of_the_model():
    with pm.Model() as model:
        rate = pm.Beta("rate", 2, 2)
        u = pm.Data("u", OBSERVED)

        def smooth(level, x):
            level = level + rate * (x - level)
            return level, level

        _, levels = scan(smooth, u[0], xs=u[1:])
        pm.Normal("y", levels, 1.0, observed=u[1:])
    logp = model.compile_logp(vars=model.observed_RVs)
    for values in (OBSERVED, OBSERVED[5:12]):
        pm.set_data({"u": values}, model=model)
        level, mu = values[0], []
        for x in values[1:]:
            level += 0.25 * (x - level)
            mu.append(level)
        expected = stats.norm.logpdf(values[1:], mu).sum()
        at = {"rate_logodds__": np.log(0.25 / 0.75)}
        assert_allclose(logp(at), expected, rtol=1e-10)
        assert np.all(np.isfinite(model.compile_dlogp()(at)))


def test_data_that_the_step_closes_over():
    with pm.Model() as model:
        weights = pm.Data("weights", np.array([1.0, 2.0]))
        scale = pm.Normal("scale")
        final, _ = scan(lambda x, _: (scale * (weights * x), None), np.ones(2), n_steps=3)
        pm.Deterministic("final", final)
    for new in ([1.0, 2.0], [3.0, 4.0]):
        pm.set_data({"weights": np.array(new)}, model=model)
        drawn = pm.draw(model["final"], givens={scale: 0.5})
        assert_allclose(drawn, (0.5 * np.array(new)) ** 3, rtol=1e-12)


def test_observe_gives_a_series_its_values(model):
    with pm.Model() as free:
        phi = pm.Normal("phi", 0, 1)
        sigma = pm.HalfNormal("sigma", 1)
        custom("x", ar1, phi, sigma, ZERO, len(OBSERVED))
    point = {"phi": 0.3, "sigma_log__": np.log(0.7)}
    conditioned = pm.observe(free, {"x": OBSERVED})
    assert_allclose(conditioned.compile_logp()(point), model.compile_logp()(point), rtol=1e-12)


def test_a_series_that_nobody_observes_has_a_log_probability():
    with pm.Model() as model:
        x = custom("x", ar1, np.float64(0.3), np.float64(0.5), ZERO, 20)
        pm.Normal("y", x.sum(), 1.0, observed=1.0)
    total = model.compile_logp()({"x": OBSERVED})
    expected = stats.norm.logpdf(residuals(0.3), scale=0.5).sum()
    assert_allclose(total, expected + stats.norm.logpdf(1.0, OBSERVED.sum()), rtol=1e-10)
    assert model.initial_point()["x"].shape == (20,)


def test_do_sets_a_parameter_of_the_loop(model):
    intervened = pm.do(model, {"sigma": 1e-9, "phi": 0.0})
    drawn = pm.draw(intervened["x"], random_seed=1)
    assert np.abs(drawn).max() < 1e-7


def test_do_replaces_a_variable_that_a_step_closes_over():
    with pm.Model() as model:
        rate = pm.Beta("rate", 2, 2)
        final, _ = scan(lambda x, _: (x * rate, None), 1.0, n_steps=3)
        pm.Deterministic("final", final)
    assert_allclose(pm.draw(pm.do(model, {"rate": 0.5})["final"]), 0.125)
