"""A Scan node as the source of one function: buffers and states around the statements of a step."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import Any

import numpy as np
from pytensor.graph.basic import Apply
from pytensor.link.numba.cache import compile_numba_function_src
from pytensor.link.numba.dispatch import basic as numba_basic
from pytensor.link.numba.dispatch.compile_ops import numba_deepcopy
from pytensor.scan.op import Scan
from pytensor.tensor.type import DenseTensorType, TensorType

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
from pytensor_loop.backends._numba_scalar import cast
from pytensor_loop.backends._numba_step import StepCode, write_node
from pytensor_loop.backends._numba_values import (
    Lines,
    Value,
    indented,
    is_zero_dim,
    lengths_of,
    tuple_of,
)


def _version() -> str:
    """Return a fingerprint of this lowering: once it changes, compiled code is of no use."""
    here = files("pytensor_loop.backends")
    sources = sorted(
        (f for f in here.iterdir() if "numba" in f.name and f.name.endswith(".py")),
        key=lambda f: f.name,
    )
    return sha256(b"".join(f.read_bytes() for f in sources)).hexdigest()


VERSION = _version()


@dataclass(frozen=True)
class LoopSource:
    """The generated function, and what determines it beside its source."""

    source: str
    env: dict[str, object]
    keys: list[str | None]


def compile_loop(
    op: Scan, node: Apply, compile_options: dict[str, Any], boxed: bool = True
) -> tuple[Any, str | None]:
    """Return the function that Numba compiles, and its key for the cache on disk.

    The key is None if it cannot be cached.

    Parameters
    ----------
    op
        The Scan, its inner graph already rewritten for Numba.
    node
        Its application.
    compile_options
        Passed to PyTensor's dispatch for the Ops of the step.
    boxed
        Whether numbers come and go as arrays without dimensions, as PyTensor has them.
    """
    loop = write_loop(op, node, compile_options, boxed)
    function = compile_numba_function_src(loop.source, "scan", {**loop.env})
    key = None
    if None not in loop.keys:
        key = sha256(repr((VERSION, loop.source, loop.keys)).encode()).hexdigest()
    return numba_basic.numba_njit(function, boundscheck=False, error_model="numpy"), key


@write_node.register(Scan)
def write_nested_loop(op: Scan, node: Apply, step: StepCode) -> None:
    """Write a loop in the step: a call that takes and returns numbers as they are."""
    function, key = compile_loop(op, node, step.compile_options, boxed=False)
    step.keys.append(key)
    loop = step.use(step.name("loop"), function)
    arguments = [step.scalar(v) if is_zero_dim(v) else step.array(v) for v in node.inputs]
    outputs = [step.name("a") for _ in node.outputs]
    step.body.append(f"{', '.join(outputs)} = {loop}({', '.join(arguments)})")
    for variable, name in zip(node.outputs, outputs, strict=True):
        step.values[variable] = Value(name, scalar=is_zero_dim(variable))


def write_loop(op: Scan, node: Apply, compile_options: dict[str, Any], boxed: bool) -> LoopSource:
    """Return the source of a loop; see :func:`compile_loop`."""
    arguments = [f"arg{i}" for i in range(len(node.inputs))]
    lines = Lines()
    parameters = list(arguments)
    for i, variable in enumerate(node.inputs):
        if is_zero_dim(variable):
            parameters[i] = f"in{i}"
            number = f"in{i}[()]" if boxed and isinstance(variable.type, TensorType) else f"in{i}"
            lines.start.append(f"arg{i} = {cast(number, variable.type.dtype)}")
    buffers = rows.find_buffers(op, node, arguments)
    states = untraced.find_states(op, node, arguments)
    step = StepCode(op.fgraph, compile_options)
    lines.start.append(f"n = np.int64({arguments[0]})")
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
    results = [*(b.name for b in buffers), *(s.result(boxed) for s in states)]
    source = _assemble(parameters, step, lines, condition, results)
    env = {name: getattr(_numba_memory, name) for name in _MEMORY}
    env |= {"np": np, "numba_deepcopy": numba_deepcopy}
    return LoopSource(source, env | step.env, step.keys)


_MEMORY = (
    "borrow",
    "borrow_row",
    "box",
    "check_length",
    "check_rows",
    "contiguous",
    "finish_rows",
    "first_slot",
    "fresh",
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
        step.values[variable] = Value(name, scalar=is_zero_dim(variable))
        if isinstance(variable.type, DenseTensorType) and variable.type.ndim:
            lines.check_shape(name, variable.type.shape)
            step.invariant.add(variable)


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
    parameters: Sequence[str],
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
    return "\n".join([f"def scan({', '.join(parameters)}):", *indented(function)]) + "\n"
