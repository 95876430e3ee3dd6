"""Sums of outer products over the steps: the gradient of a matrix that the step multiplies with.

Adding an outer product to a large matrix in every step reads and writes the whole matrix each time.
Where nobody sees the partial sums, the factors of some steps are collected and added as one matrix
product.
"""

# The functions of this module are typed by Numba, argument by argument.
# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code="call-overload"

import numpy as np
from numba import njit
from pytensor.scalar.basic import Add, Composite, Mul


BLOCK = 64  # steps whose factors are collected
LEAST = 1024  # elements of the matrix from which collecting pays


def find_outer_sum(op, inputs, output):
    """Return where the sum so far, its left and its right factors are; None if it is no such sum.

    Parameters
    ----------
    op
        The Elemwise.
    inputs, output
        Its inputs, and its only output.
    """
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


def _sum_of_product(scalar_op, n_inputs):
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


def _factors(variable, place):
    if variable in place:
        return [place[variable]]
    if variable.owner is None or not isinstance(variable.owner.op, Mul):
        return None
    found = [_factors(v, place) for v in variable.owner.inputs]
    return None if None in found else [f for factors in found for f in factors]


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
