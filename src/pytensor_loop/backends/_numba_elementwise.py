"""Elementwise Ops as loops, also those that take scalars or sum what they compute."""

from collections.abc import Sequence
from typing import Any

from pytensor.compile.ops import DeepCopyOp, ViewOp
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.scalar.basic import Add, ScalarOp, ScalarType
from pytensor.tensor.basic import ScalarFromTensor, TensorFromScalar
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.rewriting.fused_elemwise import FusedElemwise
from pytensor.tensor.rewriting.scalarize import ScalarizedElemwise
from pytensor.tensor.type import TensorType

from pytensor_loop.backends._numba_scalar import cast
from pytensor_loop.backends._numba_step import StepCode, write_node
from pytensor_loop.backends._numba_sums import find_outer_sum, write_outer_sum
from pytensor_loop.backends._numba_values import Loop, Place, Value, is_zero_dim, subscript


MAX_LOOPS = 4


@write_node.register(TensorFromScalar)
@write_node.register(ScalarFromTensor)
def write_same_number(op: Any, node: Apply, step: StepCode) -> None:
    """Let a number of one kind stand for the same number of another kind."""
    step.values[node.outputs[0]] = Value(step.scalar(node.inputs[0]), scalar=True)


@write_node.register(DeepCopyOp)
@write_node.register(ViewOp)
def write_copy(op: Any, node: Apply, step: StepCode) -> None:
    """Write a copy; one of a number costs nothing."""
    [variable] = node.inputs
    if is_zero_dim(variable) and step.value(variable).scalar:
        write_same_number(op, node, step)
    else:
        step.write_call(node)


@write_node.register(ScalarOp)
def write_scalar_op(op: ScalarOp, node: Apply, step: StepCode) -> None:
    """Write a scalar Op."""
    step.write_scalar(node, op, node, node.inputs)


@write_node.register(Elemwise)
def write_elemwise(op: Elemwise, node: Apply, step: StepCode) -> None:
    """Write an elementwise Op."""
    _write(op, node, step, node.inputs, node.outputs)


@write_node.register(ScalarizedElemwise)
def write_scalarized(op: Any, node: Apply, step: StepCode) -> None:
    """Write an elementwise Op that PyTensor gave scalars as inputs."""
    [inner] = [n for n in op.fgraph.apply_nodes if isinstance(n.op, Elemwise)]
    outer = dict(zip(op.fgraph.inputs, node.inputs, strict=True))

    def behind(variable: Variable) -> Variable:
        while variable not in outer and not isinstance(variable, Constant):
            [variable] = variable.owner.inputs
        return outer.get(variable, variable)

    _write(inner.op, node, step, [behind(v) for v in inner.inputs], inner.outputs)


@write_node.register(FusedElemwise)
def write_fused(op: Any, node: Apply, step: StepCode) -> None:
    """Write an elementwise Op some of whose results are summed to a number."""
    if _is_sum_of_elements(op):
        write_scalarized(op, node, step)
    else:
        step.write_call(node)


def _is_sum_of_elements(op: FusedElemwise) -> bool:
    if op.indexed_inputs or op.indexed_outputs:
        return False
    [inner] = [n for n in op.fgraph.apply_nodes if isinstance(n.op, Elemwise)]
    every = tuple(range(inner.outputs[0].type.ndim))
    return all(
        spec is None
        or (isinstance(spec[0], Add) and spec[1] == every and spec[3] in {"float64", "int64"})
        for spec in op.reduced_outputs
    )


