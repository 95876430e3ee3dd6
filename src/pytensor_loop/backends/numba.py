"""Numba: this package's own lowering of PyTensor's Scan Op.

Importing this module registers it, for every loop that PyTensor compiles to Numba: those of this
package, those of ``pytensor.scan`` and of PyMC, and the loops of gradients. It computes what
PyTensor's lowering computes, to rounding. ``PYTENSOR_LOOP_NUMBA=0`` in the environment, or
:func:`use_lowering`, gives PyTensor's back.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib.resources import files
from typing import Any

import pytensor.link.numba.dispatch.scan  # noqa: F401  (registers PyTensor's lowering, which comes first)
from pytensor.compile.aliasing import alias_root
from pytensor.graph.basic import Apply, Variable
from pytensor.link.numba.cache import compile_numba_function_src
from pytensor.link.numba.dispatch import basic as numba_basic
from pytensor.link.numba.dispatch.basic import (
    numba_funcify_and_cache_key,
    register_funcify_and_cache_key,
)
from pytensor.scan.op import Scan

from pytensor_loop.backends._numba_loop import write_loop


def _version() -> str:
    """Return a fingerprint of this lowering: once it changes, compiled code is of no use."""
    here = files("pytensor_loop.backends")
    sources = sorted(
        (f for f in here.iterdir() if "numba" in f.name and f.name.endswith(".py")),
        key=lambda f: f.name,
    )
    return sha256(b"".join(f.read_bytes() for f in sources)).hexdigest()


VERSION = _version()

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


def _destroyed_inputs(op: Scan) -> set[Variable]:
    """Return the inner variables whose memory the step overwrites."""
    return {
        alias_root(node.inputs[position])
        for node in op.fgraph.toposort()
        for positions in node.op.destroy_map.values()
        for position in positions
    }


def lower_scan(op: Scan, node: Apply, **kwargs: Any) -> tuple[Any, str | None]:
    """Compile a Scan node with this package's lowering.

    Parameters
    ----------
    op
        The Scan, its inner graph already rewritten for Numba.
    node
        Its application.
    **kwargs
        What PyTensor's dispatch passes on.

    Returns
    -------
    tuple
        The function that Numba compiles, and its key for the cache on disk (None if it cannot be
        cached).
    """
    options = {"ofg_memo": kwargs.get("ofg_memo")}
    loop = write_loop(op, node, _destroyed_inputs(op), options)
    function = compile_numba_function_src(loop.source, "scan", {**loop.env})
    key = None
    if None not in loop.keys:
        key = sha256(repr((VERSION, loop.source, loop.keys)).encode()).hexdigest()
    return numba_basic.numba_njit(function, boundscheck=False, error_model="numpy"), key


@register_funcify_and_cache_key(Scan)
def _funcify_scan(op: Scan, node: Apply | None = None, **kwargs: Any) -> Any:
    lowering = lower_scan if is_enabled() else _pytensor_lowering
    return lowering(op, node=node, **kwargs)
