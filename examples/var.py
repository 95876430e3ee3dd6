"""A VAR(1): matrix powers, impulse responses and a path, by loops that carry matrices and vectors.

Growth of income, consumption and investment in the United States, by quarters. The model is fitted
by statsmodels, whose impulse responses are the reference.
"""

import numpy as np
import pytensor
import pytensor.tensor as pt
from show import beside, picture
from statsmodels.datasets import macrodata
from statsmodels.tsa.api import VAR

from pytensor_loop import scan


COLUMNS = ["realgdp", "realcons", "realinv"]
NAMES = ["income", "consumption", "investment"]
PERIODS = 12


def fit_growth():
    """Return the VAR(1) that statsmodels fits to the growth of each quarter."""
    levels = macrodata.load_pandas().data[COLUMNS].to_numpy()
    return VAR(np.diff(np.log(levels), axis=0)).fit(1)


def powers(matrix, n_steps):
    """Return the powers of a matrix from the zeroth on, n_steps of them, and the next one."""
    # The old carry is what is stacked: the first row is the start, the identity.
    return scan(lambda power, _: (matrix @ power, power), pt.eye(matrix.shape[0]), n_steps=n_steps)


def respond(matrix, shocks):
    """Return where a series of vector shocks leads, starting from zero."""

    def move(x, shock):
        new_x = matrix @ x + shock
        return new_x, new_x

    _, path = scan(move, pt.zeros(matrix.shape[0]), xs=shocks)
    return path


def compile_loops(mode=None):
    """Return functions: powers and next power of a matrix, and the path after shocks."""
    matrix, shocks = pt.matrix("matrix"), pt.matrix("shocks")
    n_steps = pt.lscalar("n_steps")
    last, stacked = powers(matrix, n_steps)
    return (
        pytensor.function([matrix, n_steps], [stacked, last], mode=mode),
        pytensor.function([matrix, shocks], respond(matrix, shocks), mode=mode),
    )


def orthogonal_responses(matrix_powers, covariance):
    """Return responses to shocks that do not move together."""
    return matrix_powers @ np.linalg.cholesky(covariance)


def main():
    """Print powers and responses beside NumPy and statsmodels, and draw the responses."""
    fitted = fit_growth()
    matrix, covariance = fitted.coefs[0], np.asarray(fitted.sigma_u)
    power, path = compile_loops()
    stacked, last = power(matrix, PERIODS + 1)
    responses = orthogonal_responses(stacked, covariance)
    reference = fitted.irf(PERIODS)
    shocks = fitted.resid
    simulated = path(matrix, shocks)
    # The same path, by the moving average of shocks that the powers are.
    by_powers = sum(
        np.linalg.matrix_power(matrix, lag) @ shocks[-1 - lag] for lag in range(len(shocks))
    )
    beside(
        "A VAR(1) of growth",
        {
            "13th power, one entry": (last[0, 1], np.linalg.matrix_power(matrix, 13)[0, 1]),
            "response after 1 quarter": (stacked[1, 2, 1], reference.irfs[1, 2, 1]),
            "after 12 quarters": (stacked[12, 2, 1], reference.irfs[12, 2, 1]),
            "orthogonal, after 3": (responses[3, 2, 0], reference.orth_irfs[3, 2, 0]),
            "end of the path": (simulated[-1, 0], by_powers[0]),
        },
    )
    with picture("var", columns=3) as axes:
        for i, (ax, name) in enumerate(zip(axes, NAMES, strict=True)):
            ax.plot(100 * responses[:, i, :], label=NAMES)
            ax.axhline(0, color="0.5", linewidth=0.6)
            ax.set(title=f"{name}, percent", xlabel="quarter")
        axes[0].legend(fontsize="small", title="to a shock of")
    return {
        "powers": (stacked, last),
        "matrix": matrix,
        "responses": (stacked, reference.irfs),
        "orthogonal": (responses, reference.orth_irfs),
        "path": (simulated[-1], by_powers),
    }


if __name__ == "__main__":
    main()
