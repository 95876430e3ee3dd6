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
    """Return the compiled check and the key under which it is cached.

    Each comparison has a message of its own, without the lengths: Numba loses what an exception is
    made of when the function runs, once it has been read from the cache on disk.
    """
    first, *others = op.labels
    names = [f"length_{i}" for i in range(len(op.labels))]
    checks = [
        f"if {names[0]}.item() < 0:\n        raise ValueError({op.negative + ': ' + first!r})"
    ]
    for label, name in zip(others, names[1:], strict=True):
        message = f"{op.opening}: {first} and {label} differ. {op.closing}"
        checks.append(
            f"if {name}.item() != {names[0]}.item():\n        raise ValueError({message!r})"
        )
    body = "\n    ".join(checks)
    source = f"def agreeing_lengths(value, {', '.join(names)}):\n    {body}\n    return value\n"
    function = compile_numba_function_src(source, "agreeing_lengths")
    return numba_basic.numba_njit(function), sha256(source.encode()).hexdigest()
