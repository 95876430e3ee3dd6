"""Lynx and hares: two coupled populations by Euler steps, fitted to the pelts of the Hudson Bay.

The loop has no series to read. It takes a hundred small steps a year for twenty-one years and
carries a dict of two numbers; the step closes over the rates.
"""

import numpy as np
import pytensor
import pytensor.tensor as pt
from scipy.optimize import least_squares
from show import beside, picture

from pytensor_loop import scan


YEARS = np.arange(1900, 1921)
# Pelts of hares and of lynxes in thousands, as collected by the Hudson's Bay Company.
# fmt: off
PELTS = [
    (30.0, 4.0), (47.2, 6.1), (70.2, 9.8), (77.4, 35.2), (36.3, 59.4), (20.6, 41.7),
    (18.1, 19.0), (21.4, 13.0), (22.0, 8.3), (25.4, 9.1), (27.1, 7.4), (40.3, 8.0),
    (57.0, 12.3), (76.6, 19.5), (52.3, 45.7), (19.5, 51.1), (11.2, 29.7), (7.6, 15.8),
    (14.6, 9.7), (16.2, 10.1), (24.7, 8.6),
]
# fmt: on
HARES, LYNXES = np.array(PELTS).T
STEPS_A_YEAR = 100
N_STEPS = STEPS_A_YEAR * len(YEARS)
# Hares: born, eaten; lynxes: dying, fed; and both numbers in 1900.
START = np.array([0.55, 0.028, 0.80, 0.024, 34.0, 5.9])


def populations(parameters, n_steps=N_STEPS):
    """Return the numbers of hares and of lynxes before each small step."""
    born, eaten, dying, fed, hares, lynxes = (parameters[i] for i in range(6))

    def euler(carry, _):
        x, y = carry["hares"], carry["lynxes"]
        new_carry = {
            "hares": x + (born - eaten * y) * x / STEPS_A_YEAR,
            "lynxes": y + (fed * x - dying) * y / STEPS_A_YEAR,
        }
        return new_carry, carry  # the old carry: the first row is the start

    _, path = scan(euler, {"hares": hares, "lynxes": lynxes}, n_steps=n_steps)
    return path


def compile_residuals(mode=None):
    """Return functions of the parameters: log-residuals of each year, their Jacobian, the path."""
    parameters = pt.vector("parameters", shape=(6,))
    path = populations(parameters)
    yearly = [path[name][::STEPS_A_YEAR] for name in ("hares", "lynxes")]
    residuals = pt.concatenate([
        pt.log(yearly[0]) - np.log(HARES),
        pt.log(yearly[1]) - np.log(LYNXES),
    ])
    # One direction at a time, forward: six parameters, and forty-two residuals.
    jacobian = pytensor.gradient.jacobian(residuals, parameters, vectorize=False)
    return (
        pytensor.function([parameters], residuals, mode=mode),
        pytensor.function([parameters], jacobian, mode=mode),
        pytensor.function([parameters], [path["hares"], path["lynxes"]], mode=mode),
    )


def populations_numpy(parameters, n_steps=N_STEPS):
    """Return the same, by a Python loop; complex parameters give derivatives by complex steps."""
    born, eaten, dying, fed, x, y = parameters
    path = []
    for _ in range(n_steps):
        path.append((x, y))
        x, y = (
            x + (born - eaten * y) * x / STEPS_A_YEAR,
            y + (fed * x - dying) * y / STEPS_A_YEAR,
        )
    return np.array(path).T


def jacobian_numpy(parameters, step=1e-30):
    """Return the Jacobian of the log-residuals by complex steps, exact to rounding."""
    columns = []
    for i in range(len(parameters)):
        moved = parameters.astype(complex)
        moved[i] += 1j * step
        yearly = populations_numpy(moved)[:, ::STEPS_A_YEAR]
        columns.append(np.log(yearly).imag.ravel() / step)
    return np.array(columns).T


def main():
    """Fit the rates, print both checks, and draw the populations."""
    residuals, jacobian, path = compile_residuals()
    found = least_squares(residuals, START, jac=jacobian, x_scale=START)
    ours, theirs = np.array(path(found.x)), populations_numpy(found.x)
    slopes, exact = jacobian(found.x), jacobian_numpy(found.x)
    beside(
        f"Lynx and hares after {N_STEPS} steps",
        {
            "hares": (ours[0, -1], theirs[0, -1]),
            "lynxes": (ours[1, -1], theirs[1, -1]),
            "a derivative": (slopes[-1, 0], exact[-1, 0]),
        },
    )
    print("  rates and numbers in 1900:", np.round(found.x, 4))
    with picture("lotka_volterra") as ax:
        time = YEARS[0] + np.arange(N_STEPS) / STEPS_A_YEAR
        for values, pelts, name, color in zip(
            ours, (HARES, LYNXES), ("hares", "lynxes"), ("C0", "C3"), strict=True
        ):
            ax.plot(time, values, color=color, label=name)
            ax.plot(YEARS, pelts, "o", color=color, markersize=4)
        ax.set(xlabel="year", ylabel="thousands of pelts", xticks=YEARS[::5])
        ax.legend(fontsize="small")
    return {"path": (ours, theirs), "jacobian": (slopes, exact), "parameters": found.x}


if __name__ == "__main__":
    main()
