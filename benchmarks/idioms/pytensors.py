"""A loop of PyTensor alone."""

import pytensor
from pytensor.scan.utils import until

from idioms import leaves


def loop(step, init, xs=None, n_steps=None, captured=(), stop=None, *, traced=False):
    """Build a loop with ``pytensor.scan``."""
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
