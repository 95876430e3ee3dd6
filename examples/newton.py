"""Newton's method: loops that stop when the answer no longer changes, with their derivatives.

Two roots: the Babylonian square root, and the quantile of a gamma distribution. The gradient of
``final`` goes back through exactly the steps that ran. At a fixed point this is the derivative of
the answer itself.
"""

import numpy as np
import pytensor
import pytensor.tensor as pt
from scipy.stats import gamma
from show import beside

from pytensor_loop import scan


def square_root(number, most=60):
    """Return the root, whether it was found, and the guesses, as the Babylonians did it."""

    def average(guess, _):
        better = 0.5 * (guess + number / guess)
        return better, better, pt.abs(better - guess) <= 1e-14 * better

    final, guesses, done = scan(average, pt.maximum(number, 1.0), n_steps=most)
    return final, done, guesses


def gamma_quantile(probability, shape, most=100):
    """Return the quantile of a gamma distribution of scale one, and whether it was found."""

    def improve(x, _):
        log_density = (shape - 1) * pt.log(x) - x - pt.gammaln(shape)
        step = (pt.gammainc(shape, x) - probability) / pt.exp(log_density)
        # Half of the way down at most: x stays positive.
        better = pt.maximum(x - step, 0.5 * x)
        return better, None, pt.abs(better - x) <= 1e-14 * x

    final, _, done = scan(improve, shape, n_steps=most)
    return final, done


def compile_square_root(mode=None):
    """Return a function of a number: root, done, guesses, derivative of the root."""
    number = pt.dscalar("number")
    root, done, guesses = square_root(number)
    return pytensor.function([number], [root, done, guesses, pt.grad(root, number)], mode=mode)


def compile_gamma_quantile(mode=None):
    """Return a function of probability and shape: quantile, done, derivative by probability."""
    probability, shape = pt.dscalar("probability"), pt.dscalar("shape")
    quantile, done = gamma_quantile(probability, shape)
    derivative = pt.grad(quantile, probability)
    return pytensor.function([probability, shape], [quantile, done, derivative], mode=mode)


def quantile_slope(probability, shape):
    """Return the derivative of SciPy's quantile by finite differences of the fourth order."""
    step = 1e-3 * min(probability, 1 - probability)
    near, far = (
        gamma.ppf(probability + k * step, shape) - gamma.ppf(probability - k * step, shape)
        for k in (1, 2)
    )
    return (8 * near - far) / (12 * step)


def main():
    """Print roots and slopes beside their references."""
    root, done, guesses, slope = compile_square_root()(2.0)
    assert done
    beside(
        f"The square root of two, in {len(guesses)} steps",
        {"root": (root, np.sqrt(2)), "its derivative": (slope, 0.5 / np.sqrt(2))},
        ".15g",
    )
    quantile = compile_gamma_quantile()
    found = {(p, a): quantile(p, a) for p in (0.05, 0.5, 0.99) for a in (0.7, 3.0, 40.0)}
    beside(
        "Quantiles of gamma distributions",
        {f"{p:g} of shape {a:g}": (q, gamma.ppf(p, a)) for (p, a), (q, _, _) in found.items()},
        ".15g",
    )
    beside(
        "Their derivatives, beside finite differences",
        {f"{p:g} of shape {a:g}": (d, quantile_slope(p, a)) for (p, a), (_, _, d) in found.items()},
        ".10g",
    )
    return {"root": (root, slope), "quantiles": found}


if __name__ == "__main__":
    main()
