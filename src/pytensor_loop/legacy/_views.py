"""The old `map`, `reduce`, `foldl` and `foldr`, built on the new loop."""

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any

from pytensor_loop.legacy._advice import advise_map, advise_reduce
from pytensor_loop.legacy._build import OldCall, build, op_settings
from pytensor_loop.legacy._names import names_of_caller
from pytensor_loop.legacy._scan import hand_back


def map(
    fn: Callable[..., Any],
    sequences: Any,
    non_sequences: Any = None,
    truncate_gradient: int = -1,
    go_backwards: bool = False,
    mode: Any = None,
    name: str | None = None,
    return_updates: bool = True,
) -> Any:
    """Apply a function to every row, by the signature of ``pytensor.scan.map``.

    See `scan` for the parameters, the results, and what is different.

    Warns
    -----
    DeprecationWarning
        With the same call by `pytensor_loop.map`, or by `pytensor_loop.scan`.
    """
    call = OldCall(
        fn=fn,
        sequences=sequences,
        non_sequences=non_sequences,
        truncate_gradient=truncate_gradient,
        go_backwards=go_backwards,
        name=name,
        op_settings=op_settings(mode, False, None),
    )
    built = build(call)
    warnings.warn(advise_map(call, built, names_of_caller(1)), DeprecationWarning, stacklevel=2)
    return hand_back(built, return_list=False, return_updates=return_updates)


def reduce(
    fn: Callable[..., Any],
    sequences: Any,
    outputs_info: Any,
    non_sequences: Any = None,
    go_backwards: bool = False,
    mode: Any = None,
    name: str | None = None,
    return_updates: bool = True,
) -> Any:
    """Return the last rows of a loop, by the signature of ``pytensor.scan.reduce``.

    See `scan` for the parameters, the results, and what is different.

    Warns
    -----
    DeprecationWarning
        With the same call by `pytensor_loop.fold`, or by `pytensor_loop.scan`.
    """
    call = OldCall(
        fn=fn,
        sequences=sequences,
        outputs_info=outputs_info,
        non_sequences=non_sequences,
        go_backwards=go_backwards,
        name=name,
        op_settings=op_settings(mode, False, None),
    )
    return _reduce("reduce", call, return_updates=return_updates)


def foldl(
    fn: Callable[..., Any],
    sequences: Any,
    outputs_info: Any,
    non_sequences: Any = None,
    mode: Any = None,
    name: str | None = None,
    return_updates: bool = True,
) -> Any:
    """Return the last rows of a loop from the first row on, as ``pytensor.scan.foldl`` does.

    See `scan` for the parameters, the results, and what is different.

    Warns
    -----
    DeprecationWarning
        With the same call by `pytensor_loop.fold`, or by `pytensor_loop.scan`.
    """
    call = OldCall(
        fn=fn,
        sequences=sequences,
        outputs_info=outputs_info,
        non_sequences=non_sequences,
        name=name,
        op_settings=op_settings(mode, False, None),
    )
    return _reduce("foldl", call, return_updates=return_updates)


def foldr(
    fn: Callable[..., Any],
    sequences: Any,
    outputs_info: Any,
    non_sequences: Any = None,
    mode: Any = None,
    name: str | None = None,
    return_updates: bool = True,
) -> Any:
    """Return the last rows of a loop from the last row on, as ``pytensor.scan.foldr`` does.

    See `scan` for the parameters, the results, and what is different.

    Warns
    -----
    DeprecationWarning
        With the same call by `pytensor_loop.fold`, or by `pytensor_loop.scan`.
    """
    call = OldCall(
        fn=fn,
        sequences=sequences,
        outputs_info=outputs_info,
        non_sequences=non_sequences,
        go_backwards=True,
        name=name,
        op_settings=op_settings(mode, False, None),
    )
    return _reduce("foldr", call, return_updates=return_updates)


def _reduce(function: str, call: OldCall, *, return_updates: bool) -> Any:
    built = build(call)
    advice = advise_reduce(function, call, built, names_of_caller(2))
    warnings.warn(advice, DeprecationWarning, stacklevel=3)
    return hand_back(
        dataclasses.replace(built, outputs=built.last),
        return_list=False,
        return_updates=return_updates,
        stacklevel=4,
    )
