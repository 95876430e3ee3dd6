"""Numba: this package's own lowering of PyTensor's Scan Op.

Importing this module registers it, for every loop that PyTensor compiles to Numba: those of this
package, those of ``pytensor.scan`` and of PyMC, and the loops of gradients. It computes what
PyTensor's lowering computes, to rounding. ``PYTENSOR_LOOP_NUMBA=0`` in the environment, or
:func:`use_lowering`, gives PyTensor's back.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytensor.link.numba.dispatch.scan  # noqa: F401  (registers PyTensor's lowering, which comes first)
from pytensor.graph.basic import Apply
from pytensor.link.numba.dispatch import basic as numba_basic
from pytensor.link.numba.dispatch.basic import (
    numba_funcify_and_cache_key,
    register_funcify_and_cache_key,
)
from pytensor.scan.op import Scan

from pytensor_loop.backends._numba_loop import compile_loop


_pytensor_lowering = numba_funcify_and_cache_key.dispatch(Scan)
_enabled = os.environ.get("PYTENSOR_LOOP_NUMBA", "1") != "0"


@contextmanager
def use_lowering(enabled: bool) -> Iterator[None]:
    """Choose who lowers the loops that are compiled inside the block.

    Parameters
    ----------
    enabled
        True: this package. False: PyTensor.

    Notes
    -----
    A compiled function keeps the lowering it was compiled with, and the two never share compiled
    code on disk.

    Examples
    --------
    >>> with use_lowering(False):
    ...     pass  # f = pytensor.function(inputs, outputs, mode="NUMBA")
    """
    global _enabled  # noqa: PLW0603  (a switch for the process, as PyTensor's own configuration is)
    before, _enabled = _enabled, enabled
    try:
        yield
    finally:
        _enabled = before


def is_enabled() -> bool:
    """Return whether this package lowers the loops that are compiled now."""
    return _enabled and _is_compiling()


def _is_compiling() -> bool:
    """Return whether Numba compiles at all: the generated code reads memory as Python cannot."""
    return numba_basic.numba_njit(_is_compiling) is not _is_compiling


@register_funcify_and_cache_key(Scan)
def _funcify_scan(op: Scan, node: Apply, **kwargs: Any) -> tuple[Any, str | None]:
    if not is_enabled():
        lowered: tuple[Any, str | None] = _pytensor_lowering(op, node=node, **kwargs)
        return lowered
    return compile_loop(op, node, {"ofg_memo": kwargs.get("ofg_memo")})
