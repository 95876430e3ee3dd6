"""One posterior by three samplers: PyMC's own, nutpie, and numpyro on JAX."""

import numpy as np
import pymc as pm
import pytest

from tests.pymc.models import custom, ma1, simulated


OBSERVED = simulated(60)
DRAWS, CHAINS = 500, 2
SAMPLERS = ["pymc", "nutpie", "numpyro"]


@pytest.fixture(scope="module")
def posterior():
    """Return a function that samples once with each sampler."""
    with pm.Model() as model:
        theta = pm.Normal("theta", 0, 1)
        sigma = pm.HalfNormal("sigma", 1)
        custom("x", ma1, theta, sigma, len(OBSERVED), observed=OBSERVED)
    sampled = {}

    def sample(sampler):
        if sampler not in sampled:
            if sampler != "pymc":
                pytest.importorskip(sampler)
            sampled[sampler] = pm.sample(
                draws=DRAWS,
                tune=500,
                chains=CHAINS,
                cores=1,
                nuts_sampler=sampler,
                model=model,
                random_seed=1,
                progressbar=False,
                compute_convergence_checks=False,
            ).posterior
        return sampled[sampler]

    return sample


def exact_moments():
    """Return mean and standard deviation of both parameters, by integrating on a grid."""
    theta = np.linspace(-1, 2, 1201)[:, None]
    sigma = np.linspace(0.2, 1.5, 801)[None, :]
    innovation = squares = 0.0
    for x in OBSERVED:
        innovation = x - theta * innovation
        squares = squares + innovation**2
    prior = -0.5 * theta**2 - 0.5 * sigma**2
    log = prior - len(OBSERVED) * np.log(sigma) - squares / (2 * sigma**2)
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    moments = {}
    for name, grid in {"theta": theta, "sigma": sigma}.items():
        mean = (grid * weight).sum()
        moments[name] = mean, np.sqrt(((grid - mean) ** 2 * weight).sum())
    return moments


@pytest.mark.slow
# The samplers and what they import warn about themselves.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_every_sampler_finds_the_posterior(posterior, sampler):
    sample = posterior(sampler)
    for name, (mean, deviation) in exact_moments().items():
        values = sample[name].values
        assert values.shape == (CHAINS, DRAWS)
        # NUTS draws are about independent; a third of them is a careful count.
        error = deviation / np.sqrt(CHAINS * DRAWS / 3)
        assert abs(values.mean() - mean) < 4 * error
        assert abs(values.std() / deviation - 1) < 0.2
