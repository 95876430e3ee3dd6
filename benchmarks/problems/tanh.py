"""A vector through a matrix: ``h = tanh(A h + x)``."""

import jax
import jax.numpy as jnp
import numpy as np
import pytensor.tensor as pt

from problems._problem import Problem, jit


def _values(n_steps, d):
    rng = np.random.default_rng(2)
    # A rotation and small inputs: gradients that vanish would measure subnormal arithmetic.
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    return [rng.normal(size=(n_steps, d)) * 1e-3, rotation, rng.normal(size=d) * 1e-3]


def _graph(loop, variant):
    x, a, h0 = pt.matrix("x"), pt.matrix("a"), pt.vector("h0")
    h = loop(lambda h, x, a: pt.tanh(a @ h + x), h0, xs=x, captured=[a])
    return [x, a, h0], pt.grad(h.sum(), [a, h0]) if variant == "grad" else [h]


def _by_jax(x, a, h):
    return jax.lax.scan(lambda h, x: (jnp.tanh(a @ h + x),) * 2, h, x)


@jit
def _trace(x, a, h):
    out = np.empty_like(x)
    state = h
    for t in range(x.shape[0]):
        np.dot(a, state, out[t])
        for j in range(h.shape[0]):
            out[t, j] = np.tanh(out[t, j] + x[t, j])
        state = out[t]
    return out


@jit
def _final(x, a, h):
    state, new = h.copy(), np.empty_like(h)
    for t in range(x.shape[0]):
        np.dot(a, state, new)
        for j in range(h.shape[0]):
            state[j] = np.tanh(new[j] + x[t, j])
    return state


@jit
def _grad(x, a, h):
    states = _trace(x, a, h)
    n, d = x.shape
    back, inner = np.ones(d), np.empty((n, d))
    columns = np.ascontiguousarray(a.T)
    for t in range(n - 1, -1, -1):
        for j in range(d):
            inner[t, j] = back[j] * (1 - states[t, j] ** 2)
        np.dot(columns, inner[t], back)
    grad = np.dot(inner[1:].T, states[:-1]) + np.outer(inner[0], h)
    return grad, back


def tanh(d):
    """Return the loop of a vector of `d` numbers."""
    return Problem(
        f"tanh d={d}",
        10_000,
        lambda n_steps: _values(n_steps, d),
        ("trace", "final", "grad"),
        _graph,
        {
            "trace": lambda *values: _by_jax(*values)[1],
            "final": lambda *values: _by_jax(*values)[0],
            "grad": jax.grad(lambda *values: _by_jax(*values)[0].sum(), (1, 2)),
        },
        {"trace": _trace, "final": _final, "grad": _grad},
    )
