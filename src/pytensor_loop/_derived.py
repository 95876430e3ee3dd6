"""Loops with names of their own, each a few lines over `scan`."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.type import TensorType

from pytensor_loop._errors import type_in_short
from pytensor_loop._inputs import as_variable
from pytensor_loop._scan import scan
from pytensor_loop._taps import PushedTap, Taps
from pytensor_loop._tree import Tree, map_tree


def map(f: Callable[[Any], Any], xs: Any, *, name: str | None = None) -> Any:
    """Apply a function to every row.

    In plain Python, ``stack([f(x) for x in xs])``, built into one node of the graph. A function
    of PyTensor's own operations is faster applied to all of `xs` at once, where it can be.

    Parameters
    ----------
    f : callable
        ``f(x)`` returns any tree of tensors. Outer variables may be used freely.
    xs : tree
        Leaves of shape ``(n, *row)``. `f` sees one row of each.
    name : str, optional
        Shown in printed graphs, profiles and errors.

    Returns
    -------
    ys : tree
        What `f` returned, stacked: leaves of shape ``(n, *row)``.

    Examples
    --------
    >>> import numpy as np
    >>> from pytensor_loop import map
    >>> map(lambda x: x.dot(x), np.array([[1.0, 2.0], [3.0, 4.0]])).eval()
    array([ 5., 25.])
    """
    _, ys = scan(lambda _, x: (None, f(x)), None, xs, name=name)
    return ys


def fold(
    f: Callable[[Any, Any], Any],
    init: Any,
    xs: Any,
    *,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """Combine all rows into one value.

    In plain Python::

        for x in xs:  # from the last row to the first with reverse=True
            init = f(init, x)
        return init

    Memory does not grow with the number of rows, except for a gradient.

    Parameters
    ----------
    f : callable
        ``f(carry, x)`` returns the new carry.
    init : tree
        The carry before the first row, as for `scan`.
    xs : tree
        Leaves of shape ``(n, *row)``.
    reverse : bool
        Whether to go from the last row to the first.
    name : str, optional
        Shown in printed graphs, profiles and errors.

    Returns
    -------
    final : tree
        The carry after the last row, built like `init`; without rows it equals `init`.

    Examples
    --------
    The value of a polynomial by Horner's rule, the highest power first:

    >>> import numpy as np
    >>> from pytensor_loop import fold
    >>> fold(lambda value, c: value * 10.0 + c, 0.0, np.array([3.0, 1.0, 4.0])).eval()
    array(314.)
    """

    @functools.wraps(f)
    def step(carry: Any, x: Any) -> tuple[Any, None]:
        return f(carry, x), None

    final, _ = scan(step, init, xs, reverse=reverse, name=name)
    return final


def fori_loop(
    lower: Any,
    upper: Any,
    body: Callable[[Any, Any], Any],
    init: Any,
    *,
    name: str | None = None,
) -> Any:
    """Run a body for every integer of a range.

    In plain Python::

        for i in range(lower, upper):
            init = body(i, init)
        return init

    Parameters
    ----------
    lower, upper : int or integer scalar variable
        The range, without `upper`. It is empty if `upper` is not above `lower`.
    body : callable
        ``body(i, carry)`` returns the new carry; ``i`` is an int64 scalar.
    init : tree
        The carry before the first step, as for `scan`.
    name : str, optional
        Shown in printed graphs, profiles and errors.

    Returns
    -------
    final : tree
        The carry after the last step, built like `init`.

    Examples
    --------
    >>> from pytensor_loop import fori_loop
    >>> fori_loop(1, 6, lambda i, product: product * i, 1).eval()
    array(120)
    """
    static = isinstance(lower, int) and isinstance(upper, int)
    n_steps = max(upper - lower, 0) if static else pt.maximum(upper - lower, 0)
    first = np.int64(lower) if isinstance(lower, int) else pt.cast(lower, "int64")

    def step(i_and_carry: Any, _: Any) -> tuple[Any, None]:
        i, carry = i_and_carry
        return (i + 1, body(i, carry)), None

    # The counter is carried rather than read off a range: its memory does not grow with the steps.
    (_, final), _ = scan(step, (first, init), n_steps=n_steps, name=name)
    return final


def while_loop(
    cond: Callable[[Any], Any],
    body: Callable[[Any], Any],
    init: Any,
    max_steps: Any,
    *,
    name: str | None = None,
) -> tuple[Any, Any]:
    """Run a body while a condition holds.

    In plain Python::

        steps = 0
        while cond(init) and steps < max_steps:
            init, steps = body(init), steps + 1
        return init, not cond(init)

    Memory does not grow with `max_steps`, except for a gradient, which keeps the carry of every
    step that there can be.

    Parameters
    ----------
    cond : callable
        ``cond(carry)`` returns a bool scalar. It is asked before each step, the first one too.
    body : callable
        ``body(carry)`` returns the new carry.
    init : tree
        The carry before the first step, as for `scan`, without taps.
    max_steps : int or integer scalar variable
        The most steps to take.
    name : str, optional
        Shown in printed graphs, profiles and errors.

    Returns
    -------
    final : tree
        The carry after the last step, built like `init`. If `cond` does not hold for `init`, it
        equals `init`.
    done : TensorVariable
        A bool scalar: whether the condition ended the loop. If not, `max_steps` did.

    Raises
    ------
    TypeError
        If a leaf of `init` has taps, or as `scan` does.

    Examples
    --------
    The square root of two by Newton's method:

    >>> from pytensor_loop import while_loop
    >>> root, done = while_loop(
    ...     lambda x: abs(x * x - 2.0) > 1e-12, lambda x: (x + 2.0 / x) / 2.0, 1.0, max_steps=50
    ... )
    >>> root.eval(), done.eval()
    (array(1.41421356), array(True))
    """
    tree = Tree.of(init)
    paths = tree.paths("init")
    for leaf, path in zip(tree.leaves, paths, strict=True):
        if isinstance(leaf, Taps):
            msg = (
                f"while_loop takes no taps, but {path} has some: carry each older value as a leaf "
                "of its own, or let the step of scan return a break_cond"
            )
            raise TypeError(msg)
    first = [as_variable(leaf, path) for leaf, path in zip(tree.leaves, paths, strict=True)]
    starts = _as_condition(cond(tree.build(first)))

    @functools.wraps(body)
    def step(carry: Any, _: Any) -> tuple[Any, None, Any]:
        new_carry = body(carry)
        return new_carry, None, ~_as_condition(cond(new_carry))

    final, _, stopped = scan(step, init, n_steps=pt.where(starts, max_steps, 0), name=name)
    return final, stopped | ~starts


def accumulate(
    f: Callable[[Any, Any], Any],
    init: Any,
    xs: Any,
    *,
    include_init: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """Combine row after row, and keep every intermediate value.

    In plain Python::

        values = []
        for x in xs:  # from the last row to the first with reverse=True
            init = f(init, x)
            values.append(init)
        return stack(values)

    Parameters
    ----------
    f : callable
        ``f(carry, x)`` returns the new carry.
    init : tree
        The carry before the first row, as for `scan`; its leaves are tensors.
    xs : tree
        Leaves of shape ``(n, *row)``.
    include_init : bool
        Whether `init` stands in front of the values; in reverse, behind them.
    reverse : bool
        Whether to go from the last row to the first. Values line up with rows of `xs` all the same.
    name : str, optional
        Shown in printed graphs, profiles and errors.

    Returns
    -------
    values : tree
        Leaves of shape ``(n, *leaf)``, or ``(n + 1, *leaf)`` with `include_init`. A leaf with taps
        brings all rows that it had before the first step.

    Examples
    --------
    >>> import numpy as np
    >>> from pytensor_loop import accumulate
    >>> changes = np.array([5.0, -2.0, 4.0])
    >>> accumulate(lambda level, change: level + change, 1.0, changes, include_init=True).eval()
    array([1., 6., 4., 8.])
    """
    return _every_value(f, init, xs, None, include_init=include_init, reverse=reverse, name=name)


def iterate(
    f: Callable[[Any], Any],
    init: Any,
    n_steps: Any,
    *,
    include_init: bool = False,
    name: str | None = None,
) -> Any:
    """Apply a function over and over, and keep every value.

    In plain Python::

        values = []
        for _ in range(n_steps):
            init = f(init)
            values.append(init)
        return stack(values)

    Parameters
    ----------
    f : callable
        ``f(carry)`` returns the new carry.
    init : tree
        The carry before the first step, as for `scan`; its leaves are tensors.
    n_steps : int or integer scalar variable
        The number of steps, zero or more.
    include_init : bool
        Whether `init` stands in front of the values.
    name : str, optional
        Shown in printed graphs, profiles and errors.

    Returns
    -------
    values : tree
        Leaves of shape ``(n_steps, *leaf)``, or ``(n_steps + 1, *leaf)`` with `include_init`.

    Examples
    --------
    >>> from pytensor_loop import iterate
    >>> iterate(lambda x: 2 * x, 1, n_steps=5, include_init=True).eval()
    array([ 1,  2,  4,  8, 16, 32])
    """
    return _every_value(
        functools.wraps(f)(lambda carry, _: f(carry)),
        init,
        None,
        n_steps,
        include_init=include_init,
        name=name,
    )


def _every_value(
    f: Callable[[Any, Any], Any],
    init: Any,
    xs: Any,
    n_steps: Any,
    *,
    include_init: bool,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    @functools.wraps(f)
    def step(carry: Any, x: Any) -> tuple[Any, Any]:
        new_carry = f(carry, x)
        return new_carry, map_tree(_newest, new_carry)

    _, values = scan(step, init, xs, n_steps, reverse=reverse, name=name)
    tree = Tree.of(init)
    rows = tree.align(values)
    if not include_init:
        return tree.build(rows)
    return tree.build(
        _joined(_first_rows(leaf, path), later, reverse=reverse)
        for leaf, path, later in zip(tree.leaves, tree.paths("init"), rows, strict=True)
    )


def _newest(leaf: Any) -> Any:
    return leaf.value if isinstance(leaf, PushedTap) else leaf


def _first_rows(leaf: Any, path: str) -> Any:
    """Return the rows before the first step, the oldest first."""
    if isinstance(leaf, Taps):
        return as_variable(leaf.values, path)
    variable: Any = as_variable(leaf, path)
    return variable[None]


def _joined(first: Any, later: Any, *, reverse: bool) -> Any:
    first = first.astype(later.type.dtype)
    return pt.concatenate([later, first[::-1]] if reverse else [first, later])


def _as_condition(condition: Any) -> Any:
    variable: Any = as_variable(condition, "cond(carry)")
    if not isinstance(variable.type, TensorType) or variable.type.ndim or variable.dtype != "bool":
        msg = (
            f"cond must return a bool scalar, not {type_in_short(variable.type)}: "
            "compare, `x > 0`, and make one of many by `.any()` or `.all()`"
        )
        raise TypeError(msg)
    return variable
