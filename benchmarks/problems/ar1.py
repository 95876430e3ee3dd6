"""A number that decays: ``h = a h + x``."""

import jax
import numpy as np
import pytensor.tensor as pt

from problems._problem import Problem, jit


def _values(n_steps):
    return [np.random.default_rng(1).normal(size=n_steps), np.array(0.9), np.array(0.1)]


def _graph(loop, variant):
    x, a, h0 = pt.vector("x"), pt.scalar("a"), pt.scalar("h0")
    h = loop(lambda h, x, a: a * h + x, h0, xs=x, captured=[a])
    return [x, a, h0], pt.grad(h, [a, h0]) if variant == "grad" else [h]


def _by_jax(x, a, h):
    return jax.lax.scan(lambda h, x: (a * h + x,) * 2, h, x)


@jit
def _trace(x, a, h):
    out = np.empty(x.shape[0])
    state = h.item()
    slope = a.item()
    for t in range(x.shape[0]):
        state = slope * state + x[t]
        out[t] = state
    return out


@jit
def _final(x, a, h):
    state = h.item()
    slope = a.item()
    for t in range(x.shape[0]):
        state = slope * state + x[t]
    return state


@jit
def _grad(x, a, h):
    states = _trace(x, a, h)
    slope = a.item()
    back, grad = 1.0, 0.0
    for t in range(x.shape[0] - 1, 0, -1):
        grad += back * states[t - 1]
        back *= slope
    return grad + back * h.item(), back * slope


AR1 = Problem(
    "AR(1)",
    100_000,
    _values,
    ("trace", "final", "grad"),
    _graph,
    {
        "trace": lambda *values: _by_jax(*values)[1],
        "final": lambda *values: _by_jax(*values)[0],
        "grad": jax.grad(lambda *values: _by_jax(*values)[0], (1, 2)),
    },
    {"trace": _trace, "final": _final, "grad": _grad},
)
