"""The logistic map ``x = r x (1 - x)``, in a regime without chaos."""

import jax
import numpy as np
import pytensor.tensor as pt

from problems._problem import Problem, jit


N_STEPS = 100_000


def _graph(loop, _variant):
    r, x0 = pt.scalar("r"), pt.scalar("x0")
    x = loop(lambda x, _, r: r * x * (1 - x), x0, n_steps=N_STEPS, captured=[r])
    return [r, x0], [x]


def _by_jax(r, x):
    return jax.lax.scan(lambda x, _: (r * x * (1 - x),) * 2, x, length=N_STEPS)


@jit
def _trace(r, x):
    out = np.empty(N_STEPS)
    state, rate = x.item(), r.item()
    for t in range(N_STEPS):
        state = rate * state * (1.0 - state)
        out[t] = state
    return out


@jit
def _final(r, x):
    state, rate = x.item(), r.item()
    for _ in range(N_STEPS):
        state = rate * state * (1.0 - state)
    return state


LOGISTIC = Problem(
    "logistic map",
    N_STEPS,
    lambda _: [np.array(3.2), np.array(0.4)],
    ("trace", "final"),
    _graph,
    {"trace": lambda *values: _by_jax(*values)[1], "final": lambda *values: _by_jax(*values)[0]},
    {"trace": _trace, "final": _final},
)
