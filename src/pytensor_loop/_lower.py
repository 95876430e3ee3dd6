"""The records of a loop made into a node of PyTensor's `Scan` Op.

The only module that knows the conventions of the Op; see `_slots` for the order of its lists.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.configdefaults import config
from pytensor.graph.basic import Apply, Variable
from pytensor.scan.op import Scan
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorVariable

from pytensor_loop import _slots
from pytensor_loop._inputs import Series, State
from pytensor_loop._length import Length
from pytensor_loop._slots import Loop, Recurrent, Slot, Traces
from pytensor_loop._trace import Step
from pytensor_loop.backends._pymc_hook import teach_pymc


@dataclasses.dataclass(frozen=True)
class Options:
    """How to run the loop."""

    reverse: bool
    truncate_gradient: int | None
    name: str | None
    op_settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """More keyword arguments of the Op, for `pytensor_loop.legacy`."""

    def __post_init__(self) -> None:
        steps = self.truncate_gradient
        if steps is not None and (type(steps) is bool or not isinstance(steps, int) or steps < 1):
            msg = (
                "truncate_gradient must be how many steps back gradients go, an int of one or "
                f"more, or None for all of them, not {steps!r}"
            )
            raise ValueError(msg)


@dataclasses.dataclass(frozen=True)
class Results:
    """The results of a loop, leaf by leaf."""

    final: tuple[Variable, ...]
    """For each leaf of the carry, its last value; with taps, its last rows, the oldest first."""
    ys: tuple[Variable, ...]
    done: Variable | None


def lower(step: Step, series: Sequence[Series], length: Length, options: Options) -> Results:
    """Build the node of the loop and return what is read from it."""
    teach_pymc()
    loop = _describe(step, series, length, options)
    op = Scan(
        _slots.inner_inputs(loop),
        _slots.inner_outputs(loop),
        _slots.info_of(loop),
        # The Op writes "off" as -1.
        truncate_gradient=-1 if options.truncate_gradient is None else options.truncate_gradient,
        name=options.name,
        # The Op's own default would free the memory of a step and ask for it again in the next.
        **{"allow_gc": config.scan__allow_gc, **options.op_settings},
    )
    node = op.make_node(*_slots.outer_inputs(loop))
    if step.stop is None and length.static is not None:
        stacked = _slots.read_outputs(loop, node.outputs).stacked
        node = with_row_counts(node, dict.fromkeys(stacked, length.static))
    return _read(step, length, options, _slots.read_outputs(loop, node.outputs))


def _describe(step: Step, series: Sequence[Series], length: Length, options: Options) -> Loop:
    n_steps = length.n_steps
    sequences, recurrent, untraced = [], [], []
    for leaf, rows in zip(series, step.rows, strict=True):
        checked = length.guard(leaf.values)
        for offset, inner in rows.items():
            sequences.append(Slot(_sequence(leaf, checked, offset, options.reverse), inner))
    for state, past, update in zip(step.states, step.past, step.updates, strict=True):
        if state.traced:
            recurrent.append(Recurrent(_buffer(state, n_steps), past, update))
        else:
            untraced.append(Slot(state.initial, past[-1], update))
    if step.stop is not None:
        # Whether the loop was stopped is carried: the last condition is the answer.
        never = pt.constant(np.asarray(False))
        untraced.append(Slot(never, never.type(name="done"), step.stop))
    return Loop(
        n_steps=n_steps,
        sequences=tuple(sequences),
        recurrent=tuple(recurrent),
        untraced=tuple(untraced),
        stacked=tuple(row.value for row in step.ys if row.state is None),
        captured=tuple(map(Slot, step.captured, step.captured_placeholders)),
        stop=step.stop,
    )


def _sequence(leaf: Series, rows: Variable, offset: int, reverse: bool) -> Variable:
    """Return the rows that the steps read in turn at one offset."""
    if leaf.lookahead:
        # Cut by constants, although the number of steps says the same: JAX cannot cut by variables.
        rows = rows[offset : (offset - leaf.lookahead) or None]
    return rows[::-1] if reverse else rows


def _buffer(state: State, n_steps: TensorVariable) -> TensorVariable:
    """Return room for the trace behind the rows before the first step.

    PyTensor's memory rewrites and PyMC's log-probabilities look for exactly this form, and the
    gradient of the Op counts its steps as the rows of the buffer less those that were given.
    """
    initial = state.initial
    first = initial[None] if state.offsets is None else initial
    row_shape = [first.shape[axis] for axis in range(1, first.type.ndim)]
    empty = pt.empty((state.depth + n_steps, *row_shape), dtype=first.type.dtype)
    return pt.set_subtensor(empty[: state.depth], first)


def _read(step: Step, length: Length, options: Options, traces: Traces) -> Results:
    recurrent, untraced = iter(traces.recurrent), iter(traces.untraced)
    trace_of = [next(recurrent) if state.traced else next(untraced) for state in step.states]
    final = tuple(map(_last, step.states, trace_of))
    stacked = iter(traces.stacked)
    ys = [
        next(stacked)
        if row.state is None
        else _new_values(step.states[row.state], trace_of[row.state])
        for row in step.ys
    ]
    count = None if step.stop is not None else length.static
    aligned = [_of_rows(rows[::-1] if options.reverse else rows, count) for rows in ys]
    return Results(final, tuple(aligned), next(untraced, None))


def _new_values(state: State, trace: Variable) -> Variable:
    """Return the rows of a trace that the steps wrote."""
    return trace[state.depth :]


def _last(state: State, trace: Variable) -> Variable:
    if not state.traced:
        return trace
    if state.offsets is None:
        return trace[-1]
    return _of_rows(trace[-state.depth :], state.depth)


def _of_rows(rows: Variable, count: int | None) -> Variable:
    """Return `rows` with the number of its rows in its type, if it is known."""
    if count is None or rows.type.shape[0] == count:
        return rows
    return with_row_counts(rows.owner, {rows: count}).outputs[rows.index]


def with_row_counts(node: Apply, counts: Mapping[Variable, int]) -> Apply:
    """Return the node with the number of rows in the types of some of its outputs.

    The node is made anew with narrower types: another node that asserts the number would stand
    between the loop and the rewrites that look for a slice of it.
    """
    outputs = [
        TensorType(output.type.dtype, (counts[output], *output.type.shape[1:]))()
        if output in counts
        else output.type()
        for output in node.outputs
    ]
    return Apply(node.op, node.inputs, outputs)
