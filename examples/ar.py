"""Autoregressions: AR(2) as a distribution of PyMC, and AR(9) that forecasts sunspots.

A value depends on several values before it, so the carry has taps: the step sees the past, and
pushes the new value. PyMC needs only the loop that *draws* the series. It derives the density.
"""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from scipy.stats import norm
from show import beside, picture
from statsmodels.datasets import sunspots
from statsmodels.tsa.ar_model import AutoReg

from pytensor_loop import scan, taps


PHI, SIGMA = np.array([1.2, -0.5]), 0.7
START = np.array([0.3, -0.1])
LAGS, HORIZON = 9, 24


# --- AR(2), drawn by a loop whose density PyMC derives --------------------------------------------


def ar2(phi, sigma, start, n_steps, size=None):
    """Draw a series that looks two values back; ``start`` has the two before it, oldest first."""
    rng = pt.random.shared_rng(seed=None)

    def draw(carry, _):
        rng, past = carry
        before, last = past
        mu = phi[0] * last + phi[1] * before
        rng, value = pm.Normal.dist(mu, sigma, rng=rng, return_next_rng=True)
        return (rng, past.push_tap(value)), value

    _, series = scan(draw, (rng, taps(start, [-2, -1])), n_steps=n_steps)
    return series


def ar2_log_densities(observed):
    """Return the log-density of every value: as PyMC derives it, and by the innovations."""
    series = pm.CustomDist.dist(
        PHI, SIGMA, START, len(observed), dist=ar2, signature="(p),(),(p),()->(t)"
    )
    derived = pm.logp(series, observed).eval()
    padded = np.concatenate([START, observed])
    innovations = padded[2:] - PHI[0] * padded[1:-1] - PHI[1] * padded[:-2]
    return derived, norm.logpdf(innovations, scale=SIGMA)


def simulate(length, seed=1):
    """Draw a series by the loop itself."""
    series = ar2(PHI, SIGMA, START, length)
    return pm.draw(series, random_seed=seed)


# --- AR(9), fitted by statsmodels, forecast by continuing the loop --------------------------------


def compile_forecast(constant, phi, mode=None):
    """Return ``forecast(history, horizon)``: one-step predictions of the past, and the future.

    `phi` has the coefficient of the last value first.
    """

    def predict(past):
        return constant + sum(phi[lag] * past.tap(-1 - lag) for lag in range(len(phi)))

    def follow(past, seen):
        return past.push_tap(seen), predict(past)

    def dream(past, _):
        value = predict(past)
        return past.push_tap(value), value

    history, horizon = pt.vector("history"), pt.iscalar("horizon")
    start = taps(history[: len(phi)], list(range(-len(phi), 0)))
    past, predicted = scan(follow, start, xs=history[len(phi) :])
    # The last values of one loop are the first past of the next.
    _, future = scan(dream, past, n_steps=horizon)
    return pytensor.function([history, horizon], [predicted, future], mode=mode)


def load_sunspots():
    """Return the years 1700 to 2008 and their numbers of sunspots."""
    table = sunspots.load_pandas().data
    return table["YEAR"].to_numpy(), table["SUNACTIVITY"].to_numpy()


def fit_sunspots(activity):
    """Fit an AR(9) with a constant by least squares, with statsmodels."""
    return AutoReg(activity, lags=LAGS).fit()


def main():
    """Print both checks, and draw the forecast."""
    observed = simulate(100)
    derived, by_hand = ar2_log_densities(observed)
    years, activity = load_sunspots()
    fitted = fit_sunspots(activity)
    forecast = compile_forecast(fitted.params[0], fitted.params[1:])
    predicted, future = forecast(activity, HORIZON)
    reference = fitted.forecast(HORIZON)
    nothing = forecast(activity, 0)[1]
    beside("AR(2) of 100 values", {"log-density": (derived.sum(), by_hand.sum())})
    beside(
        "Sunspots by an AR(9)",
        {
            "prediction of 2008": (predicted[-1], fitted.fittedvalues[-1]),
            "forecast of 2009": (future[0], reference[0]),
            f"forecast of {2008 + HORIZON}": (future[-1], reference[-1]),
            "values at horizon 0": (len(nothing), 0),
        },
    )
    with picture("ar") as ax:
        ax.plot(years[-100:], activity[-100:], color="0.2", label="observed")
        ax.plot(years[-100:], predicted[-100:], color="C0", linewidth=0.8, label="one year ahead")
        ahead = years[-1] + 1 + np.arange(HORIZON)
        ax.plot(ahead, future, color="C3", label=f"{HORIZON} years ahead")
        ax.set(xlabel="year", ylabel="sunspots")
        ax.legend(loc="upper left", fontsize="small")
    return {
        "log_densities": (derived, by_hand),
        "predicted": (predicted, fitted.fittedvalues),
        "forecast": (future, reference),
        "nothing": nothing,
    }


if __name__ == "__main__":
    main()
