"""Products of matrices: which of the functions of this package does one, and on which vectors."""

from collections.abc import Sequence

from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.math import Dot

from pytensor_loop.backends import _numba_products
from pytensor_loop.backends._numba_step import StepCode, write_node
from pytensor_loop.backends._numba_values import Place, Value


@write_node.register(Dot)
def write_dot(op: Dot, node: Apply, step: StepCode) -> None:
    """Write a product of two matrices; PyTensor gives vectors as matrices of one row or column."""
    left, right = node.inputs
    [output] = node.outputs
    if not _numba_products.is_supported(node):
        step.write_call(node)
        return
    row = _as_vector(step, left, axis=1)
    column = _as_vector(step, right, axis=0)
    if row is not None and column is not None:
        name = step.name("s")
        _product(step, "inner", [row, column], assign=f"{name} = ")
        step.values[output] = Value(name, scalar=True)
    elif column is not None:
        _write_vector(node, step, "matvec", [left, column], axis=0)
    elif row is not None:
        _write_vector(node, step, "vecmat", [row, right], axis=1)
    else:
        out = step.target(node, output, [step.length(left, 0), step.length(right, 1)])
        _product(step, "matmul", [left, right], out)


def _as_vector(step: StepCode, variable: Variable, axis: int) -> Variable | None:
    """Return the vector that a matrix shows along one axis, or None."""
    value = step.value(variable)
    whole = value.places == (Place(0, axis),)
    return value.source if value.source is not None and whole else None


def _write_vector(
    node: Apply, step: StepCode, kind: str, operands: Sequence[Variable], axis: int
) -> None:
    """Write a product that is a vector, and show it as a matrix with one row or one column."""
    [output] = node.outputs
    vector = output.type.clone(shape=(output.type.shape[axis],))()
    out = step.target(node, vector, [step.length(node.inputs[axis], axis)])
    _product(step, kind, operands, out)
    step.values[output] = Value("", source=vector, places=(Place(0, axis),))


def _product(
    step: StepCode, kind: str, operands: Sequence[Variable], *out: str, assign: str = ""
) -> None:
    arguments = [*(step.contiguous(v) for v in operands), *out]
    function = step.use(kind, getattr(_numba_products, kind))
    step.body.append(f"{assign}{function}({', '.join(arguments)})")
