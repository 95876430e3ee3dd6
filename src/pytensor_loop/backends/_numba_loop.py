"""A Scan node as the source of one function: buffers around the statements of a step.

Every buffer is circular as far as the Op is concerned. Here each row that a step touches has a
running position that wraps by comparison, and values without dimensions that one step hands to the
next stay in registers.
"""

# PyTensor's own annotations are partial: graphs and nodes are Any throughout.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pytensor.compile.aliasing import alias_root
from pytensor.graph.basic import Constant
from pytensor.link.numba.dispatch.compile_ops import numba_deepcopy
from pytensor.scalar.basic import ScalarType
from pytensor.tensor.type import DenseTensorType

from pytensor_loop.backends import _numba_memory
from pytensor_loop.backends._numba_scalar import cast
from pytensor_loop.backends._numba_step import StepCode, Target, Value


@dataclass(frozen=True)
class Buffer:
    """One output of the loop that is kept in rows.

    Parameters
    ----------
    name
        Name of the array; other names of the buffer start with it.
    argument
        Name of the outer input: the array, or the number of rows if the loop allocates it.
    outer
        The outer output, for its type.
    reads
        Offset of each row that a step reads, and the inner input that shows it.
    writes
        Offset of each row that a step writes, and the inner output that is put there.
    initial
        Number of rows before the first step.
    owned
        Whether the array may be overwritten.
    allocated
        Whether the loop allocates it.
    finished
        Whether rows are rotated and cut at the end.
    """

    name: str
    argument: str
    outer: Any
    reads: tuple
    writes: tuple
    initial: int
    owned: bool = False
    allocated: bool = False
    finished: bool = True

    @property
    def dtype(self):
        """Dtype of the rows."""
        return self.outer.type.dtype

    @property
    def is_vector(self):
        """Whether a row is a single number."""
        return self.outer.type.ndim == 1

    def position(self, offset):
        """Return the name of the running position of a row."""
        return f"{self.name}_p{offset}"

    def register(self, offset):
        """Return the name of the register of a row."""
        return f"{self.name}_r{offset}"


@dataclass(frozen=True)
class State:
    """One value that a step hands to the next without a trace."""

    name: str
    argument: str
    inner_input: Any
    inner_output: Any
    copied: bool

    @property
    def is_tensor(self):
        """Whether it is a dense tensor."""
        return isinstance(self.inner_input.type, DenseTensorType)

    @property
    def is_scalar(self):
        """Whether it lives in a register."""
        return self.is_tensor and self.inner_input.type.ndim == 0

    @property
    def is_borrowed(self):
        """Whether the step sees a borrowed view: not if its update may be a view of it."""
        return self.is_tensor and alias_root(self.inner_output) is not self.inner_input


@dataclass(frozen=True)
class LoopSource:
    """The generated function, and what determines it beside its source."""

    source: str
    env: dict
    keys: list


@dataclass
class Lines:
    """The sections of the function."""

    start: list = field(default_factory=list)
    read: list = field(default_factory=list)
    write: list = field(default_factory=list)
    advance: list = field(default_factory=list)
    finish: list = field(default_factory=list)


def write_loop(op, node, destroyed_states, compile_options):
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
    buffers = find_buffers(op, node, arguments)
    states = find_states(op, node, arguments, destroyed_states)
    step = StepCode(op.fgraph, compile_options)
    lines = Lines()
    lines.start.append(f"n = np.int64({arguments[0]}.item())")
    _bind_sequences(op, node, arguments, step, lines)
    _bind_invariants(op, node, arguments, step, lines)
    for buffer in buffers:
        _start_buffer(buffer, lines)
        _bind_reads(buffer, step, lines)
        _offer_rows(buffer, step)
    for state in states:
        _bind_state(state, step, lines)
    step.write()
    _write_rows(buffers, step, lines)
    _shift_registers(buffers, states, step, lines)
    _write_states([s for s in states if not s.is_scalar], step, lines)
    for buffer in buffers:
        _finish_buffer(buffer, op.info.as_while, lines)
    condition = step.scalar(op.inner_outputs[-1]) if op.info.as_while else None
    results = [b.name for b in buffers] + [_result(s) for s in states]
    source = _assemble(arguments, step, lines, condition, results)
    env = {name: getattr(_numba_memory, name) for name in _MEMORY}
    env |= {"np": np, "numba_deepcopy": numba_deepcopy}
    return LoopSource(source, env | step.env, step.keys)


