"""The outputs of a loop that are kept in rows: how a step reads, writes and finishes them.

Every buffer is circular as far as the Op is concerned. Here each row that a step touches has a
running position that wraps by comparison, and numbers that one step hands to the next stay in
registers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pytensor.graph.basic import Apply, Variable
from pytensor.scan.op import Scan

from pytensor_loop.backends._numba_scalar import cast
from pytensor_loop.backends._numba_step import StepCode
from pytensor_loop.backends._numba_values import Lines, Target, Value, lengths_of, tuple_of


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
    outer: Variable
    reads: tuple[tuple[int, Variable], ...]
    writes: tuple[tuple[int, Variable], ...]
    initial: int
    owned: bool = False
    allocated: bool = False
    finished: bool = True

    @property
    def dtype(self) -> str:
        """Dtype of the rows."""
        return str(self.outer.type.dtype)

    @property
    def is_vector(self) -> bool:
        """Whether a row is a single number."""
        return bool(self.outer.type.ndim == 1)

    @property
    def is_unknown(self) -> bool:
        """Whether the loop allocates it, and learns from its first row how long a row is."""
        return self.allocated and None in self.outer.type.shape[1:]

    @property
    def lengths(self) -> list[str]:
        """Expressions of the lengths of a row."""
        return lengths_of(self.outer.type.shape[1:], self.name, first=1)

    def position(self, offset: int) -> str:
        """Return the name of the running position of a row."""
        return f"{self.name}_p{offset}"

    def row(self, offset: int) -> str:
        """Return the expression of a row, borrowed."""
        return f"borrow_row({self.name}, {self.position(offset)}, {tuple_of(self.lengths)})"

    def register(self, offset: int) -> str:
        """Return the name of the register of a row."""
        return f"{self.name}_r{offset}"

    def successor(self, offset: int) -> Variable | None:
        """Return what the next step reads at an offset, or None if only memory knows."""
        for place, variable in (*self.writes, *self.reads):
            if place == offset + 1:
                return variable
        return None

    def empty(self, *lengths: str) -> str:
        """Return the statement that allocates it."""
        shape = tuple_of([f"{self.name}_rows", *lengths])
        return f"{self.name} = np.empty({shape}, np.{self.dtype})"


def find_buffers(op: Scan, node: Apply, arguments: Sequence[str]) -> list[Buffer]:
    """Return the buffers of a loop in the order of its outputs."""
    buffers = []
    for i, (argument, inputs, in_taps, outputs, out_taps) in enumerate(_recurrent(op, arguments)):
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
                finished=i >= op.info.n_mit_mot,
            )
        )
    allocated = zip(op.outer_nitsot(arguments), op.inner_nitsot_outs(op.inner_outputs), strict=True)
    for i, (argument, output) in enumerate(allocated, start=len(buffers)):
        writes = ((0, output),)
        buffers.append(Buffer(f"b{i}", argument, node.outputs[i], (), writes, 0, allocated=True))
    return buffers


def _recurrent(op: Scan, arguments: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Yield argument, inner inputs, taps, inner outputs and their taps of what a step reads."""
    info, inner_in, inner_out = op.info, op.inner_inputs, op.inner_outputs
    yield from zip(
        op.outer_mitmot(arguments),
        op.inner_mitmot_grouped(inner_in),
        info.mit_mot_in_slices,
        op.inner_mitmot_outs_grouped(inner_out),
        info.mit_mot_out_slices,
        strict=True,
    )
    yield from zip(
        op.outer_mitsot(arguments),
        op.inner_mitsot_grouped(inner_in),
        info.mit_sot_in_slices,
        [[v] for v in op.inner_mitsot_outs(inner_out)],
        [(0,)] * info.n_mit_sot,
        strict=True,
    )
    yield from zip(
        op.outer_sitsot(arguments),
        [[v] for v in op.inner_sitsot(inner_in)],
        info.sit_sot_in_slices,
        [[v] for v in op.inner_sitsot_outs(inner_out)],
        [(0,)] * info.n_sit_sot,
        strict=True,
    )


