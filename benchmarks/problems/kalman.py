"""The log-likelihood of a local linear trend: a Kalman filter of a level and a slope."""

import jax
import jax.numpy as jnp
import numpy as np
import pytensor.tensor as pt

from problems._problem import Problem, jit


TRANSITION = np.array([[1.0, 1.0], [0.0, 1.0]])
OBSERVE = np.array([1.0, 0.0])


def _values(n_steps):
    rng = np.random.default_rng(4)
    return [rng.normal(size=n_steps).cumsum(), np.array([0.5, 0.1, 1.0])]


def _step(xp, carry, y, noise, r):
    """Return the log-likelihood so far, and the new state and covariance."""
    total, a, p = carry
    a = TRANSITION @ a
    p = TRANSITION @ p @ TRANSITION.T + noise
    v = y - OBSERVE @ a
    pz = p @ OBSERVE
    f = OBSERVE @ pz + r
    gain = pz / f
    return total - 0.5 * (xp.log(f) + v**2 / f), a + gain * v, p - xp.outer(gain, pz)


def _graph(loop, variant):
    y, variances = pt.vector("y"), pt.vector("variances", shape=(3,))
    init = pt.constant(0.0, dtype="float64"), pt.zeros(2), pt.constant(np.eye(2) * 10)
    captured = [pt.diag(variances[:2]), variances[2]]
    value = loop(lambda *values: _step(pt, *values), init, xs=y, captured=captured)
    grads = [pt.grad(value, variances)] if variant == "grad" else []
    return [y, variances], [value, *grads]


def _by_jax(y, variances):
    noise, r = jnp.diag(variances[:2]), variances[2]
    init = 0.0, jnp.zeros(2), jnp.eye(2) * 10
    return jax.lax.scan(lambda carry, y: (_step(jnp, carry, y, noise, r), None), init, y)[0][0]


@jit
def _final(y, variances):
    """Return the log-likelihood by an unrolled filter that uses the covariance's symmetry."""
    a0, a1 = 0.0, 0.0
    p00, p01, p11 = 10.0, 0.0, 10.0
    q0, q1, r = variances
    total = 0.0
    for t in range(y.shape[0]):
        a0 += a1
        p00, p01, p11 = p00 + 2 * p01 + p11 + q0, p01 + p11, p11 + q1
        f = p00 + r
        v = y[t] - a0
        k0, k1 = p00 / f, p01 / f
        total -= 0.5 * (np.log(f) + v * v / f)
        a0 += k0 * v
        a1 += k1 * v
        p00, p01, p11 = p00 - k0 * p00, p01 - k0 * p01, p11 - k1 * p01
    return total


KALMAN = Problem(
    "Kalman 2",
    1000,
    _values,
    ("final", "grad"),
    _graph,
    {"final": _by_jax, "grad": jax.value_and_grad(_by_jax, 1)},
    {"final": _final},
)