_MEMORY = (
    "borrow",
    "borrow_row",
    "box",
    "check_rows",
    "contiguous",
    "finish_rows",
    "first_slot",
    "next_state",
    "peek",
    "poke",
    "put",
    "replace_state",
    "with_dense_rows",
)


def find_buffers(op, node, arguments):
    """Return the buffers of a loop in the order of its outputs."""
    info = op.info
    inner_in, inner_out = op.inner_inputs, op.inner_outputs
    groups = [
        *zip(
            op.outer_mitmot(arguments),
            op.inner_mitmot_grouped(inner_in),
            info.mit_mot_in_slices,
            op.inner_mitmot_outs_grouped(inner_out),
            info.mit_mot_out_slices,
            strict=True,
        ),
        *zip(
            op.outer_mitsot(arguments),
            op.inner_mitsot_grouped(inner_in),
            info.mit_sot_in_slices,
            [[v] for v in op.inner_mitsot_outs(inner_out)],
            [(0,)] * info.n_mit_sot,
            strict=True,
        ),
        *zip(
            op.outer_sitsot(arguments),
            [[v] for v in op.inner_sitsot(inner_in)],
            info.sit_sot_in_slices,
            [[v] for v in op.inner_sitsot_outs(inner_out)],
            [(0,)] * info.n_sit_sot,
            strict=True,
        ),
    ]
    buffers = []
    for i, (argument, inputs, in_taps, outputs, out_taps) in enumerate(groups):
        initial = -min(0, *in_taps)
        buffers.append(
            Buffer(
                name=f"b{i}",
                argument=argument,
                outer=node.outputs[i],
                reads=tuple(zip((initial + t for t in in_taps), inputs, strict=True)),
                writes=tuple(zip((initial + t for t in out_taps), outputs, strict=True)),
                initial=initial,
                owned=i in op.destroy_map,
                finished=i >= info.n_mit_mot,
            )
        )
    for argument, output in zip(
        op.outer_nitsot(arguments), op.inner_nitsot_outs(inner_out), strict=True
    ):
        i = len(buffers)
        buffers.append(
            Buffer(f"b{i}", argument, node.outputs[i], (), ((0, output),), 0, allocated=True)
        )
    return buffers


def find_states(op, node, arguments, destroyed_states):
    """Return the untraced states of a loop in the order of its outputs."""
    groups = zip(
        op.outer_untraced_sit_sot(arguments),
        op.inner_untraced_sit_sot(op.inner_inputs),
        op.inner_untraced_sit_sot_outs(op.inner_outputs),
        strict=True,
    )
    first = len(node.outputs) - op.info.n_untraced_sit_sot
    return [
        State(
            name=f"u{i}",
            argument=argument,
            inner_input=inner_input,
            inner_output=inner_output,
            copied=inner_input in destroyed_states and first + i not in op.destroy_map,
        )
        for i, (argument, inner_input, inner_output) in enumerate(groups)
    ]


def _bind_sequences(op, node, arguments, step, lines):
    outer = op.outer_seqs(arguments)
    types = op.outer_seqs(node.inputs)
    for name, variable, inner in zip(outer, types, op.inner_seqs(op.inner_inputs), strict=True):
        lines.start.append(f"check_rows({name}.shape[0], n, n)")
        if variable.type.ndim == 1:
            lines.read.append(f"{name}_x = peek({name}, i)")
            step.values[inner] = Value(f"{name}_x", scalar=True)
        else:
            lines.start.append(f"{name}_d = with_dense_rows({name})")
            lines.read.append(f"{name}_x = borrow_row({name}_d, i)")
            step.values[inner] = Value(f"{name}_x")


def _bind_invariants(op, node, arguments, step, lines):
    outer = op.outer_non_seqs(arguments)
    inner = op.inner_non_seqs(op.inner_inputs)
    for name, variable in zip(outer, inner, strict=True):
        # PyTensor's rewrites may pass what is a number of Python's own kind, not of an array.
        step.values[variable] = Value(name, scalar=isinstance(variable.type, ScalarType))
        if isinstance(variable.type, DenseTensorType):
            if variable.type.ndim:
                step.invariant.add(variable)
            else:
                lines.start.append(f"{name}_x = {name}[()]")
                step.values[variable] = Value(name)
                step.remember_scalar(variable, f"{name}_x")


