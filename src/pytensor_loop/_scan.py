"""The loop: read the arguments, settle the length, trace a step, build the node, return trees."""

from collections.abc import Callable
from typing import Any, overload

from pytensor.tensor.variable import TensorVariable

from pytensor_loop._inputs import read_inputs
from pytensor_loop._length import settle_length
from pytensor_loop._lower import Options, lower
from pytensor_loop._taps import taps
from pytensor_loop._trace import trace_step


@overload
def scan[Carry, Y](
    step_fn: Callable[[Carry, Any], tuple[Carry, Y]],
    init: Any,
    xs: Any = None,
    n_steps: Any = None,
    *,
    reverse: bool = False,
    truncate_gradient: int | None = None,
    name: str | None = None,
) -> tuple[Carry, Y]: ...


@overload
def scan[Carry, Y](
    step_fn: Callable[[Carry, Any], tuple[Carry, Y, Any]],
    init: Any,
    xs: Any = None,
    n_steps: Any = None,
    *,
    reverse: bool = False,
    truncate_gradient: int | None = None,
    name: str | None = None,
) -> tuple[Carry, Y, TensorVariable]: ...


def scan(
    step_fn: Callable[[Any, Any], tuple[Any, ...]],
    init: Any,
    xs: Any = None,
    n_steps: Any = None,
    *,
    reverse: bool = False,
    truncate_gradient: int | None = None,
    name: str | None = None,
) -> tuple[Any, ...]:
    """Run a step over and over, carrying values from one step to the next.

    In plain Python it is this loop, built into one node of the graph::

        def scan(step_fn, init, xs, n_steps):
            carry, ys = init, []
            for t in range(n_steps):  # from the last row to the first with reverse=True
                carry, y, *break_cond = step_fn(carry, xs[t])
                ys.append(y)
                if break_cond and break_cond[0]:
                    break  # the step that stops is kept
            return carry, stack(ys)

    Parameters
    ----------
    step_fn : callable
        ``step_fn(carry, x)`` returns ``(new_carry, y)`` or ``(new_carry, y, break_cond)``.
        The new carry is built like the carry, of the same types; ``y`` is any tree of tensors, or
        None; ``break_cond`` is a bool scalar, and the loop stops after a step where it is true.
        Outer variables may be used freely. It is called once, and again only while types settle.
    init : tree
        The carry before the first step: nested tuples, lists, dicts, namedtuples, dataclasses, or
        classes registered with optree. Leaves are variables of any type (random generators too),
        arrays, and numbers. Python numbers take the dtype that the step settles on. ``taps``
        marks a leaf that the step wants at several past times.
    xs : tree, optional
        What the steps read in turn: leaves of shape ``(n_steps, *row)``. Step ``t`` sees row ``t``.
    n_steps : int or integer scalar variable, optional
        The number of steps, zero or more; with ``break_cond``, the most there can be. Needed when
        there are no `xs`, checked against them when there are.

    Other Parameters
    ----------------
    reverse : bool
        Whether to run from the last row of `xs` to the first. Rows of ``ys`` line up with rows of
        `xs` all the same.
    truncate_gradient : int, optional
        How many steps back from the last one gradients go. By default all of them.
    name : str, optional
        Shown in printed graphs, profiles and errors.

    Returns
    -------
    final : tree
        The carry after the last step, built like `init`. With no steps it equals `init`.
    ys : tree
        What the steps returned as ``y``, stacked: leaves of shape ``(n_steps, *row)``.
    done : TensorVariable
        Only if `step_fn` returns a ``break_cond``: a bool scalar, whether it became true.

    Raises
    ------
    TypeError
        If the step returns a carry of another structure, dtype, number of dimensions or static
        shape, or anything else that a step does not return; if a leaf is unusable; or if the
        step uses a random generator that is not in the carry.
    ValueError
        If lengths disagree, or taps or `n_steps` are not usable. Lengths that are known only when
        the function runs are checked then.

    Examples
    --------
    A level and its growth, over a series of shocks:

    >>> import numpy as np
    >>> from pytensor_loop import scan
    >>> def grow(carry, shock):
    ...     level = carry["level"] * carry["growth"] + shock
    ...     return {"level": level, "growth": carry["growth"]}, level
    >>> final, levels = scan(grow, {"level": 1.0, "growth": 2.0}, xs=np.array([0.0, 1.0, 0.0]))
    >>> levels.eval()
    array([ 2.,  5., 10.])
    >>> final["level"].eval()
    array(10.)

    Stop early, and learn whether it stopped:

    >>> final, _, done = scan(lambda x, _: (2 * x, None, x > 50), 1, n_steps=100)
    >>> final.eval(), done.eval()
    (array(128), array(True))
    """
    inputs = read_inputs(step_fn, init, xs)
    length = settle_length(inputs.series, n_steps)
    step = trace_step(step_fn, inputs)
    results = lower(step, inputs.series, length, Options(reverse, truncate_gradient, name))
    final, ys = inputs.rebuild_carry(results.final), step.y.build(results.ys)
    return (final, ys) if results.done is None else (final, ys, results.done)


scan.taps = taps  # type: ignore[attr-defined]
