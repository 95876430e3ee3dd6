"""The check of lengths on JAX, where lengths are known when the function is traced."""

from collections.abc import Callable
from typing import Any

import jax
from pytensor.graph.basic import Apply
from pytensor.link.jax.dispatch.basic import jax_funcify

from pytensor_loop._agree import AgreeingLengths


@jax_funcify.register(AgreeingLengths)
def jax_funcify_agreeing_lengths(op: AgreeingLengths, node: Apply, **_: Any) -> Callable[..., Any]:
    """Return a check of the lengths that are known; a length given as an input is not."""

    def agreeing_lengths(value: Any, *lengths: Any) -> Any:
        if not any(isinstance(length, jax.core.Tracer) for length in lengths):
            op.check([int(length) for length in lengths])
        return value

    return agreeing_lengths
