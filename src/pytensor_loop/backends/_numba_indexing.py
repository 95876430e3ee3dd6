"""Views and indexed updates: what is known of them when the code is written is a subscript.

A view is not made at all: who reads an element of it reads that of its source.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.tensor.basic import MakeVector
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.rewriting.scalarize import ScalarizedJoin, ScalarSubtensor
from pytensor.tensor.shape import Shape_i, SpecifyShape
from pytensor.tensor.subtensor import (
    AdvancedIncSubtensor,
    IncSubtensor,
    Subtensor,
    indices_from_subtensor,
)
from pytensor.tensor.type import DenseTensorType
from pytensor.tensor.type_other import NoneTypeT

from pytensor_loop.backends._numba_scalar import cast
from pytensor_loop.backends._numba_step import StepCode, write_node
from pytensor_loop.backends._numba_values import (
    Place,
    Value,
    is_small,
    is_zero_dim,
    nested_loops,
    subscript,
)


# The largest number of rows that an update by a vector of integers is written out for.
MOST_ROWS = 8


@write_node.register(DimShuffle)
def write_dimshuffle(op: DimShuffle, node: Apply, step: StepCode) -> None:
    """Write a view with axes in another order, with new ones, or without some of length one."""
    [source], [output] = node.inputs, node.outputs
    value = step.value(source)
    if value.scalar and not output.type.ndim:
        step.values[output] = value
    elif any(source.type.shape[axis] != 1 for axis in op.drop):
        step.write_call(node)  # it checks the length of what it drops
    else:
        order = list(op.new_order)
        axes = range(source.type.ndim)
        show(step, output, source, [Place(0, _index(order, axis)) for axis in axes])


def _index(order: list[Any], axis: int) -> int | None:
    return order.index(axis) if axis in order else None


@write_node.register(Subtensor)
def write_subtensor(op: Subtensor, node: Apply, step: StepCode) -> None:
    """Write a view of some elements if it is known which, and if they are few."""
    _write_subtensor(op, node, step, node.inputs)


@write_node.register(ScalarSubtensor)
def write_scalar_subtensor(op: ScalarSubtensor, node: Apply, step: StepCode) -> None:
    """Write the reading of one element, which PyTensor wants as a number."""
    [inner] = [n for n in op.fgraph.apply_nodes if isinstance(n.op, Subtensor)]
    outer = dict(zip(op.fgraph.inputs, node.inputs, strict=True))
    _write_subtensor(inner.op, node, step, [outer.get(v, v) for v in inner.inputs])


def _write_subtensor(
    op: Subtensor, node: Apply, step: StepCode, inputs: Sequence[Variable]
) -> None:
    [source, *indices], [output] = inputs, node.outputs
    places = known_places(source, indices_from_subtensor(indices, op.idx_list))
    if places is None or not is_small(output) or step.value(source).scalar:
        step.write_call(node)
    else:
        show(step, output, source, places)


@write_node.register(Shape_i)
def write_length(op: Shape_i, node: Apply, step: StepCode) -> None:
    """Write one length of an array."""
    [source], [output] = node.inputs, node.outputs
    if isinstance(source.type, DenseTensorType):
        step.values[output] = Value(cast(step.length(source, op.i), "int64"), scalar=True)
    else:
        step.write_call(node)


@write_node.register(SpecifyShape)
def write_specify_shape(op: SpecifyShape, node: Apply, step: StepCode) -> None:
    """Write the assertion of a shape: only one that fails calls PyTensor's function."""
    [source, *lengths], [output] = node.inputs, node.outputs
    wrong = [
        f"{step.length(source, axis)} != {step.scalar(length)}"
        for axis, length in enumerate(lengths)
        if not isinstance(length.type, NoneTypeT) and source.type.shape[axis] is None
    ]
    if wrong:
        arguments = ", ".join(step.array(v) for v in node.inputs)
        step.body.append(f"if {' or '.join(wrong)}:")
        step.body.append(f"    {step.call(op, node)}({arguments})")
    step.values[output] = step.value(source)


def show(step: StepCode, output: Variable, source: Variable, places: Sequence[Place]) -> None:
    """Let a variable be a view of another one, or of what that shows itself.

    Parameters
    ----------
    step
        The step.
    output
        The view.
    source
        What it shows.
    places
        Where its elements lie along each axis of the source.
    """
    value = step.value(source)
    if value.source is not None:
        places = [place.within(places) for place in value.places]
        source = value.source
    ndim = output.type.ndim
    if list(places) == [Place(0, axis) for axis in range(ndim)]:
        step.values[output] = step.value(source)
        return
    view = Value("", source=source, places=tuple(places))
    step.values[output] = view
    if ndim == 0:
        step.values[output] = Value(step.scalar(output), scalar=True)


def known_places(source: Variable, indices: Sequence[Any]) -> list[Place] | None:
    """Return where basic indices lead along each axis of a source; None if that is not known."""
    places: list[Place] = []
    shape = source.type.shape
    axis = 0
    for position, length in enumerate(shape):
        index = indices[position] if position < len(indices) else slice(None)
        place = _known_place(_as_number(index), length, axis)
        if place is None:
            return None
        axis += place.axis is not None
        places.append(place)
    return places


def _as_number(index: Any) -> Any:
    """Return an index with Python's numbers for constants, and with variables for the rest."""
    if isinstance(index, slice):
        return slice(*(_as_number(i) for i in (index.start, index.stop, index.step)))
    if isinstance(index, Constant):
        return None if index.data is None else int(index.data)
    return index


