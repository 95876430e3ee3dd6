"""Sums of outer products over the steps: the gradient of a matrix that the step multiplies with.

Adding an outer product to a large matrix in every step reads and writes the whole matrix each time.
Where nobody sees the partial sums, the factors of some steps are collected and added as one matrix
product.
"""

# The functions of this module are typed by Numba, argument by argument.
# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code="call-overload"

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit
from pytensor.graph.basic import Apply, Variable
from pytensor.scalar.basic import Add, Composite, Mul

from pytensor_loop.backends._numba_values import Loop, indented, is_zero_dim, subscript


if TYPE_CHECKING:
    from pytensor_loop.backends._numba_step import StepCode


BLOCK = 64  # steps whose factors are collected
LEAST = 1024  # elements of the matrix from which collecting pays


def find_outer_sum(
    op: Any, inputs: Sequence[Variable], outputs: Sequence[Variable], step: "StepCode"
) -> tuple[list[Variable], list[Variable]] | None:
    """Return the left and right factors of an outer product that is added to a sum.

    None if the node computes something else, or if somebody sees the partial sums.

    Parameters
    ----------
    op, inputs, outputs
        An Elemwise, what it reads, and its results.
    step
        The step.
    """
    roles = _roles(op, inputs, outputs[0]) if len(outputs) == 1 else None
    target = step.targets.get(outputs[0])
    if roles is None or target is None or not target.single:
        return None
    total, left, right = roles
    clients = step.fgraph.clients
    private = len(clients[inputs[total]]) == 1 and len(clients[outputs[0]]) == 1
    if not private or target.overwritten != (inputs[total],):
        return None
    return [inputs[f] for f in left], [inputs[f] for f in right]


def write_outer_sum(
    node: Apply,
    step: "StepCode",
    factors: tuple[list[Variable], list[Variable]],
    loop: Loop,
) -> None:
    """Write a sum of outer products that adds a block of them at a time where that pays.

    Parameters
    ----------
    node
        The node, with one result.
    step
        The step.
    factors
        The left and the right factors of the outer product.
    loop
        The loops that add one outer product.
    """
    [output] = node.outputs
    target, lengths = step.targets[output], loop.lengths
    defer, count, left, right = (step.name(p) for p in ("defer", "count", "left", "right"))
    dtype = f"np.{output.type.dtype}"
    step.setup += [
        f"{count} = 0",
        *(f"{name} = np.empty((0, 0), {dtype})" for name in (left, right)),
    ]
    fits = [f"{a} == {b}" for a, b in zip(target.shape, lengths, strict=True) if a != b]
    large = f"{lengths[0]} * {lengths[1]} >= {LEAST}"
    collect = []
    for axis, name in enumerate((left, right)):
        empty = f"{name} = np.empty(({BLOCK}, {lengths[axis]}), {dtype})"
        collect += [f"if {name}.shape[1] != {lengths[axis]}:", f"    {empty}"]
        collect += _collect(step, f"{name}[{count}, ", lengths[axis], axis, factors[axis])
    step.use("add_products", add_products)
    add = f"add_products({target.row}, {left}, {right}, {count})"
    collect += [f"{count} += 1", f"if {count} == {BLOCK}:", f"    {add}", f"    {count} = 0"]
    step.finish += [f"if {count} > 0:", f"    {add}"]
    before, step.body = step.body, []
    out = step.target(node, output, lengths)
    loop.levels[-1].append(f"{out}{subscript(loop.indices)} = {loop.results[0]}")
    at_once = [*step.body, *loop.lines()]
    collect.append(f"{out} = {target.row}")
    if step.written[output] != "True":
        collect.append(f"{step.written[output]} = True")
    step.body = [
        *before,
        f"{defer} = {' and '.join([target.single, large, *fits])}",
        f"if {defer}:",
        *indented(collect),
        "else:",
        *indented(at_once),
    ]


def _collect(
    step: "StepCode", row: str, length: str, axis: int, factors: Sequence[Variable]
) -> list[str]:
    """Return the lines that put a product of vectors along an axis into a row."""
    index = step.name("j")
    product = " * ".join(_factor(step, v, axis, index) for v in factors)
    return [f"for {index} in range({length}):", f"    {row}{index}] = {product}"]


def _factor(step: "StepCode", variable: Variable, axis: int, index: str) -> str:
    if is_zero_dim(variable):
        return step.scalar(variable)
    indices = ["0", "0"]
    indices[axis] = index
    return step.element(variable, indices)


def _roles(
    op: Any, inputs: Sequence[Variable], output: Variable
) -> tuple[int, list[int], list[int]] | None:
    """Return where the sum so far, its left and right factors are; None if it is no such sum."""
    terms = _sum_of_product(op.scalar_op, len(inputs))
    if terms is None or output.type.ndim != 2 or output.type.dtype not in {"float64", "float32"}:
        return None
    total, factors = terms
    if any(v.type.dtype != output.type.dtype for v in inputs):
        return None
    varies = [tuple(not b for b in getattr(v.type, "broadcastable", ())) for v in inputs]
    if varies[total] != (True, True) or any(varies[f] == (True, True) for f in factors):
        return None
    right = [f for f in factors if varies[f] == (False, True)]
    left = [f for f in factors if f not in right]
    if not right or not any(varies[f] == (True, False) for f in left):
        return None
    return total, left, right


def _sum_of_product(scalar_op: Any, n_inputs: int) -> tuple[int, list[int]] | None:
    """Return which input is added to the product of which others."""
    if not isinstance(scalar_op, Composite) or len(scalar_op.outputs) != 1:
        return None
    graph = scalar_op.fgraph
    place = {v: i for i, v in enumerate(graph.inputs)}
    add = graph.outputs[0].owner
    if add is None or not isinstance(add.op, Add) or len(add.inputs) != 2:
        return None
    for total, product in (add.inputs, add.inputs[::-1]):
        factors = _factors(product, place)
        if total in place and factors is not None and place[total] not in factors:
            return (place[total], factors) if len({*factors, place[total]}) == n_inputs else None
    return None


def _factors(variable: Variable, place: dict[Variable, int]) -> list[int] | None:
    if variable in place:
        return [place[variable]]
    if variable.owner is None or not isinstance(variable.owner.op, Mul):
        return None
    found: list[int] = []
    for v in variable.owner.inputs:
        factors = _factors(v, place)
        if factors is None:
            return None
        found += factors
    return found


@njit(
    fastmath={"reassoc", "contract", "nsz", "arcp"},
    error_model="numpy",
    no_cpython_wrapper=True,
)
def _add_small_products(total, left, right, count):
    for i in range(total.shape[0]):
        k = 0
        while k + 4 <= count:
            a, b, c, d = left[k, i], left[k + 1, i], left[k + 2, i], left[k + 3, i]
            for j in range(total.shape[1]):
                first = a * right[k, j] + b * right[k + 1, j]
                total[i, j] += first + (c * right[k + 2, j] + d * right[k + 3, j])
            k += 4
        while k < count:
            a = left[k, i]
            for j in range(total.shape[1]):
                total[i, j] += a * right[k, j]
            k += 1


@njit(no_cpython_wrapper=True)
def add_products(total, left, right, count):
    """Add the products of the first ``count`` pairs of rows to ``total``."""
    if total.size <= 65536:  # where the threads of BLAS do not pay
        _add_small_products(total, left, right, count)
    else:
        total += np.dot(left[:count].T, right[:count])