def _write(
    op: Elemwise,
    node: Apply,
    step: StepCode,
    inputs: Sequence[Variable],
    core_outputs: Sequence[Variable],
) -> None:
    """Write an elementwise Op.

    Parameters
    ----------
    op, inputs, core_outputs
        The Elemwise itself, what it reads, and its own results.
    node
        The node, whose outputs are the results or sums of them.
    step
        The step.
    """
    ndim = core_outputs[0].type.ndim
    scalar_node = op.make_scalar_node(*_dimensioned(inputs, ndim))
    if ndim == 0:
        step.write_scalar(node, op.scalar_op, scalar_node, inputs)
        return
    arrays = [v for v in inputs if not isinstance(v.type, ScalarType) and v.type.ndim]
    if ndim > MAX_LOOPS or not arrays:
        step.write_call(node)
        return
    lengths = [_common_length(step, arrays, axis) for axis in range(ndim)]
    indices = [step.name("j") for _ in range(ndim)]
    levels: list[list[str]] = [[] for _ in range(ndim + 1)]
    elements = [
        _element_name(step, v, indices, levels) if v in arrays else step.scalar(v) for v in inputs
    ]
    results = step.scalar_code.write(op.scalar_op, scalar_node, elements, levels[-1])
    loop = Loop(indices, lengths, levels, results)
    factors = find_outer_sum(op, inputs, node.outputs, step)
    if factors is not None:
        write_outer_sum(node, step, factors, loop)
    else:
        _write_results(node, step, core_outputs, loop)


def _write_results(
    node: Apply, step: StepCode, core_outputs: Sequence[Variable], loop: Loop
) -> None:
    """Write the loops, each result into its array or added to its sum."""
    innermost = loop.levels[-1]
    for variable, core, result in zip(node.outputs, core_outputs, loop.results, strict=True):
        if variable.type.ndim < core.type.ndim:
            innermost.append(f"{_sum(step, variable)} += {result}")
        else:
            out, indices = _place(node, step, variable, loop)
            innermost.append(f"{out}{subscript(indices)} = {result}")
    step.body += loop.lines()


def _sum(step: StepCode, variable: Variable) -> str:
    """Return the name of a scalar that starts at zero."""
    name = step.name("sum")
    step.body.append(f"{name} = {cast('0', variable.type.dtype)}")
    step.values[variable] = Value(name, scalar=True)
    return name


def _place(
    node: Apply, step: StepCode, variable: Variable, loop: Loop
) -> tuple[str, Sequence[str]]:
    """Return the array for a result and the indices of an element."""
    shape = variable.type.shape
    kept = [axis for axis, length in enumerate(shape) if length != 1]
    if variable in step.targets or not kept or len(kept) == len(shape):
        return step.target(node, variable, loop.lengths), loop.indices
    # Without its axes of length one, so that products see vectors for what they are.
    core = variable.type.clone(shape=tuple(shape[axis] for axis in kept))()
    out = step.target(node, core, [loop.lengths[axis] for axis in kept])
    places = tuple(Place(0, axis) for axis in kept)
    step.values[variable] = Value("", source=core, places=places)
    return out, [loop.indices[axis] for axis in kept]


def _element_name(
    step: StepCode, variable: Variable, indices: Sequence[str], levels: list[list[str]]
) -> str:
    """Return the name of an element, read in the outermost loop that knows where it is."""
    element = step.element(variable, indices)
    name = step.name("s")
    depth = max((k + 1 for k, index in enumerate(indices) if index in element), default=0)
    levels[depth].append(f"{name} = {element}")
    return name


def _common_length(step: StepCode, arrays: Sequence[Variable], axis: int) -> str:
    """Return the length of the result along an axis, checked when the loop runs."""
    full = [v for v in arrays if v.type.shape[axis] != 1]
    lengths = list(dict.fromkeys(step.length(v, axis) for v in full))
    if not lengths:
        return "1"
    known = [length for length in lengths if length.isdigit()]
    first = known[0] if known else lengths[0]
    for other in lengths:
        if other != first:
            step.body.append(f"if {other} != {first}:")
            step.body.append(
                f'    raise ValueError("Incompatible vectorized shapes along axis {axis}")'
            )
    return first


def _dimensioned(inputs: Sequence[Variable], ndim: int) -> list[Variable]:
    """Return the inputs as tensors, scalars as tensors of length-one axes, for their types only."""
    return [
        TensorType(v.type.dtype, (1,) * ndim)() if isinstance(v.type, ScalarType) else v
        for v in inputs
    ]
