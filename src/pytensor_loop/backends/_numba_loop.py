"""A Scan node as the source of one function: buffers and states around the statements of a step."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pytensor.graph.basic import Apply, Variable
from pytensor.link.numba.dispatch.compile_ops import numba_deepcopy
from pytensor.scalar.basic import ScalarType
from pytensor.scan.op import Scan
from pytensor.tensor.type import DenseTensorType

# Importing a module of this list registers how it writes its kinds of node.
from pytensor_loop.backends import (
    _numba_buffers as rows,
)
from pytensor_loop.backends import (
    _numba_dot,  # noqa: F401
    _numba_elementwise,  # noqa: F401
    _numba_indexing,  # noqa: F401
    _numba_memory,
)
from pytensor_loop.backends import (
    _numba_states as untraced,
)
from pytensor_loop.backends._numba_step import StepCode
from pytensor_loop.backends._numba_values import Lines, Value, indented, lengths_of, tuple_of


@dataclass(frozen=True)
class LoopSource:
    """The generated function, and what determines it beside its source."""

    source: str
    env: dict[str, object]
    keys: list[str | None]


def write_loop(
    op: Scan, node: Apply, destroyed_states: set[Variable], compile_options: dict[str, Any]
) -> LoopSource:
    """Return the source of a loop.

    Parameters
    ----------
    op, node
        The Scan and its application.
    destroyed_states
        Inner inputs of untraced states that the step overwrites.
    compile_options
        Passed to PyTensor's dispatch for the Ops of the step.
    """
    arguments = [f"arg{i}" for i in range(len(node.inputs))]
    buffers = rows.find_buffers(op, node, arguments)
    states = untraced.find_states(op, node, arguments, destroyed_states)
    step = StepCode(op.fgraph, compile_options)
    lines = Lines()
    lines.start.append(f"n = np.int64({arguments[0]}.item())")
    _bind_sequences(op, node, arguments, step, lines)
    _bind_invariants(op, arguments, step, lines)
    for buffer in buffers:
        rows.start_buffer(buffer, lines)
        rows.bind_reads(buffer, step, lines)
        rows.offer_rows(buffer, step)
    for state in states:
        untraced.bind_state(state, step, lines)
    step.write()
    rows.write_rows(buffers, step, lines)
    _shift_registers(buffers, states, step, lines)
    untraced.write_states(states, step, lines)
    for buffer in buffers:
        rows.finish_buffer(buffer, op.info.as_while, lines)
    condition = step.scalar(op.inner_outputs[-1]) if op.info.as_while else None
    results = [*(b.name for b in buffers), *(s.result for s in states)]
    source = _assemble(arguments, step, lines, condition, results)
    env = {name: getattr(_numba_memory, name) for name in _MEMORY}
    return LoopSource(
        source, env | {"np": np, "numba_deepcopy": numba_deepcopy} | step.env, step.keys
    )


_MEMORY = (
    "borrow",
    "borrow_row",
    "box",
    "check_length",
    "check_rows",
    "contiguous",
    "finish_rows",
    "first_slot",
    "next_state",
    "peek",
    "poke",
    "put",
    "replace_state",
    "stack_array",
    "with_dense_rows",
)


def _bind_sequences(
    op: Scan, node: Apply, arguments: Sequence[str], step: StepCode, lines: Lines
) -> None:
    """Give the step its rows of the sequences."""
    outer = op.outer_seqs(arguments)
    types = op.outer_seqs(node.inputs)
    for name, variable, inner in zip(outer, types, op.inner_seqs(op.inner_inputs), strict=True):
        shape = variable.type.shape[1:]
        lines.start.append(f"check_rows({name}.shape[0], n, n)")
        if not shape:
            lines.read.append(f"{name}_x = peek({name}, i)")
            step.values[inner] = Value(f"{name}_x", scalar=True)
            continue
        dense = f"{name}_d"
        lines.start.append(f"{dense} = with_dense_rows({name})")
        lines.check_shape(dense, (None, *shape))
        lengths = lengths_of(shape, dense, first=1)
        lines.read.append(f"{name}_x = borrow_row({dense}, i, {tuple_of(lengths)})")
        step.values[inner] = Value(f"{name}_x")


def _bind_invariants(op: Scan, arguments: Sequence[str], step: StepCode, lines: Lines) -> None:
    """Give the step what is the same in every step."""
    outer = op.outer_non_seqs(arguments)
    inner = op.inner_non_seqs(op.inner_inputs)
    for name, variable in zip(outer, inner, strict=True):
        # PyTensor's rewrites may pass what is a number of Python's own kind, not of an array.
        step.values[variable] = Value(name, scalar=isinstance(variable.type, ScalarType))
        if not isinstance(variable.type, DenseTensorType):
            continue
        if variable.type.ndim:
            lines.check_shape(name, variable.type.shape)
            step.invariant.add(variable)
        else:
            lines.start.append(f"{name}_x = {name}[()]")
            step.remember_scalar(variable, f"{name}_x")


def _shift_registers(
    buffers: Sequence[rows.Buffer],
    states: Sequence[untraced.State],
    step: StepCode,
    lines: Lines,
) -> None:
    """Hand all numbers to the next step at once: one may be the old value of another."""
    shifted = [*untraced.numbers(states, step)]
    for buffer in buffers:
        shifted += rows.registers(buffer, step)
    if shifted:
        targets, values = zip(*shifted, strict=True)
        lines.advance.append(f"{', '.join(targets)} = {', '.join(values)}")


def _assemble(
    arguments: Sequence[str],
    step: StepCode,
    lines: Lines,
    condition: str | None,
    results: Sequence[str],
) -> str:
    body = [*lines.read, *step.head, *step.body, *lines.write, "steps = i + 1"]
    if condition is None:
        body += lines.advance
    else:
        # The last values of the states are still wanted, and the condition may be an old one.
        body += [f"stop = {condition}", *lines.advance, "if stop:", "    break"]
    start = [*lines.start, *step.setup, "steps = 0", "for i in range(n):"]
    function = [*start, *indented(body), *step.finish, *lines.finish]
    function.append(f"return {', '.join(results)}")
    return "\n".join([f"def scan({', '.join(arguments)}):", *indented(function)]) + "\n"
