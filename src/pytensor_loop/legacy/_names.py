"""What the caller of an old function calls its variables, so that advice can be pasted there."""

import keyword
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from pytensor.graph.basic import Constant


class Names:
    """Words for values: those of the caller where there are any.

    Attributes
    ----------
    notes : list of str
        One for each word that was made up: what it stands for.
    """

    def __init__(self, bound: Mapping[int, str]) -> None:
        self._bound = bound
        self.notes: list[str] = []

    def of(self, value: Any, place: str) -> str:
        """Return an expression for `value`, which was passed at `place`."""
        if isinstance(value, bool | int | float):
            return repr(value)
        if id(value) in self._bound:
            return self._bound[id(value)]
        if isinstance(value, Constant) and np.ndim(value.data) == 0:
            return repr(np.asarray(value.data).item())
        name = getattr(value, "name", None) or getattr(value, "__name__", None)
        if not (isinstance(name, str) and name.isidentifier()) or keyword.iskeyword(name):
            name = place.replace("[", "_").replace("]", "")
        what = "the function of this call" if place == "fn" else f"what was passed as {place}"
        self.notes.append(f"{name}: {what}")
        return name


def names_of_caller(depth: int) -> Names:
    """Return the names by which the function `depth` frames above the caller knows its values."""
    frame = sys._getframe(depth + 1)
    bound: dict[int, str] = {}
    for scope in (frame.f_globals, frame.f_locals):
        bound.update({id(value): name for name, value in scope.items() if not name.startswith("_")})
    return Names(bound)
