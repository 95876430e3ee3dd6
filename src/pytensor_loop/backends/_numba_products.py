"""Products of vectors and matrices into given memory: loops for small ones, else BLAS.

A call of BLAS costs as much as a product of some hundred elements; in a loop of small steps it is
most of the time. The loops take several rows (or columns) at once, so that each element of the
vector is loaded once for all of them.
"""

# The functions of this module are typed by Numba, argument by argument.
# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code="call-overload"

import numpy as np
from numba import njit
from numba.extending import overload


# Elements of a matrix, or multiplications of a product, that loops do as fast as BLAS.
SMALL = 16384
_MISFIT = "Incompatible array sizes for np.dot(a, b)"
_jit = njit(
    fastmath={"reassoc", "contract", "nsz", "arcp"},
    error_model="numpy",
    no_cpython_wrapper=True,
    forceinline=True,
)


def is_supported(node):
    """Return whether these functions can do a Dot: one floating-point type throughout."""
    dtypes = {v.type.dtype for v in [*node.inputs, *node.outputs]}
    return len(dtypes) == 1 and dtypes <= {"float32", "float64"}


@_jit
def inner(x, y):
    """Return the inner product of two vectors."""
    if x.shape[0] != y.shape[0]:
        raise ValueError(_MISFIT)
    total = x.dtype.type(0)
    for i in range(x.shape[0]):
        total += x[i] * y[i]
    return total


@_jit
def _rows_times(a, x, out):
    """Write ``a @ x`` for a matrix that is contiguous along its rows."""
    rows, columns = a.shape
    i = 0
    while i + 2 <= rows:
        first = second = x.dtype.type(0)
        for j in range(columns):
            first += a[i, j] * x[j]
            second += a[i + 1, j] * x[j]
        out[i] = first
        out[i + 1] = second
        i += 2
    if i < rows:
        first = x.dtype.type(0)
        for j in range(columns):
            first += a[i, j] * x[j]
        out[i] = first


@_jit
def _columns_times(a, x, out):
    """Write ``a @ x`` for a matrix that is contiguous along its columns."""
    rows, columns = a.shape
    for i in range(rows):
        out[i] = 0
    j = 0
    while j + 4 <= columns:
        for i in range(rows):
            first = a[i, j] * x[j] + a[i, j + 1] * x[j + 1]
            second = a[i, j + 2] * x[j + 2] + a[i, j + 3] * x[j + 3]
            out[i] += first + second
        j += 4
    while j < columns:
        for i in range(rows):
            out[i] += a[i, j] * x[j]
        j += 1


def _small_matvec(a, x, out):
    raise NotImplementedError


@overload(_small_matvec, jit_options={"forceinline": True})
def _choose_matvec(a, x, out):
    if a.layout == "F":
        return lambda a, x, out: _columns_times(a, x, out)  # noqa: PLW0108  (Numba wants a function)
    return lambda a, x, out: _rows_times(a, x, out)  # noqa: PLW0108


def _large_matvec(a, x, out):
    raise NotImplementedError


@overload(_large_matvec)
def _choose_large(a, x, out):
    if a.layout == "A" or x.layout == "A":
        return lambda a, x, out: np.dot(np.ascontiguousarray(a), np.ascontiguousarray(x), out)
    return lambda a, x, out: np.dot(a, x, out)  # noqa: PLW0108


@_jit
def matvec(a, x, out):
    """Write ``a @ x`` into ``out``."""
    if a.shape[1] != x.shape[0]:
        raise ValueError(_MISFIT)
    if a.size <= SMALL:
        _small_matvec(a, x, out)
    else:
        _large_matvec(a, x, out)


@_jit
def vecmat(x, a, out):
    """Write ``x @ a`` into ``out``."""
    matvec(a.T, x, out)


@_jit
def _small_matmul(a, b, out):
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            total = out.dtype.type(0)
            for k in range(a.shape[1]):
                total += a[i, k] * b[k, j]
            out[i, j] = total


@_jit
def matmul(a, b, out):
    """Write ``a @ b`` into ``out``."""
    if a.shape[1] != b.shape[0]:
        raise ValueError(_MISFIT)
    if a.size * b.shape[1] <= SMALL:
        _small_matmul(a, b, out)
    else:
        _large_matvec(a, b, out)
