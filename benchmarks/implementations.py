"""How each implementation builds a program, compiles it, and takes its arguments.

``build`` is all that comes before compiling. ``compile`` returns a function, which may go on
compiling when it is first called. ``warm_up`` compiles something trivial, so that the start of a
compiler is not charged to a loop. ``convert`` brings an argument into the form that costs nothing
to pass.
"""

from dataclasses import dataclass
from functools import partial
from importlib import import_module

import jax
import jax.numpy as jnp
import numba
import numpy as np
import pytensor
import pytensor.tensor as pt


@dataclass(frozen=True)
class OnPyTensor:
    """A loop that PyTensor compiles to Numba; its idiom is imported only where it is measured."""

    label: str
    idiom: str

    def variants(self, problem):
        return problem.variants

    def build(self, problem, variant, _values):
        loop = import_module(f"idioms.{self.idiom}").loop
        return problem.graph(partial(loop, traced=variant == "trace"), variant)

    def compile(self, graph):
        return pytensor.function(*graph, mode="NUMBA", trust_input=True)

    def warm_up(self):
        import_module(f"idioms.{self.idiom}")
        x = pt.vector("x")
        self.compile(([x], [x + 1]))(np.ones(3))

    def convert(self, value):
        return value


class OnJax:
    """A loop of ``jax.lax.scan``; its functions wait for their results."""

    label = "jax.lax.scan"

    def variants(self, problem):
        return problem.by_jax

    def build(self, problem, variant, values):
        # A new function each time: JAX remembers what it traced.
        function = jax.jit(lambda *values: problem.by_jax[variant](*values))  # noqa: PLW0108
        return function, function.lower(*values)

    def compile(self, program):
        function, lowered = program
        lowered.compile()
        return lambda *values: jax.block_until_ready(function(*values))

    def warm_up(self):
        jax.jit(lambda x: x + 1)(jnp.ones(3))

    def convert(self, value):
        return jnp.asarray(value)


class ByHand:
    """A loop written for Numba; there is nothing to build."""

    label = "hand-written Numba"

    def variants(self, problem):
        return problem.by_hand

    def build(self, problem, variant, _values):
        return problem.by_hand[variant]

    def compile(self, function):
        return function

    def warm_up(self):
        numba.njit(lambda x: x + 1)(np.ones(3))

    def convert(self, value):
        return value


IMPLEMENTATIONS = {
    "ours": OnPyTensor("ours", "ours"),
    "hand": ByHand(),
    "jax": OnJax(),
    "pytensor": OnPyTensor("PyTensor's Numba", "pytensors"),
}
