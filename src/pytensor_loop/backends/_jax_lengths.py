"""The check of lengths on JAX, where lengths are known when the function is traced."""

from collections.abc import Callable
from typing import Any

import jax
from pytensor.graph.basic import Apply
from pytensor.link.jax.dispatch.basic import jax_funcify

from pytensor_loop._agree import AgreeingLengths


@jax_funcify.register(AgreeingLengths)
def jax_funcify_agreeing_lengths(op: AgreeingLengths, node: Apply, **_: Any) -> Callable[..., Any]:
    """Return a check of the lengths that are known, and one on the host of those that are not."""

    def check_on_host(*lengths: Any) -> None:
        op.check([int(length) for length in lengths])

    def agreeing_lengths(value: Any, *lengths: Any) -> Any:
        if not any(isinstance(length, jax.core.Tracer) for length in lengths):
            check_on_host(*lengths)
        elif len(lengths) > 1:  # n_steps given as an input, beside the lengths of xs
            jax.debug.callback(check_on_host, *lengths)
        return value

    return agreeing_lengths
