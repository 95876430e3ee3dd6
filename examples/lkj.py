"""Random correlation matrices by the onion method, one row at a time (Lewandowski et al., 2009).

Start from a correlation of two variables and wrap rows around it. For n variables the loop runs
over ``arange(2, n)``: for n = 2 it takes no steps, and that is no special case.
"""

import numpy as np
import pytensor
import pytensor.tensor as pt
from show import beside, picture

from pytensor_loop import scan


def lkj_cholesky(rng, n, eta):
    """Return the generator, and the Cholesky factor of a random n by n correlation matrix."""
    beta = eta + n / 2 - 1
    rng, uniform = pt.random.beta(beta, beta, rng=rng, return_next_rng=True)
    correlation = 2 * uniform - 1
    factor = pt.zeros((n, n))[0, 0].set(1.0)
    factor = factor[1, 0].set(correlation)[1, 1].set(pt.sqrt(1 - correlation**2))

    def wrap(carry, row):
        rng, factor = carry
        rng, squared = pt.random.beta(row / 2, beta - (row - 1) / 2, rng=rng, return_next_rng=True)
        rng, direction = pt.random.normal(size=n, rng=rng, return_next_rng=True)
        # A direction in the first `row` coordinates.
        direction = pt.switch(pt.arange(n) < row, direction, 0.0)
        direction = direction / pt.sqrt(pt.sum(direction**2))
        new_row = pt.sqrt(squared) * direction
        factor = factor[row].set(new_row)[row, row].set(pt.sqrt(1 - squared))
        return (rng, factor), None

    (rng, factor), _ = scan(wrap, (rng, factor), xs=pt.arange(2, n))
    return rng, factor


def compile_sampler(n, mode=None):
    """Return ``sample(generator, eta)``: the generator afterwards, and the correlation matrix."""
    rng = pt.random.type.random_generator_type("rng")
    eta = pt.dscalar("eta")
    next_rng, factor = lkj_cholesky(rng, n, eta)
    return pytensor.function([rng, eta], [next_rng, factor @ factor.T], mode=mode)


def lkj_numpy(generator, n, eta):
    """Return the same, by a Python loop."""
    beta = eta + n / 2 - 1
    correlation = 2 * generator.beta(beta, beta) - 1
    factor = np.zeros((n, n))
    factor[0, 0] = 1
    factor[1, :2] = correlation, np.sqrt(1 - correlation**2)
    for row in range(2, n):
        squared = generator.beta(row / 2, beta - (row - 1) / 2)
        direction = generator.normal(size=n)[:row]
        factor[row, :row] = np.sqrt(squared) * direction / np.sqrt((direction**2).sum())
        factor[row, row] = np.sqrt(1 - squared)
    return generator, factor @ factor.T


def main():
    """Compare both loops from one seed, and draw how concentrated the correlations are."""
    results = {}
    for n in (2, 3, 6):
        sample = compile_sampler(n)
        ours, theirs = (
            sample(np.random.default_rng(n), 2.0),
            lkj_numpy(np.random.default_rng(n), n, 2.0),
        )
        beside(
            f"Correlations of {n} variables",
            {
                "last off the diagonal": (ours[1][-1, -2], theirs[1][-1, -2]),
                "next number of the generator": (ours[0].random(), theirs[0].random()),
            },
            ".15g",
        )
        results[n] = ours, theirs
    # After the last turn of the loop above, `sample` draws matrices of six variables.
    with picture("lkj") as ax:
        for eta in (1, 4, 20):
            generator, draws = np.random.default_rng(0), []
            for _ in range(2000):
                generator, matrix = sample(generator, eta)
                draws.append(matrix[np.tril_indices(6, -1)])
            ax.hist(np.ravel(draws), bins=80, density=True, histtype="step", label=f"eta = {eta}")
        ax.set(xlabel="correlation of two out of six variables")
        ax.legend(fontsize="small")
    return results


if __name__ == "__main__":
    main()
