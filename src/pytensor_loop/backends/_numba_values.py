"""What the generated code knows about the variables of a step, as plain records."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from pytensor.graph.basic import Variable
from pytensor.scalar.basic import ScalarType
from pytensor.tensor.type import DenseTensorType


# Elements of the largest array that is kept on the stack.
ON_STACK = 64


@dataclass(frozen=True)
class Place:
    """Where an element of a view lies along one axis of what it shows: ``start + step * index``.

    Parameters
    ----------
    start, step
        Numbers known when the code is written.
    axis
        The axis of the view whose index it is; None for an axis that the view does not have.
    count
        Length of that axis; None if it is as long as what it shows.
    """

    start: int = 0
    axis: int | None = None
    step: int = 1
    count: int | None = None

    def within(self, places: Sequence["Place"]) -> "Place":
        """Return the place in the source, where the axes of this view are places of another one."""
        if self.axis is None:
            return self
        outer = places[self.axis]
        start, step = self.start + self.step * outer.start, self.step * outer.step
        return Place(start, outer.axis, step, self.count if outer.count is None else outer.count)

    def subscript(self, indices: Sequence[str]) -> str:
        """Return the expression of the index along the axis."""
        if self.axis is None:
            return str(self.start)
        index = indices[self.axis]
        if index.isdigit():
            return str(self.start + self.step * int(index))
        scaled = index if self.step == 1 else f"{self.step} * {index}"
        return f"{self.start} + {scaled}" if self.start else scaled


@dataclass(frozen=True)
class Value:
    """What the generated code knows about one variable of the inner graph.

    Parameters
    ----------
    name
        The Python name that holds it; empty for a view that is not materialized yet.
    scalar
        Whether that name holds a Numba scalar.
    owned
        Whether the array is scratch space that the next step overwrites.
    source, places
        For a view: the variable that it shows, and a place for each axis of that.
    """

    name: str
    scalar: bool = False
    owned: bool = False
    source: Variable | None = None
    places: tuple[Place, ...] = ()


@dataclass(frozen=True)
class Target:
    """Where a result is kept.

    Parameters
    ----------
    row
        Expression of the borrowed row that the result may be written into.
    allowed
        Expression of whether that row may be written before the step has read everything.
    shape
        Expressions of the lengths of the row.
    allocate
        Statement that allocates the buffer on the first step, with ``{shape}`` for the lengths of a
        row; empty if it exists.
    overwritten
        The inner inputs whose memory the row may be; None stands for one that forbids it.
    single
        Expression of whether every step writes this same row; empty if none does.
    """

    row: str
    allowed: str
    shape: tuple[str, ...]
    allocate: str = ""
    overwritten: tuple[Variable | None, ...] = ()
    single: str = ""


@dataclass(frozen=True)
class Loop:
    """Nested loops over the elements of a result.

    Parameters
    ----------
    indices, lengths
        Name and length of the index of each loop, outermost first.
    levels
        Lines before the first loop, and inside each.
    results
        Expressions of the elements that the innermost loop computes.
    """

    indices: Sequence[str]
    lengths: Sequence[str]
    levels: list[list[str]]
    results: Sequence[str]

    def lines(self) -> list[str]:
        """Return the loops."""
        return nested_loops(self.indices, self.lengths, self.levels)


@dataclass
class Lines:
    """The sections of the function around the statements of a step.

    Parameters
    ----------
    start
        Before the loop.
    read, write, advance
        In the loop: before the step, after it, and once everything is written.
    finish
        After the loop.
    """

    start: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    write: list[str] = field(default_factory=list)
    advance: list[str] = field(default_factory=list)
    finish: list[str] = field(default_factory=list)

    def check_shape(self, name: str, shape: Sequence[int | None]) -> None:
        """Check the lengths of an array that the code takes for granted; not those of rows."""
        for axis, length in enumerate(shape):
            if length is not None:
                self.start.append(f"check_length({name}.shape[{axis}], {length})")


def lengths_of(shape: Sequence[int | None], name: str, first: int = 0) -> list[str]:
    """Return the expressions of the lengths of a shape.

    Parameters
    ----------
    shape
        A length, or None, for each axis.
    name
        Name of the array that knows those that are None.
    first
        The axis of that array which the first length belongs to.
    """
    axes = enumerate(shape, start=first)
    return [f"{name}.shape[{axis}]" if n is None else str(n) for axis, n in axes]


def is_small(variable: Any) -> bool:
    """Return whether an array is known to have few elements."""
    shape = variable.type.shape
    return None not in shape and prod(shape) <= ON_STACK


def is_zero_dim(variable: Any) -> bool:
    """Return whether a variable is a single number."""
    if isinstance(variable.type, ScalarType):
        return True
    return isinstance(variable.type, DenseTensorType) and variable.type.ndim == 0


def subscript(indices: Sequence[str]) -> str:
    """Return the subscript of an element."""
    return f"[{', '.join(indices) or '()'}]"


def tuple_of(expressions: Sequence[str]) -> str:
    """Return the expression of a tuple."""
    return f"({''.join(f'{e}, ' for e in expressions)})"


def nested_loops(
    indices: Sequence[str], lengths: Sequence[str], levels: Sequence[Sequence[str]]
) -> list[str]:
    """Return one loop per index, around the lines that belong at each depth."""
    body = list(levels[0])
    for depth, (index, length) in enumerate(zip(indices, lengths, strict=True)):
        body.append(f"{'    ' * depth}for {index} in range({length}):")
        body += [f"{'    ' * (depth + 1)}{line}" for line in levels[depth + 1]]
    return body


def indented(lines: Sequence[str]) -> list[str]:
    """Return the lines one block deeper."""
    return [f"    {line}" for line in lines]
