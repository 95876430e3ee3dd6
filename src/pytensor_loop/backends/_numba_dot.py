"""Products of matrices: which of the functions of this package does one, and on which vectors."""

from collections.abc import Sequence
from math import prod

from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.math import Dot

from pytensor_loop.backends import _numba_products
from pytensor_loop.backends._numba_scalar import cast
from pytensor_loop.backends._numba_step import StepCode, write_node
from pytensor_loop.backends._numba_values import Place, Value


# Multiplications of the largest product that is written out.
MOST_PRODUCTS = 64


@write_node.register(Dot)
def write_dot(op: Dot, node: Apply, step: StepCode) -> None:
    """Write a product of two matrices; PyTensor gives vectors as matrices of one row or column."""
    left, right = node.inputs
    [output] = node.outputs
    if not _numba_products.is_supported(node):
        step.write_call(node)
        return
    if _is_tiny(left, right):
        _write_sums(node, step)
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


def _is_tiny(left: Variable, right: Variable) -> bool:
    """Return whether a product is known to take a few multiplications."""
    lengths = (*left.type.shape, right.type.shape[1])
    return None not in lengths and prod(lengths) <= MOST_PRODUCTS


def _write_sums(node: Apply, step: StepCode) -> None:
    """Write every element of a product as a sum, without loops that LLVM would vectorize.

    It would read pairs of numbers that were just written one by one, and wait for them.
    """
    left, right = node.inputs
    [output] = node.outputs
    rows, columns = output.type.shape
    names = {}
    for i in range(rows):
        for j in range(columns):
            terms = [
                f"{step.element(left, [str(i), str(k)])} * {step.element(right, [str(k), str(j)])}"
                for k in range(left.type.shape[1])
            ]
            names[i, j] = step.name("s")
            step.body.append(f"{names[i, j]} = {' + '.join(terms) or cast('0', output.type.dtype)}")
    if rows == columns == 1:
        step.values[output] = Value(names[0, 0], scalar=True)
        return
    out = step.target(node, output, [str(rows), str(columns)])
    for (i, j), name in names.items():
        step.body.append(f"{out}[{i}, {j}] = {name}")


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
