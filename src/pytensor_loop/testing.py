"""The loop in plain Python: an oracle for steps."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Variable

from pytensor_loop._inputs import is_python_number, weak_constant
from pytensor_loop._taps import CarryTaps, PushedTap, Taps, XsTaps
from pytensor_loop._tree import Tree


# One step at a time, by the Python implementation of every Op as it stands in the graph.
_PLAIN = Mode(linker="py", optimizer=None)


def scan_reference(
    step_fn: Callable[[Any, Any], tuple[Any, ...]],
    init: Any,
    xs: Any = None,
    n_steps: int | None = None,
    *,
    reverse: bool = False,
) -> tuple[Any, ...]:
    """Run a step in a Python loop: what `scan` means, without the `Scan` Op.

    It computes each step by itself, so it is slow, and it knows nothing of how `scan` works. Test
    a step of yours by it: both take the same arguments, here with values in the place of symbolic
    inputs.

    Parameters
    ----------
    step_fn : callable
        As for `scan`; it may use shared variables and constants, but no symbolic inputs.
    init, xs : tree
        Arrays, numbers, NumPy generators, and `taps` of arrays.
    n_steps : int, optional
        The number of steps; needed when there are no `xs`.
    reverse : bool
        Whether to run from the last row of `xs` to the first.

    Returns
    -------
    final, ys : tree
        Arrays. With no steps ``ys`` is None: the shape of a row is not known without a step.
    done : bool
        Only if the step returned a ``break_cond``. (With no steps it cannot be known whether it
        does, and there are two results.)

    Examples
    --------
    >>> import numpy as np
    >>> from pytensor_loop.testing import scan_reference
    >>> final, ys = scan_reference(lambda c, x: (c + x, c * x), 0.0, np.array([1.0, 2.0, 3.0]))
    >>> final, ys
    (array(6.), array([0., 2., 9.]))
    """
    series = Tree.of(xs)
    if n_steps is None:
        n_steps = min(_length(leaf) for leaf in series.leaves)
    carry, rows, done = _as_values(init), [], []
    for t in reversed(range(n_steps)) if reverse else range(n_steps):
        x = series.build(_row(leaf, t) for leaf in series.leaves)
        carry, y, *done = _run(step_fn, carry, x)
        rows.append(y)
        if done and done[0]:
            break
    rows = rows[::-1] if reverse else rows
    return (carry, _stack(rows), *map(bool, done))


def _run(step_fn: Callable[[Any, Any], Any], carry: Any, x: Any) -> list[Any]:
    """Return the values of what one step returns."""
    state = Tree.of(carry)
    given = [_as_symbolic(leaf) for leaf in state.leaves]
    new_carry, y, *condition = step_fn(state.build(given), x)
    new_leaves = [
        leaf.value if isinstance(leaf, PushedTap) else leaf for leaf in state.align(new_carry)
    ]
    returned = Tree.of((new_leaves, y, condition))
    new_values, y_value, condition_value = returned.build(_evaluate(returned.leaves))
    moved = [_moved(old, new) for old, new in zip(state.leaves, new_values, strict=True)]
    return [state.build(moved), y_value, *condition_value]


def _evaluate(leaves: Any) -> list[Any]:
    """Return the leaves with a value in the place of each variable."""
    variables = [leaf for leaf in leaves if isinstance(leaf, Variable)]
    values = iter(pytensor.function([], variables, mode=_PLAIN)())
    return [next(values) if isinstance(leaf, Variable) else leaf for leaf in leaves]


def _as_symbolic(value: Any) -> Any:
    if isinstance(value, Taps):
        return CarryTaps("carry", {tap: pt.constant(value.tap(tap)) for tap in value.taps})
    if isinstance(value, np.random.Generator):
        return pytensor.shared(value)
    return pt.constant(value)


def _moved(old: Any, new: Any) -> Any:
    """Return a leaf of the carry after a step."""
    if isinstance(old, np.random.Generator):
        return new
    values = old.values if isinstance(old, Taps) else old
    # NumPy's own rule: Python numbers adapt, everything else promotes.
    dtype = np.result_type(values.dtype, new if is_python_number(new) else np.asarray(new).dtype)
    if isinstance(old, Taps):
        return Taps(np.stack([*values[1:], new]).astype(dtype), old.taps)
    return np.asarray(new, dtype=dtype)


def _as_values(init: Any) -> Any:
    tree = Tree.of(init)
    return tree.build(
        Taps(np.asarray(leaf.values), leaf.taps)
        if isinstance(leaf, Taps)
        else weak_constant(leaf).data
        if is_python_number(leaf)
        else leaf
        if isinstance(leaf, np.random.Generator)
        else np.asarray(leaf)
        for leaf in tree.leaves
    )


def _length(leaf: Any) -> int:
    return len(leaf.values) - max(leaf.taps) if isinstance(leaf, Taps) else len(leaf)


def _row(leaf: Any, t: int) -> Any:
    if isinstance(leaf, Taps):
        return XsTaps("xs", {tap: pt.constant(leaf.values[t + tap]) for tap in leaf.taps})
    return pt.constant(leaf[t])


def _stack(rows: list[Any]) -> Any:
    if not rows:
        return None
    trees = [Tree.of(row) for row in rows]
    return trees[0].build(map(np.stack, zip(*(tree.leaves for tree in trees), strict=True)))