def _known_place(index: Any, length: int | None, axis: int) -> Place | None:
    if index == slice(None):
        return Place(0, axis)
    numbers = (index.start, index.stop, index.step) if isinstance(index, slice) else (index,)
    if length is None or any(isinstance(n, Variable) for n in numbers):
        return None
    if isinstance(index, slice):
        covered = range(length)[index]
        return Place(covered.start, axis, covered.step, len(covered))
    return Place(index % length) if -length <= index < length else None


@write_node.register(IncSubtensor)
def write_update(op: IncSubtensor, node: Apply, step: StepCode) -> None:
    """Write the update of some elements if it is known which."""
    x, y, *indices = node.inputs
    places = known_places(x, indices_from_subtensor(indices, op.idx_list))
    if places is None or not is_small(x):
        step.write_call(node)
        return
    lengths = [
        x.type.shape[axis] if place.count is None else place.count
        for axis, place in enumerate(places)
        if place.axis is not None
    ]
    if _may_overlap(op, node, step) or not _broadcasts(y, lengths):
        step.write_call(node)
        return
    to = _updated(op, node, step), places
    _update(op, step, to, y, [(step.name("j"), length) for length in lengths])


def _may_overlap(op: Any, node: Apply, step: StepCode) -> bool:
    """Return whether an update in place may read what it wrote before."""
    x, y = node.inputs[:2]
    return op.inplace and not is_zero_dim(y) and step.memory(x) == step.memory(y)


def _broadcasts(y: Variable, lengths: Sequence[int]) -> bool:
    """Return whether a variable is known to broadcast to these lengths."""
    if y.type.ndim > len(lengths):
        return False
    trailing = lengths[len(lengths) - y.type.ndim :]
    return all(n in {1, length} for n, length in zip(y.type.shape, trailing, strict=True))


@write_node.register(AdvancedIncSubtensor)
def write_update_of_rows(op: AdvancedIncSubtensor, node: Apply, step: StepCode) -> None:
    """Write the update of a few rows along one axis, given by a constant vector of integers."""
    x, y, *indices = node.inputs
    found = _rows(x, indices_from_subtensor(indices, op.idx_list))
    if found is None or not is_small(x) or y.type.ndim != x.type.ndim:
        step.write_call(node)
        return
    axis, rows = found
    lengths = [len(rows) if a == axis else length for a, length in enumerate(x.type.shape)]
    if _may_overlap(op, node, step) or not _broadcasts(y, lengths):
        step.write_call(node)
        return
    out = _updated(op, node, step)
    places = [Place(0, a) for a in range(x.type.ndim)]
    for k, row in enumerate(rows):
        places[axis] = Place(row)
        indices = [(step.name("j"), length) for length in lengths]
        indices[axis] = (str(k), 1)
        _update(op, step, (out, places), y, indices)


def _rows(x: Variable, indices: Sequence[Any]) -> tuple[int, list[int]] | None:
    """Return the axis of a constant vector of different indices, and them."""
    vectors = [axis for axis, index in enumerate(indices) if index != slice(None)]
    if len(vectors) != 1:
        return None
    [axis] = vectors
    index, length = indices[axis], x.type.shape[axis]
    if not isinstance(index, Constant) or index.type.ndim != 1 or index.type.dtype == "bool":
        return None
    rows = [int(i) for i in np.asarray(index.data)]
    if length is None or any(not -length <= row < length for row in rows):
        return None
    rows = [row % length for row in rows]
    return (axis, rows) if len(set(rows)) == len(rows) <= MOST_ROWS else None


def _updated(op: Any, node: Apply, step: StepCode) -> str:
    """Return the array that is updated: the memory of the old one, or a copy."""
    x, [output] = node.inputs[0], node.outputs
    if op.inplace:
        name = step.array(x)
        step.values[output] = Value(name, owned=step.is_scratch(x))
        return name
    return step.copy(x, lambda lengths: step.target(node, output, lengths))


def _update(
    op: Any,
    step: StepCode,
    to: tuple[str, Sequence[Place]],
    y: Variable,
    indices: Sequence[tuple[str, int]],
) -> None:
    """Write the loops that set or increase the elements at some places of an array.

    Parameters
    ----------
    op
        The update.
    step
        The step.
    to
        The array, and the places along its axes.
    y
        The new values or the increments.
    indices
        Index and length for each axis of what the places show; an index may be a number.
    """
    out, places = to
    names = [index for index, _ in indices]
    element = step.element(y, names[len(names) - y.type.ndim :])
    sign = "=" if op.set_instead_of_inc else "+="
    line = f"{out}{subscript([place.subscript(names) for place in places])} {sign} {element}"
    loops = [(index, str(length)) for index, length in indices if not index.isdigit()]
    levels = [*([] for _ in loops), [line]]
    step.body += nested_loops([i for i, _ in loops], [n for _, n in loops], levels)


@write_node.register(MakeVector)
@write_node.register(ScalarizedJoin)
def write_vector(op: MakeVector | ScalarizedJoin, node: Apply, step: StepCode) -> None:
    """Write a vector made of numbers."""
    if not all(is_zero_dim(v) for v in node.inputs):
        step.write_call(node)
        return
    [output] = node.outputs
    elements = [step.scalar(v) for v in node.inputs]
    out = step.target(node, output, [str(len(elements))])
    for i, element in enumerate(elements):
        step.body.append(f"{out}[{i}] = {cast(element, output.type.dtype)}")
