"""The implementations of a problem, each as a function of no arguments that is ready to run."""

import jax
import jax.numpy as jnp
import numpy as np
import pytensor

from pytensor_loop.backends.numba import use_lowering


def compile_pytensor(problem, variant, enabled):
    """Return a compiled function of no arguments, with our lowering or PyTensor's."""
    inputs, outputs = problem.graph()
    with use_lowering(enabled):
        function = pytensor.function(inputs, outputs[variant], mode="NUMBA", trust_input=True)
        function(*problem.values)
    return lambda: function(*problem.values)


def compile_jax(problem, variant):
    """Return a function of no arguments that waits for its result."""
    values = [jnp.asarray(v) for v in problem.values]
    function = problem.by_jax[variant]
    return lambda: jax.block_until_ready(function(*values))


def compile_hand(problem, variant):
    """Return the loop that was written by hand as a function of no arguments."""
    function = problem.by_hand[variant]
    return lambda: function(*problem.values)


def flat(results):
    """Return results of any implementation as a list of arrays."""
    results = results if isinstance(results, list | tuple) else [results]
    return [np.asarray(leaf) for leaf in jax.tree.leaves(results)]


IMPLEMENTATIONS = {
    "ours": lambda problem, variant: compile_pytensor(problem, variant, enabled=True),
    "pytensor": lambda problem, variant: compile_pytensor(problem, variant, enabled=False),
    "jax": compile_jax,
    "hand": compile_hand,
}


def available(problem, variant, implementation):
    """Return whether an implementation has a variant of a problem."""
    table = {"jax": problem.by_jax, "hand": problem.by_hand}
    if implementation in table:
        return variant in table[implementation]
    return variant in problem.graph()[1]
