"""How errors read: one sentence for one difference, bullets for several, types in short."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from pytensor.graph.basic import Variable
from pytensor.graph.type import Type
from pytensor.tensor.type import DenseTensorType


def sentence_or_bullets(opening: str, differences: Sequence[str], closing: str = "") -> str:
    """Join the parts of a message; `opening` and the differences end without punctuation."""
    if len(differences) == 1:
        parts, separator = [f"{opening}: {differences[0]}."], " "
    else:
        bullets = [f"  * {difference}." for difference in differences]
        parts, separator = [f"{opening}:", *bullets], "\n"
    return separator.join([*parts, closing] if closing else parts)


def type_in_short(type_: Type) -> str:
    """Return a type as a user would say it: ``float64 scalar``, ``int64 of shape (3, ?)``."""
    if not isinstance(type_, DenseTensorType):
        return str(type_)
    if type_.ndim == 0:
        return f"{type_.dtype} scalar"
    return f"{type_.dtype} of shape {shape_in_short(type_.shape)}"


def count(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 row``, ``2 rows``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def shape_in_short(shape: Sequence[int | None]) -> str:
    """Return a static shape with ``?`` for what is not known: ``(3, ?)``."""
    dims = ", ".join("?" if dim is None else str(dim) for dim in shape)
    return f"({dims},)" if len(shape) == 1 else f"({dims})"


def value_in_short(value: Any) -> str:
    """Return what a leaf is, for a sentence that says it should be something else."""
    if isinstance(value, Variable):
        return f"{type_in_short(value.type)}{f' named {value.name!r}' if value.name else ''}"
    if isinstance(value, np.ndarray):
        return f"an array of dtype {value.dtype}"
    if callable(value):
        return f"the function {getattr(value, '__name__', repr(value))}"
    return f"{value!r} of type {type(value).__name__}"