def start_buffer(buffer: Buffer, lines: Lines) -> None:
    """Allocate or take over the array, and set the running positions to its first rows."""
    name, rows = buffer.name, f"{buffer.name}_rows"
    if buffer.allocated:
        lines.start.append(f"{rows} = np.int64({buffer.argument})")
        lines.start.append(
            buffer.empty(*(["0"] * len(buffer.lengths) if buffer.is_unknown else buffer.lengths))
        )
    else:
        lines.start.append(f"{rows} = {buffer.argument}.shape[0]")
        value = buffer.argument if buffer.owned else f"numba_deepcopy({buffer.argument})"
        lines.start.append(f"{name} = {value if buffer.is_vector else f'with_dense_rows({value})'}")
        lines.check_shape(name, buffer.outer.type.shape)
    offsets = {offset for offset, _ in (*buffer.reads, *buffer.writes)}
    touched = max((o for o, _ in buffer.reads), default=0) if buffer.finished else max(offsets)
    lines.start.append(f"check_rows({rows}, {touched + 1}, n)")
    for position, offset in sorted((buffer.position(offset), offset) for offset in offsets):
        lines.start.append(f"{position} = first_slot({offset}, {rows})")
        lines.advance.append(f"{position} += 1")
        lines.advance.append(f"if {position} == {rows}:")
        lines.advance.append(f"    {position} = 0")


def bind_reads(buffer: Buffer, step: StepCode, lines: Lines) -> None:
    """Give the step the rows that it reads."""
    for offset, inner in buffer.reads:
        if not buffer.is_vector:
            row = f"{buffer.name}_x{offset}"
            lines.read.append(f"{row} = {buffer.row(offset)}")
            step.values[inner] = Value(row)
            continue
        register = buffer.register(offset)
        read = f"{register} = peek({buffer.name}, {buffer.position(offset)})"
        if buffer.successor(offset) is None:
            lines.read.append(read)
        else:
            first = f"{register} = {cast('0', buffer.dtype)}"
            lines.start += [first, "if n > 0:", f"    {read}"]
        step.values[inner] = Value(register, scalar=True)


def offer_rows(buffer: Buffer, step: StepCode) -> None:
    """Let results be written straight into the rows that keep them."""
    if buffer.is_vector:
        return
    for offset, output in buffer.writes:
        if output in step.targets or output.owner is None:
            continue
        allowed, overwritten = _when_writable(buffer, offset)
        recurs = len(buffer.reads) == 1 and buffer.finished
        step.targets[output] = Target(
            row=buffer.row(offset),
            allowed=allowed,
            shape=tuple(buffer.lengths),
            allocate=f"{buffer.name} = np.empty(({buffer.name}_rows, {{shape}}), np.{buffer.dtype})"
            if buffer.is_unknown
            else "",
            overwritten=overwritten,
            single=f"{buffer.name}_rows == 1" if recurs else "",
        )


def _when_writable(buffer: Buffer, offset: int) -> tuple[str, tuple[Variable | None, ...]]:
    """Return when a row may be written at any time of the step, and what it overwrites else."""
    same = tuple(v for o, v in buffer.reads if o == offset)
    if same:
        return "False", same
    if not (buffer.reads and buffer.finished):
        return "True", ()
    overwritten: tuple[Variable | None, ...] = tuple(v for o, v in buffer.reads if o == 0)
    if len(buffer.reads) > 1:
        overwritten = (*overwritten, None)
    return f"{buffer.name}_rows > {buffer.initial}", overwritten


def write_rows(buffers: Sequence[Buffer], step: StepCode, lines: Lines) -> None:
    """Put the results that are not there yet into their rows."""
    offered: set[Variable] = set()
    for buffer in buffers:
        for offset, output in buffer.writes:
            flag = None if output in offered else step.written.get(output)
            offered.add(output)
            if buffer.is_vector:
                value = cast(step.scalar(output), buffer.dtype)
                lines.write.append(f"poke({buffer.name}, {buffer.position(offset)}, {value})")
            elif flag != "True":
                _write_row(buffer, offset, step.array(output), flag, lines)


def _write_row(buffer: Buffer, offset: int, name: str, flag: str | None, lines: Lines) -> None:
    put = f"put({buffer.row(offset)}, {name})"
    if flag is not None:
        lines.write += [f"if not {flag}:", f"    {put}"]
        return
    if buffer.is_unknown:
        lines.write.append("if i == 0:")
        lines.write.append(
            f"    {buffer.name} = np.empty(({buffer.name}_rows,) + {name}.shape, np.{buffer.dtype})"
        )
    lines.write.append(put)


def registers(buffer: Buffer, step: StepCode) -> Iterator[tuple[str, str]]:
    """Yield the registers of a buffer of numbers with what the next step finds in them."""
    for offset, _ in buffer.reads if buffer.is_vector else ():
        successor = buffer.successor(offset)
        if successor is not None:
            yield buffer.register(offset), cast(step.scalar(successor), buffer.dtype)


def finish_buffer(buffer: Buffer, truncate: bool, lines: Lines) -> None:
    """Rotate and cut the rows once the loop has ended."""
    if buffer.finished:
        used = f"steps + {buffer.initial}"
        lines.finish.append(f"{buffer.name} = finish_rows({buffer.name}, {used}, {truncate})")
