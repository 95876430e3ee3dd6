"""A loop each of whose steps is a loop of 20 steps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytensor.tensor as pt

from problems._problem import Problem, jit


def _values(n_steps):
    return [np.random.default_rng(6).normal(size=(n_steps, 20)), np.array(0.9)]


def _graph(loop, _variant):
    x, a = pt.matrix("x"), pt.scalar("a")

    def step(total, row, a):
        return pt.sin(loop(lambda h, x, a: a * h + x, total, xs=row, captured=[a]))

    return [x, a], [loop(step, pt.constant(0.0, dtype="float64"), xs=x, captured=[a])]


def _by_jax(x, a):
    def step(total, row):
        h, _ = jax.lax.scan(lambda h, x: (a * h + x, None), total, row)
        return jnp.sin(h), None

    return jax.lax.scan(step, 0.0, x)[0]


@jit
def _final(x, a):
    total, slope = 0.0, a.item()
    for i in range(x.shape[0]):
        h = total
        for j in range(x.shape[1]):
            h = slope * h + x[i, j]
        total = np.sin(h)
    return total


NESTED = Problem("nested", 1000, _values, ("final",), _graph, {"final": _by_jax}, {"final": _final})
