"""The conversion of PyTensor's `Scan` Op to JAX.

It takes the place of PyTensor's own when this module is imported.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from pytensor.graph.basic import Apply
from pytensor.graph.type import Type
from pytensor.link.jax.dispatch.basic import jax_funcify
from pytensor.scan.op import Scan
from pytensor.tensor.type import TensorType

from pytensor_loop.backends._jax_loop import Asked, Carry, Made, Step, joined, run_counted, run_open
from pytensor_loop.backends._jax_shapes import LENGTH_UNKNOWN, is_known


LENGTH_DEPENDS_ON_STOP = (
    "{loop} has a stop condition, so the length of `ys` is known only at run time, which JAX "
    "cannot express; ask for `final`, `done` and the gradient of `final` only, or use another "
    "backend"
)


@dataclasses.dataclass(frozen=True)
class Given:
    """What a loop is given when it runs."""

    n_steps: Any
    sequences: list[Any]
    moving: list[Any]
    """Buffers along which the steps move, writing to several rows of them."""
    recurrent: list[Asked]
    untraced: list[Any]
    sizes: list[Any]
    """How many rows to return of each value that no step reads."""
    captured: list[Any]


@jax_funcify.register(Scan)
def convert_loop(op: Scan, node: Apply, **kwargs: Any) -> Callable[..., Any]:
    """Return a function from the inputs of a loop, as JAX arrays, to its outputs."""
    step_fn = jax_funcify(op.fgraph, **kwargs)

    def loop(*inputs: Any) -> Any:
        given = _read_inputs(op, inputs)
        step = _step_on_windows(op, step_fn, given.captured)
        may_stop = op.info.as_while and not (is_known(given.n_steps) and given.n_steps == 0)
        if may_stop or not is_known(given.n_steps):
            outputs = _run_open(op, step, given)
        else:
            outputs = _run_counted(op, step, given)
        return outputs[0] if len(outputs) == 1 else outputs

    return loop


def _read_inputs(op: Scan, inputs: Sequence[Any]) -> Given:
    sizes = list(op.outer_nitsot(inputs))
    if not is_known(*sizes):
        raise NotImplementedError(LENGTH_UNKNOWN)
    buffers = [jnp.asarray(b) for b in (*op.outer_mitsot(inputs), *op.outer_sitsot(inputs))]
    placeholders = op.inner_untraced_sit_sot(op.fgraph.inputs)
    return Given(
        n_steps=inputs[0],
        sequences=list(map(jnp.asarray, op.outer_seqs(inputs))),
        moving=list(map(jnp.asarray, op.outer_mitmot(inputs))),
        recurrent=[
            Asked(len(buffer), buffer[: -min(taps)])
            for buffer, taps in zip(buffers, _past_taps(op), strict=True)
        ],
        untraced=[
            _as_carried(value, placeholder.type)
            for value, placeholder in zip(
                op.outer_untraced_sit_sot(inputs), placeholders, strict=True
            )
        ],
        sizes=list(map(int, sizes)),
        captured=list(op.outer_non_seqs(inputs)),
    )


def _run_counted(op: Scan, step: Step, given: Given) -> list[Any]:
    n_steps = int(given.n_steps)
    _check_sequences(given.sequences, n_steps)
    held = [depth - 1 for depth in _depths(op)]
    carry = Carry(
        moving=[tuple(b[:h]) for b, h in zip(given.moving, held, strict=True)],
        recurrent=[asked.window(n_steps) for asked in given.recurrent],
        untraced=given.untraced,
        stacked=[],
    )
    stacked = _asked_of_stacked(op, step, carry, given)
    carry = carry._replace(stacked=[asked.window(n_steps) for asked in stacked])
    sequences = [rows[:n_steps] for rows in given.sequences]
    entering = [b[h : h + n_steps] for b, h in zip(given.moving, held, strict=True)]
    carry, made = run_counted(step, carry, sequences, entering, n_steps)
    return [
        *map(_join_moving, made.moving, carry.moving, given.moving),
        *(
            asked.read(n_steps, window, rows)
            for asked, window, rows in zip(
                (*given.recurrent, *stacked),
                (*carry.recurrent, *carry.stacked),
                (*made.recurrent, *made.stacked),
                strict=True,
            )
        ),
        *carry.untraced,
    ]


def _run_open(op: Scan, step: Step, given: Given) -> list[Any]:
    if given.moving:
        raise NotImplementedError(LENGTH_UNKNOWN)
    carry = Carry(
        moving=[],
        recurrent=[asked.window(None) for asked in given.recurrent],
        untraced=given.untraced,
        stacked=[],
    )
    stacked = _asked_of_stacked(op, step, carry, given)
    if op.info.as_while and any(
        asked.count > len(asked.before) + 1 for asked in (*given.recurrent, *stacked)
    ):
        raise NotImplementedError(LENGTH_DEPENDS_ON_STOP.format(loop=_name(op)))
    carry = carry._replace(stacked=[asked.window(None) for asked in stacked])
    carry, n_steps = run_open(step, carry, given.sequences, given.n_steps)
    windows = (*carry.recurrent, *carry.stacked)
    asked_of = (*given.recurrent, *stacked)
    return [
        *(a.read_open(n_steps, window) for a, window in zip(asked_of, windows, strict=True)),
        *carry.untraced,
    ]


def _step_on_windows(op: Scan, step_fn: Callable[..., Any], captured: Sequence[Any]) -> Step:
    """Return the step as a function of what is carried and of one row of each sequence."""
    reads, writes = _positions(op)
    past = _past_taps(op)
    stacked_dtypes = [row.type.dtype for row in op.inner_nitsot_outs(op.fgraph.outputs)]
    untraced_types = [value.type for value in op.inner_untraced_sit_sot(op.fgraph.inputs)]

    def step(carry: Carry, rows: Sequence[Any]) -> Made:
        arguments = (
            *rows,
            *_rows_at(carry.moving, reads),
            *_rows_at(carry.recurrent, past),
            *carry.untraced,
            *captured,
        )
        made = iter(step_fn(*arguments))
        return Made(
            moving=[
                _with_rows(window, at, made)
                for window, at in zip(carry.moving, writes, strict=True)
            ],
            recurrent=[jnp.asarray(next(made), window[0].dtype) for window in carry.recurrent],
            stacked=[jnp.asarray(next(made), dtype) for dtype in stacked_dtypes],
            untraced=[_as_carried(next(made), type_) for type_ in untraced_types],
            stop=next(made, False),
        )

    return step


def _asked_of_stacked(op: Scan, step: Step, carry: Carry, given: Given) -> list[Asked]:
    """Return how many rows are asked for of each value that no step reads.

    Their windows start empty, but JAX wants to know of what shape, which only a step can tell
    where PyTensor does not know it.
    """
    rows = op.inner_nitsot_outs(op.fgraph.outputs)
    shapes = [row.type.shape for row in rows]
    if any(None in shape for shape in shapes):
        windows = [(*window, window[-1]) for window in carry.moving]
        sequences = [jax.ShapeDtypeStruct(x.shape[1:], x.dtype) for x in given.sequences]
        made = jax.eval_shape(step, carry._replace(moving=windows), sequences)
        shapes = [row.shape for row in made.stacked]
    return [
        Asked(size, jnp.zeros((0, *shape), row.type.dtype))
        for size, shape, row in zip(given.sizes, shapes, rows, strict=True)
    ]


def _rows_at(windows: Iterable[Any], taps_of: Iterable[Sequence[int]]) -> Iterator[Any]:
    for window, taps in zip(windows, taps_of, strict=True):
        yield from (window[tap] for tap in taps)


def _with_rows(window: Sequence[Any], positions: Sequence[int], made: Iterator[Any]) -> Any:
    rows = list(window)
    for position in positions:
        rows[position] = jnp.asarray(next(made), rows[position].dtype)
    return tuple(rows)


def _past_taps(op: Scan) -> tuple[tuple[int, ...], ...]:
    return (*op.info.mit_sot_in_slices, *op.info.sit_sot_in_slices)


def _positions(op: Scan) -> tuple[list[list[int]], list[list[int]]]:
    """Return which rows of their windows on moving buffers the steps read and write."""
    read, written = op.info.mit_mot_in_slices, op.info.mit_mot_out_slices
    # The Op counts both from the oldest row that is read, or from the current one.
    lookback = [max(0, -min(taps)) for taps in read]
    return (
        [[tap + back for tap in taps] for taps, back in zip(read, lookback, strict=True)],
        [[tap + back for tap in taps] for taps, back in zip(written, lookback, strict=True)],
    )


def _depths(op: Scan) -> list[int]:
    return [max(*read, *written) + 1 for read, written in zip(*_positions(op), strict=True)]


def _join_moving(left: Any, window: Sequence[Any], buffer: Any) -> Any:
    """Return a buffer after the steps: the rows they left, those they held, those not reached."""
    held = [row[None] for row in window]
    return joined(left, *held, buffer[len(left) + len(held) :])


def _as_carried(value: Any, type_: Type) -> Any:
    """Return a value whose types do not change from step to step."""
    dtype = type_.dtype if isinstance(type_, TensorType) else None
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), value)


def _check_sequences(sequences: Sequence[Any], n_steps: int) -> None:
    if n_steps < 0:
        msg = f"a loop cannot take a negative number of steps: n_steps {n_steps}"
        raise ValueError(msg)
    for rows in sequences:
        if len(rows) < n_steps:
            msg = f"a leaf of xs has {len(rows)} rows, but the loop takes {n_steps} steps"
            raise ValueError(msg)


def _name(op: Scan) -> str:
    return f"the loop {op.name!r}" if op.name else "the loop"
