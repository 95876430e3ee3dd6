"""The log-likelihood of GARCH(1, 1)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytensor.tensor as pt

from problems._problem import Problem, jit


def _values(n_steps):
    rng = np.random.default_rng(3)
    return [rng.normal(size=n_steps), np.array(0.1), np.array(0.1), np.array(0.8)]


def _step(xp, carry, e, omega, alpha, beta):
    """Return the log-likelihood so far and the next variance."""
    total, s = carry
    return total - 0.5 * (xp.log(s) + e**2 / s), omega + alpha * e**2 + beta * s


def _graph(loop, variant):
    e = pt.vector("e")
    parameters = [pt.scalar(name) for name in ("omega", "alpha", "beta")]
    init = pt.constant(0.0, dtype="float64"), pt.constant(1.0, dtype="float64")
    total = loop(lambda *values: _step(pt, *values), init, xs=e, captured=parameters)
    grads = pt.grad(total, parameters) if variant == "grad" else []
    return [e, *parameters], [total, *grads]


def _by_jax(e, omega, alpha, beta):
    def step(carry, e):
        return _step(jnp, carry, e, omega, alpha, beta), None

    return jax.lax.scan(step, (0.0, 1.0), e)[0][0]


@jit
def _final(e, omega, alpha, beta):
    s, total = 1.0, 0.0
    w, a, b = omega.item(), alpha.item(), beta.item()
    for t in range(e.shape[0]):
        total -= 0.5 * (np.log(s) + e[t] ** 2 / s)
        s = w + a * e[t] ** 2 + b * s
    return total


@jit
def _grad(e, omega, alpha, beta):
    n = e.shape[0]
    s = np.empty(n)
    w, a, b = omega.item(), alpha.item(), beta.item()
    s[0], total = 1.0, 0.0
    for t in range(n):
        total -= 0.5 * (np.log(s[t]) + e[t] ** 2 / s[t])
        if t + 1 < n:
            s[t + 1] = w + a * e[t] ** 2 + b * s[t]
    back, gw, ga, gb = 0.0, 0.0, 0.0, 0.0
    for t in range(n - 1, -1, -1):
        if t + 1 < n:
            gw += back
            ga += back * e[t] ** 2
            gb += back * s[t]
        back = b * back - 0.5 * (1 / s[t] - e[t] ** 2 / s[t] ** 2)
    return total, gw, ga, gb


GARCH = Problem(
    "GARCH(1,1)",
    1974,
    _values,
    ("final", "grad"),
    _graph,
    {"final": _by_jax, "grad": jax.value_and_grad(_by_jax, (1, 2, 3))},
    {"final": _final, "grad": _grad},
)
