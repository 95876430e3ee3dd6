"""The check of lengths, compiled by Numba."""

from hashlib import sha256
from typing import Any

from pytensor.graph.basic import Apply
from pytensor.link.numba.cache import compile_numba_function_src
from pytensor.link.numba.dispatch import basic as numba_basic
from pytensor.link.numba.dispatch.basic import register_funcify_and_cache_key

from pytensor_loop._agree import AgreeingLengths


@register_funcify_and_cache_key(AgreeingLengths)
def numba_funcify_agreeing_lengths(op: AgreeingLengths, node: Apply, **_: Any) -> tuple[Any, str]:
    """Return the compiled check and the key under which it is cached."""
    names = [f"length_{i}" for i in range(len(op.labels))]
    found = " + ', ' + ".join(
        f"{label + ' '!r} + str({name})" for label, name in zip(op.labels, names, strict=True)
    )
    agree = " == ".join(names) if len(names) > 1 else "True"
    unboxed = "\n    ".join(f"{name} = {name}.item()" for name in names)
    source = f"""
def agreeing_lengths(value, {", ".join(names)}):
    {unboxed}
    if not ({agree}) or {names[0]} < 0:
        if {" or ".join(f"{name} < 0" for name in names)}:
            raise ValueError({op.negative + ": "!r} + {found})
        raise ValueError({op.opening + ": "!r} + {found} + {". " + op.closing!r})
    return value
"""
    function = compile_numba_function_src(source, "agreeing_lengths")
    return numba_basic.numba_njit(function), sha256(source.encode()).hexdigest()
