"""Cyclic reduction: solve a linear model of rational expectations.

The model is ``A x[t-1] + B x[t] + C E x[t+1] + D shock[t] = 0``. Its solution, ``x[t] = G x[t-1]``
and a shock, satisfies ``A + B G + C G G = 0``. Each step of cyclic reduction halves the time that
is left between what is known and what is expected, and squares the error: the loop stops after a
few steps. Only ``final`` is asked for, and its gradient goes back through the steps that ran.
"""

import numpy as np
import pytensor
import pytensor.tensor as pt
from show import beside

from pytensor_loop import scan


def known_system(seed=0):
    """Return A, B, C of a model whose solution is known, and that solution.

    C G + B is chosen such that the roots left over are unstable, which makes G the only stable one.
    """
    generator = np.random.default_rng(seed)
    basis = generator.normal(size=(4, 4))
    solution = basis @ np.diag([0.9, 0.7, -0.5, 0.2]) @ np.linalg.inv(basis)
    forward = 0.3 * np.eye(4) + 0.02 * generator.normal(size=(4, 4))
    middle = -np.eye(4) + 0.02 * generator.normal(size=(4, 4))
    # (C z + B + C G)(z - G) = C z z + B z - (B + C G) G for every z
    return -(middle + forward @ solution) @ solution, middle, forward, solution


def solve(a, b, c, tolerance=1e-14, most=60):
    """Return the stable solution G, and whether the loop converged."""

    def halve(carry, _):
        past, now, ahead, corner = carry["past"], carry["now"], carry["ahead"], carry["corner"]
        from_past, from_ahead = pt.linalg.solve(now, past), pt.linalg.solve(now, ahead)
        new_carry = {
            "past": -past @ from_past,
            "now": now - past @ from_ahead - ahead @ from_past,
            "ahead": -ahead @ from_ahead,
            "corner": corner - ahead @ from_past,
        }
        return new_carry, None, pt.abs(new_carry["past"]).sum() < tolerance

    start = {"past": a, "now": b, "ahead": c, "corner": b}
    final, _, done = scan(halve, start, n_steps=most)
    return -pt.linalg.solve(final["corner"], a), done


def compile_solver(mode=None):
    """Return a function of A, B, C: G, whether it converged, the derivatives of G[0, 1]."""
    matrices = [pt.matrix(name, shape=(4, 4)) for name in "ABC"]
    solution, done = solve(*matrices)
    gradients = pt.grad(solution[0, 1], matrices)
    return pytensor.function(matrices, [solution, done, *gradients], mode=mode)


def finite_differences(solver, matrices, which, step=1e-4):
    """Return the derivatives of G[0, 1] by differences of the fourth order."""
    result = np.empty((4, 4))
    for place in np.ndindex(4, 4):

        def moved(by, place=place):
            changed = [matrix.copy() for matrix in matrices]
            changed[which][place] += by
            return solver(*changed)[0][0, 1]

        near, far = (moved(k * step) - moved(-k * step) for k in (1, 2))
        result[place] = (8 * near - far) / (12 * step)
    return result


def residual(a, b, c, g):
    """Return the largest entry of ``A + B G + C G G``."""
    return np.abs(a + b @ g + c @ g @ g).max()


def main():
    """Print the solution beside the known one, and one derivative beside finite differences."""
    *matrices, known = known_system()
    solver = compile_solver()
    found, done, *gradients = solver(*matrices)
    assert done
    differences = [finite_differences(solver, matrices, which) for which in range(3)]
    numbers = {"largest residual": (residual(*matrices, found), 0.0)}
    numbers |= {f"G[{i}, {j}]": (found[i, j], known[i, j]) for i, j in [(0, 0), (1, 2), (3, 3)]}
    numbers |= {
        f"dG[0, 1] / d{name}[0, 0]": (gradient[0, 0], difference[0, 0])
        for name, gradient, difference in zip("ABC", gradients, differences, strict=True)
    }
    beside("Cyclic reduction of a model of four equations", numbers, ".10g")
    return {
        "residual": residual(*matrices, found),
        "solution": (found, known),
        "gradients": (gradients, differences),
        "done": done,
    }


if __name__ == "__main__":
    main()
