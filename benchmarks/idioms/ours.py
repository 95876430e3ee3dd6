"""A loop of this package."""

import pytensor_loop.backends.numba  # noqa: F401  (else imported when the first loop is compiled)
from idioms import leaves
from pytensor_loop import scan


def loop(step, init, xs=None, n_steps=None, captured=(), stop=None, *, traced=False):
    """Build a loop with ``pytensor_loop.scan``."""

    def step_fn(carry, x):
        new = step(carry, x, *captured)
        y = leaves(new)[0] if traced else None
        return (new, y) if stop is None else (new, y, stop(carry, new))

    final, ys, *_ = scan(step_fn, init, xs, n_steps)
    return ys if traced else leaves(final)[0]