def _start_buffer(buffer, lines):
    name, rows = buffer.name, f"{buffer.name}_rows"
    if buffer.allocated:
        shape = buffer.outer.type.shape[1:]
        known = all(length is not None for length in shape)
        lengths = [str(length) if known else "0" for length in shape]
        lines.start.append(f"{rows} = np.int64({buffer.argument}.item())")
        lines.start.append(f"{name} = np.empty(({', '.join([rows, *lengths])},), {_np(buffer)})")
    else:
        lines.start.append(f"{rows} = {buffer.argument}.shape[0]")
        value = buffer.argument if buffer.owned else f"numba_deepcopy({buffer.argument})"
        dense = value if buffer.is_vector else f"with_dense_rows({value})"
        lines.start.append(f"{name} = {dense}")
    offsets = [offset for offset, _ in (*buffer.reads, *buffer.writes)]
    least = max((o for o, _ in buffer.reads), default=0) + 1
    if not buffer.finished:
        least = max(offsets) + 1
    lines.start.append(f"check_rows({rows}, {least}, n)")
    for offset in sorted(set(offsets)):
        position = buffer.position(offset)
        lines.start.append(f"{position} = first_slot({offset}, {rows})")
        lines.advance.append(f"{position} += 1")
        lines.advance.append(f"if {position} == {rows}:")
        lines.advance.append(f"    {position} = 0")


def _np(buffer):
    return f"np.{buffer.dtype}"


def _bind_reads(buffer, step, lines):
    for offset, inner in buffer.reads:
        position = buffer.position(offset)
        if buffer.is_vector:
            register = buffer.register(offset)
            if _successor(buffer, offset) is None:
                lines.read.append(f"{register} = peek({buffer.name}, {position})")
            else:
                lines.start.append(f"{register} = {cast('0', buffer.dtype)}")
                lines.start.append("if n > 0:")
                lines.start.append(f"    {register} = peek({buffer.name}, {position})")
            step.values[inner] = Value(register, scalar=True)
        else:
            row = f"{buffer.name}_x{offset}"
            lines.read.append(f"{row} = borrow_row({buffer.name}, {position})")
            step.values[inner] = Value(row)


def _successor(buffer, offset):
    """Return what the next step reads at an offset, or None if only memory knows."""
    for place, variable in (*buffer.writes, *buffer.reads):
        if place == offset + 1:
            return variable
    return None


def _offer_rows(buffer, step):
    """Let results be written straight into the rows that keep them."""
    if buffer.is_vector:
        return
    for offset, output in buffer.writes:
        if output in step.targets or output.owner is None:
            continue
        ndim = output.type.ndim
        same = tuple(v for o, v in buffer.reads if o == offset)
        allowed, overwritten = "True", same
        if same:
            allowed = "False"
        elif buffer.reads and buffer.finished:
            allowed = f"{buffer.name}_rows > {buffer.initial}"
            overwritten = tuple(v for o, v in buffer.reads if o == 0)
            if len(buffer.reads) > 1:
                overwritten = (*overwritten, None)
        unknown = buffer.allocated and None in buffer.outer.type.shape[1:]
        allocate = f"{buffer.name} = np.empty(({buffer.name}_rows, {{shape}}), {_np(buffer)})"
        step.targets[output] = Target(
            row=f"borrow_row({buffer.name}, {buffer.position(offset)})",
            allowed=allowed,
            shape=tuple(f"{buffer.name}.shape[{k + 1}]" for k in range(ndim)),
            allocate=allocate if unknown else "",
            overwritten=overwritten,
            single=f"{buffer.name}_rows == 1" if len(buffer.reads) == 1 and buffer.finished else "",
        )


def _bind_state(state, step, lines):
    value = state.argument
    if state.is_scalar:
        step.values[state.inner_input] = Value(state.name, scalar=True)
        value = f"{value}[()]"
    else:
        step.values[state.inner_input] = Value(state.name)
        if state.is_borrowed:
            lines.read.append(f"{state.name}_x = borrow({state.name})")
            step.values[state.inner_input] = Value(f"{state.name}_x")
        if state.is_tensor:
            value = f"np.copy({value})"
        elif state.copied:
            value = f"numba_deepcopy({value})"
        if state.is_tensor:
            step.targets.setdefault(state.inner_output, _target(state))
    lines.start.append(f"{state.name} = {value}")


