"""Taps: a leaf wanted at several times. The marker, and the views that the step sees."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor.type import DenseTensorType

from pytensor_loop._errors import count, value_in_short


class _TapSequence(Sequence[Any]):
    """Values at several times: in the order in which the taps were listed, or by offset."""

    _offsets: tuple[int, ...]

    @property
    def taps(self) -> tuple[int, ...]:
        """The offsets from the current step, in the order in which they were listed."""
        return self._offsets

    def tap(self, offset: int) -> Any:
        """Return the value at one offset: ``h.tap(-12)`` is the value twelve steps ago."""
        if offset not in self._offsets:
            msg = f"{self._name} has no tap {offset}: its taps are {list(self._offsets)}"
            raise ValueError(msg)
        return self._at(offset)

    @property
    def _name(self) -> str:
        return "this leaf"

    def _at(self, offset: int) -> Any:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self._offsets)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Any, ...]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return tuple(map(self._at, self._offsets[index]))
        return self._at(self._offsets[index])

    def __iter__(self) -> Iterator[Any]:
        # Not left to `Sequence`, which would ask for indices until one fails.
        return map(self._at, self._offsets)


class Taps(_TapSequence):
    """A leaf of ``init``, ``xs`` or ``final`` that is wanted at several times.

    Made by `taps` and found in ``final``; there it can be read like the sequence that the step
    saw and passed on as ``init`` of the loop that continues.

    Attributes
    ----------
    values : TensorVariable or array
        In ``init`` and ``final``: the last ``max(-tap)`` rows, the oldest first.
        In ``xs``: all rows.
    taps : tuple of int
        The offsets, in the order in which they were listed.
    """

    def __init__(self, values: Any, offsets: Iterable[int]) -> None:
        self.values = values
        self._offsets = tuple(offsets)

    @property
    def depth(self) -> int:
        """How many rows the deepest tap of the carry looks back."""
        return max(-min(self._offsets), 0)

    def _at(self, offset: int) -> Any:
        if offset >= 0:
            msg = (
                f"taps={list(self._offsets)} of xs have a value only inside step_fn: "
                "read `.values` for the rows"
            )
            raise TypeError(msg)
        return self.values[self.depth + offset]

    def push_tap(self, x: Any) -> Any:
        """Raise: only the leaf that the step sees can be pushed."""
        msg = (
            "push_tap belongs inside step_fn: call it on the leaf of the carry that the step sees, "
            "`return carry.push_tap(x), y`"
        )
        raise TypeError(msg)

    def __repr__(self) -> str:
        return f"taps({self.values!r}, taps={list(self._offsets)})"


def taps(a: Any, taps: int | Iterable[int] | None = None) -> Taps:
    """Mark a leaf of ``init`` or ``xs`` that the step wants at several times.

    Parameters
    ----------
    a : TensorVariable, array or list of numbers
        In ``init``: the past, of shape ``(max(-tap), *row)``, row 0 the oldest.
        In ``xs``: the series, of shape ``(n_steps + max(tap), *row)``.
    taps : int or sequence of int, optional
        Offsets from the current step: all negative for a leaf of ``init``, all zero or more for a
        leaf of ``xs``. They may have gaps, ``[-12, -1]``, and come in any order, which is the
        order in which the step sees them. By default every row of `a`, the oldest first, which
        needs a static length.

    Returns
    -------
    Taps
        Put it in the place of the leaf.

    Raises
    ------
    ValueError
        If there are no taps, if one is not an integer or stands twice, if some look back and some
        ahead, or if `a` is a scalar or known to have other than ``max(-tap)`` rows.

    Examples
    --------
    The Fibonacci numbers look back two steps:

    >>> from pytensor_loop import scan, taps
    >>> def fibonacci(last, _):
    ...     before, now = last
    ...     return last.push_tap(before + now), before + now
    >>> final, ys = scan(fibonacci, taps([0, 1], taps=[-2, -1]), n_steps=7)
    >>> ys.eval()
    array([ 1,  2,  3,  5,  8, 13, 21])
    >>> final.values.eval()
    array([13, 21])
    """
    values = stack_rows(a)
    rows = np.shape(values)[0] if isinstance(values, list) else _static_rows(values)
    offsets = _every_row(rows) if taps is None else _read_offsets(taps)
    marked = Taps(values, offsets)
    if marked.depth and rows is not None and rows != marked.depth:
        fix = (
            f"pass the last {marked.depth}, a[-{marked.depth}:]"
            if rows > marked.depth
            else (f"give the {marked.depth} values before the first step")
        )
        msg = (
            f"taps={list(offsets)} look back {marked.depth} steps, so `a` must have exactly "
            f"{count(marked.depth, 'row')} (row 0 is the oldest), but it has {rows}: {fix}"
        )
        raise ValueError(msg)
    return marked


class _StepView(_TapSequence):
    """A read-only sequence of placeholders, one for each tap, as the step sees them."""

    def __init__(self, path: str, values: dict[int, Any]) -> None:
        self._path = path
        self._values = values
        self._offsets = tuple(values)

    @property
    def _name(self) -> str:
        return self._path

    def _at(self, offset: int) -> Any:
        return self._values[offset]

    def __repr__(self) -> str:
        return f"{self._path} with taps {list(self._offsets)}"


class CarryTaps(_StepView):
    """What the step sees of a leaf of the carry that has taps: a read-only sequence.

    ``before, now = carry``, ``carry[0]`` and ``len(carry)`` follow the order in which the taps
    were listed; ``carry.tap(-12)`` reads by offset; ``carry.push_tap(x)`` returns what belongs in
    the new carry.
    """

    _pushed = False

    def push_tap(self, x: Any) -> "PushedTap":
        """Return this leaf moved on by one step, with `x` as its newest value.

        Parameters
        ----------
        x : TensorVariable, array or number
            The value of this step, of the type of one row.

        Raises
        ------
        TypeError
            If it is called a second time: one step has one new value.
        """
        if self._pushed:
            msg = f"{self._path}.push_tap was called twice: push one value in each step"
            raise TypeError(msg)
        self._pushed = True
        return PushedTap(self, x)


class PushedTap:
    """What ``carry.push_tap(x)`` returns: it belongs in the new carry, in the place of its leaf."""

    def __init__(self, leaf: CarryTaps, value: Any) -> None:
        self.leaf = leaf
        self.value = value

    def push_tap(self, x: Any) -> "PushedTap":
        """Raise: a leaf is pushed once in each step."""
        return self.leaf.push_tap(x)

    def __repr__(self) -> str:
        return f"{self.leaf._path}.push_tap(...)"


class XsTaps(_StepView):
    """What the step sees of a leaf of ``xs`` that has taps: ``x[0]`` or ``x.tap(1)``, read-only."""

    def push_tap(self, x: Any) -> Any:
        """Raise: ``xs`` are read, not written."""
        msg = (
            f"{self._path}.push_tap: a leaf of xs is read, not written. What the step computes "
            "belongs in the carry, marked in init: `taps(a, taps=[-2, -1])`"
        )
        raise TypeError(msg)


def stack_rows(a: Any) -> Any:
    """Return `a` as something with rows: a list of Python numbers stays one, since it is weak."""
    if isinstance(a, Variable | np.ndarray):
        return a
    if not isinstance(a, list | tuple):
        return np.asarray(a)
    if any(isinstance(row, Variable) for row in a):
        return pt.stack(list(a))
    return list(a) if _all_python_numbers(a) else np.asarray(a)


def _all_python_numbers(rows: Iterable[Any]) -> bool:
    return all(
        _all_python_numbers(row)
        if isinstance(row, list | tuple)
        else type(row) in (bool, int, float)
        for row in rows
    )


def _static_rows(values: Any) -> int | None:
    if not isinstance(values, Variable):
        shape = np.shape(values)
    elif isinstance(values.type, DenseTensorType):
        shape = values.type.shape
    else:
        msg = f"taps needs an array with rows, not {value_in_short(values)}"
        raise ValueError(msg)
    if len(shape) == 0:
        msg = (
            "taps needs rows, one for each step that it looks back, but `a` is a scalar: "
            "write `taps([a], taps=[-1])`"
        )
        raise ValueError(msg)
    return shape[0]


def _every_row(rows: int | None) -> tuple[int, ...]:
    if rows is None:
        msg = (
            "taps=None means every row of `a`, but how many rows it has is not known when the loop "
            "is built: list the taps, `taps(a, taps=[-2, -1])`"
        )
        raise ValueError(msg)
    if rows == 0:
        msg = (
            "taps=None means every row of `a`, but it has none: "
            "give the values before the first step"
        )
        raise ValueError(msg)
    return tuple(range(-rows, 0))


def _read_offsets(taps: int | Iterable[int]) -> tuple[int, ...]:
    listed = list(taps) if isinstance(taps, Iterable) else [taps]
    for tap in listed:
        if isinstance(tap, bool) or not isinstance(tap, int | np.integer):
            msg = f"taps must be integers, but {tap!r} is of type {type(tap).__name__}"
            raise ValueError(msg)
    offsets = tuple(int(tap) for tap in listed)
    if not offsets:
        msg = "taps is empty: list the steps to look back, taps=[-2, -1], or ahead, taps=[0, 1]"
        raise ValueError(msg)
    twice = sorted({tap for tap in offsets if offsets.count(tap) > 1})
    if twice:
        listed_twice = ", ".join(map(str, twice))
        msg = f"taps={list(offsets)} lists {listed_twice} more than once: list each tap once"
        raise ValueError(msg)
    if min(offsets) < 0 <= max(offsets):
        msg = (
            f"taps={list(offsets)} look back and ahead: a leaf of init takes negative taps, "
            "a leaf of xs takes taps of zero and more"
        )
        raise ValueError(msg)
    return offsets
