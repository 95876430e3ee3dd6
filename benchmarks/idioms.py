"""One loop, said to ``pytensor_loop.scan`` and to ``pytensor.scan`` as each wants it said.

Both take ``step(carry, x, *captured)``, which returns the new carry: a leaf or a tuple of leaves.
Both return the first leaf: its last value, or all its rows with ``traced=True``.
"""

import pytensor
from pytensor.scan.utils import until

from pytensor_loop import scan


def our_loop(step, init, xs=None, n_steps=None, captured=(), stop=None, *, traced=False):
    """Build a loop of this package."""

    def step_fn(carry, x):
        new = step(carry, x, *captured)
        y = leaves(new)[0] if traced else None
        return (new, y) if stop is None else (new, y, stop(carry, new))

    final, ys, *_ = scan(step_fn, init, xs, n_steps)
    return ys if traced else leaves(final)[0]


def pytensor_loop(step, init, xs=None, n_steps=None, captured=(), stop=None, *, traced=False):
    """Build a loop of ``pytensor.scan``."""
    size = len(leaves(init))

    def flat_step(*values):
        x, values = (None, values) if xs is None else (values[0], values[1:])
        carry = values[:size] if isinstance(init, tuple) else values[0]
        new = step(carry, x, *values[size:])
        return new if stop is None else (new, until(stop(carry, new)))

    rows = pytensor.scan(
        flat_step,
        sequences=xs,
        outputs_info=leaves(init),
        non_sequences=list(captured),
        n_steps=n_steps,
        return_updates=False,
    )
    return leaves(rows)[0] if traced else leaves(rows)[0][-1]


def leaves(carry):
    """Return a carry as a list."""
    return list(carry) if isinstance(carry, tuple | list) else [carry]