def _target(state):
    """Return the memory of a state as the place of its own update."""
    ndim = state.inner_input.type.ndim
    return Target(
        row=f"borrow({state.name})",
        allowed="False",
        shape=tuple(f"{state.name}.shape[{k}]" for k in range(ndim)),
        overwritten=(state.inner_input,),
        single="True",
    )


def _write_rows(buffers, step, lines):
    offered = set()
    for buffer in buffers:
        for offset, output in buffer.writes:
            first = output not in offered
            offered.add(output)
            if buffer.is_vector:
                _write_number(buffer, offset, output, step, lines)
            else:
                _write_row(buffer, offset, output, step, lines, direct=first)


def _write_number(buffer, offset, output, step, lines):
    value = cast(step.scalar(output), buffer.dtype)
    lines.write.append(f"poke({buffer.name}, {buffer.position(offset)}, {value})")


def _write_row(buffer, offset, output, step, lines, direct):
    name = step.array(output)
    flag = step.written.get(output) if direct else None
    unknown = buffer.allocated and None in buffer.outer.type.shape[1:]
    if unknown and flag is None:
        lines.write.append("if i == 0:")
        lines.write.append(
            f"    {buffer.name} = np.empty(({buffer.name}_rows,) + {name}.shape, {_np(buffer)})"
        )
    put = f"put(borrow_row({buffer.name}, {buffer.position(offset)}), {name})"
    if flag is None:
        lines.write.append(put)
    else:
        lines.write += [f"if not {flag}:", f"    {put}"]


def _shift_registers(buffers, states, step, lines):
    """Hand all numbers to the next step at once: one may be the old value of another."""
    shifted = [
        (state.name, cast(step.scalar(state.inner_output), state.inner_output.type.dtype))
        for state in states
        if state.is_scalar
    ]
    for buffer in buffers:
        for offset, _ in buffer.reads if buffer.is_vector else ():
            successor = _successor(buffer, offset)
            if successor is not None:
                value = cast(step.scalar(successor), buffer.dtype)
                shifted.append((buffer.register(offset), value))
    if shifted:
        targets, values = zip(*shifted, strict=True)
        lines.advance.append(f"{', '.join(targets)} = {', '.join(values)}")


def _write_states(states, step, lines):
    updates = []
    for state in states:
        output = state.inner_output
        if state.is_tensor and step.is_scratch(output):
            replaced = f"replace_state({state.name}, {step.array(output)})"
            flag = step.written.get(output) if step.targets.get(output) == _target(state) else None
            if flag is not None:
                replaced = f"{state.name} if {flag} else {replaced}"
            updates.append((state.name, replaced))
        elif isinstance(output, Constant) and state.is_tensor:
            updates.append((state.name, f"next_state({state.name}, np.copy({step.array(output)}))"))
        elif state.is_borrowed:
            updates.append((state.name, f"next_state({state.name}, {step.array(output)})"))
        else:
            updates.append((state.name, step.array(output)))
    for name, value in updates:
        lines.advance.append(f"{name} = {value}")


def _result(state):
    return f"box({state.name}, {state.argument})" if state.is_scalar else state.name


def _finish_buffer(buffer, as_while, lines):
    if buffer.finished:
        used = f"steps + {buffer.initial}"
        lines.finish.append(f"{buffer.name} = finish_rows({buffer.name}, {used}, {as_while})")


def _assemble(arguments, step, lines, condition, results):
    body = [*lines.read, *step.head, *step.body, *lines.write]
    body.append("steps = i + 1")
    if condition is not None:
        # The last values of the states are still wanted.
        body += [*lines.advance, f"if {condition}:", "    break"]
    else:
        body += lines.advance
    start = [*lines.start, *step.setup, "steps = 0"]
    source = [
        f"def scan({', '.join(arguments)}):",
        *(f"    {line}" for line in start),
        "    for i in range(n):",
        *(f"        {line}" for line in body),
        *(f"    {line}" for line in [*step.finish, *lines.finish]),
        f"    return {', '.join(results)}",
    ]
    return "\n".join(source) + "\n"
