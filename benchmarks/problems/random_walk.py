"""A Gaussian random walk that carries its generator."""

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.random.type import random_generator_type

from problems._problem import Problem, jit


N_STEPS = 10_000


def _step(carry, _):
    x, rng = carry
    rng, draw = pt.random.normal(rng=rng).owner.outputs
    return x + draw, rng


def _graph(loop, _variant):
    rng = random_generator_type("rng")
    return [rng], [loop(_step, (pt.constant(0.0, dtype="float64"), rng), n_steps=N_STEPS)]


@jit
def _trace(rng):
    out = np.empty(N_STEPS)
    x = 0.0
    for t in range(N_STEPS):
        x += rng.normal()
        out[t] = x
    return out


RANDOM_WALK = Problem(
    "random walk",
    N_STEPS,
    lambda _: [np.random.default_rng(5)],
    ("trace", "final"),
    _graph,
    by_hand={"trace": _trace},
    random=True,
)
