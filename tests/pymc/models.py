"""Models with loops that several tests share: each draws a series, PyMC derives the rest."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pytensor_loop import scan, taps


def normal(rng, mu, sigma=1.0):
    return pm.Normal.dist(mu, sigma, rng=rng, return_next_rng=True)


def ar1(phi, sigma, start, n_steps, size=None):
    rng = pt.random.shared_rng(seed=None)

    def step(carry, _):
        rng, x = carry
        rng, x = normal(rng, phi * x, sigma)
        return (rng, x), x

    return scan(step, (rng, start), n_steps=n_steps)[1]


def ar2(phi, sigma, start, n_steps, size=None):
    rng = pt.random.shared_rng(seed=None)

    def step(carry, _):
        rng, past = carry["rng"], carry["past"]
        rng, x = normal(rng, phi[0] * past.tap(-1) + phi[1] * past.tap(-2), sigma)
        return {"rng": rng, "past": past.push_tap(x)}, x

    return scan(step, {"rng": rng, "past": taps(start, [-2, -1])}, n_steps=n_steps)[1]


def walk(drift, sigma, n_steps, size=None):
    rng, start = normal(pt.random.shared_rng(seed=None), 0.0)

    def step(carry, _):
        rng, change = normal(carry["rng"], drift, sigma)
        return {"rng": rng, "x": carry["x"] + change}, carry["x"]

    return scan(step, {"rng": rng, "x": start}, n_steps=n_steps)[1]


def ma1(theta, sigma, n_steps, size=None):
    """Draw a moving average; its log-probability has a loop too, over the innovations."""
    rng = pt.random.shared_rng(seed=None)

    def step(carry, _):
        mu = theta * carry["innovation"]
        rng, x = normal(carry["rng"], mu, sigma)
        return {"rng": rng, "innovation": x - mu}, x

    return scan(step, {"rng": rng, "innovation": 0.0}, n_steps=n_steps)[1]


def regimes(means, sigma, regime, size=None):
    rng = pt.random.shared_rng(seed=None)

    def step(carry, regime):
        rng, x = carry
        rng, x = normal(rng, means[regime] + 0.5 * x, sigma)
        return (rng, x), x

    return scan(step, (rng, 0.0), xs=regime)[1]


# A Python 0.0 would reach `dist` as a float32: PyTensor keeps constants as small as they can be.
ZERO = np.float64(0)
SIGNATURES = {
    ar1: "(),(),(),()->(t)",
    ar2: "(p),(),(p),()->(t)",
    walk: "(),(),()->(t)",
    ma1: "(),(),()->(t)",
    regimes: "(r),(),(t)->(t)",
}


def custom(name, dist, *parameters, **kwargs):
    return pm.CustomDist(name, *parameters, dist=dist, signature=SIGNATURES[dist], **kwargs)


def simulated(length, phi=0.6, sigma=0.5, seed=0):
    """Return an AR(1) that starts from zero."""
    generator, x, series = np.random.default_rng(seed), 0.0, []
    for _ in range(length):
        x = phi * x + sigma * generator.normal()
        series.append(x)
    return np.array(series)


def ar1_model(observed):
    with pm.Model() as model:
        phi = pm.Normal("phi", 0, 1)
        sigma = pm.HalfNormal("sigma", 1)
        custom("x", ar1, phi, sigma, ZERO, len(observed), observed=observed)
    return model
