"""A square root by damped Newton steps, which stops after some thousands."""

import jax
import jax.numpy as jnp
import numpy as np
import pytensor.tensor as pt

from problems._problem import Problem, jit


MOST_STEPS = 100_000


def _step(x, a):
    return x - 1e-3 * (x - a / x)


def _graph(loop, _variant):
    a = pt.scalar("a")
    x = loop(
        lambda x, _, a: _step(x, a),
        pt.constant(1.0, dtype="float64"),
        n_steps=MOST_STEPS,
        captured=[a],
        stop=lambda old, new: pt.abs(new - old) < 1e-12,
    )
    return [a], [x]


def _by_jax(a):
    def body(carry):
        i, x, _ = carry
        new = _step(x, a)
        return i + 1, new, jnp.abs(new - x) < 1e-12

    def goes_on(carry):
        return (carry[0] < MOST_STEPS) & ~carry[2]

    return jax.lax.while_loop(goes_on, body, (0, 1.0, False))[1]


@jit
def _final(a):
    target = a.item()
    x = 1.0
    for _ in range(MOST_STEPS):
        new = x - 1e-3 * (x - target / x)
        done = abs(new - x) < 1e-12
        x = new
        if done:
            break
    return x


NEWTON = Problem(
    "Newton, stopped",
    MOST_STEPS,
    lambda _: [np.array(2.0)],
    ("trace", "final"),
    _graph,
    {"final": _by_jax},
    {"final": _final},
)
