"""How the generated loops reach memory: rows as borrowed views, and a few helpers.

A row of a buffer is read and written through an array structure that owns nothing: no allocation
and no reference counting in the loop, and a contiguous layout, which LLVM can vectorize. Whoever
borrows a row must keep its owner alive; the generated code does, as every owner lives until the end
of the loop.
"""

# The functions of this module are typed by Numba, argument by argument.
# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code="call-overload"

from math import prod

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.cpython.unsafe.tuple import tuple_setitem
from numba.extending import intrinsic, overload, register_jitable
from numba.np.arrayobj import get_itemsize, make_array, populate_array


def _dense_strides(context, builder, shape, itemsize, layout):
    """Return the strides of a contiguous array of this shape."""
    strides = []
    step = context.get_constant(types.intp, itemsize)
    for length in shape if layout == "F" else reversed(shape):
        strides.append(step)
        step = builder.mul(step, length, flags=["nsw"])
    return strides if layout == "F" else list(reversed(strides))


def _borrow(context, builder, row_type, data, shape):
    row = make_array(row_type)(context, builder)
    itemsize = get_itemsize(context, row_type)
    populate_array(
        row,
        data=builder.bitcast(data, row.data.type),
        shape=cgutils.pack_array(builder, shape, ty=ir.IntType(64)),
        strides=cgutils.pack_array(
            builder,
            _dense_strides(context, builder, shape, itemsize, row_type.layout),
            ty=ir.IntType(64),
        ),
        itemsize=context.get_constant(types.intp, itemsize),
        meminfo=None,
    )
    return row._getvalue()


def _row_pointer(builder, array, index):
    stride = cgutils.unpack_tuple(builder, array.strides)[0]
    return cgutils.pointer_add(builder, array.data, builder.mul(stride, index, flags=["nsw"]))


_TOO_SHORT = "Scan: a sequence or an initial state has fewer rows than the loop reads"

_NOT_A_ROW = "Scan: a step returned an array of another shape than its rows have"
_NOT_ITS_TYPE = "Scan: the shape of an array is not the static shape of its type"


@intrinsic
def borrow_row(typingctx, array, index, shape):
    """Borrow ``array[index]``, whose elements must be contiguous, as a C-contiguous array.

    The lengths are an argument so that LLVM sees those that are numbers.
    """
    row_type = array.copy(ndim=array.ndim - 1, layout="C")

    def codegen(context, builder, signature, args):
        source = make_array(array)(context, builder, args[0])
        data = _row_pointer(builder, source, args[1])
        return _borrow(context, builder, row_type, data, cgutils.unpack_tuple(builder, args[2]))

    return row_type(array, types.intp, shape), codegen


@intrinsic
def borrow(typingctx, array, shape):
    """Borrow a contiguous array whole; one of unknown layout must be C-contiguous."""
    row_type = array.copy(layout="F" if array.layout == "F" else "C")

    def codegen(context, builder, signature, args):
        source = make_array(array)(context, builder, args[0])
        return _borrow(
            context, builder, row_type, source.data, cgutils.unpack_tuple(builder, args[1])
        )

    return row_type(array, shape), codegen


@intrinsic(prefer_literal=True)
def stack_array(typingctx, shape, dtype):
    """Return an array of a few elements on the stack.

    LLVM keeps it in registers if all its subscripts are numbers once the loops are unrolled.
    """
    lengths = [length.literal_value for length in shape.types]
    array = types.Array(dtype.dtype, len(lengths), "C")

    def codegen(context, builder, signature, args):
        element = context.get_data_type(array.dtype)
        memory = cgutils.alloca_once(builder, ir.ArrayType(element, prod(lengths)))
        shape = [context.get_constant(types.intp, length) for length in lengths]
        return _borrow(context, builder, array, memory, shape)

    return array(shape, dtype), codegen


@intrinsic
def peek(typingctx, array, index):
    """Read ``array[index]`` of a vector: no bounds, no wrap-around."""

    def codegen(context, builder, signature, args):
        source = make_array(array)(context, builder, args[0])
        pointer = builder.bitcast(_row_pointer(builder, source, args[1]), source.data.type)
        return context.unpack_value(builder, array.dtype, pointer)

    return array.dtype(array, types.intp), codegen


@intrinsic
def poke(typingctx, array, index, value):
    """Write ``array[index] = value`` of a vector: no bounds, no wrap-around."""

    def codegen(context, builder, signature, args):
        target = make_array(array)(context, builder, args[0])
        pointer = builder.bitcast(_row_pointer(builder, target, args[1]), target.data.type)
        context.pack_value(builder, array.dtype, args[2], pointer)
        return context.get_dummy_value()

    return types.none(array, types.intp, array.dtype), codegen


@register_jitable
def box(value, dtype):
    """Return the number as an array without dimensions."""
    boxed = np.empty((), dtype)
    boxed[()] = value
    return boxed


@njit(no_cpython_wrapper=True)
def with_dense_rows(array):
    """Return the array, or a copy of it if its rows are not contiguous."""
    step = array.itemsize
    dense = True
    for axis in range(array.ndim - 1, 0, -1):
        dense = dense and (array.shape[axis] == 1 or array.strides[axis] == step)
        step *= array.shape[axis]
    if dense or array.size == 0:
        return array
    return np.ascontiguousarray(array)


def contiguous(array):
    """Return the array, or a copy of it if it is not contiguous."""
    return np.ascontiguousarray(array)


@overload(contiguous)
def _contiguous(array):
    if array.layout == "C":
        return lambda array: array

    def keep_or_copy(array):
        if array.flags.c_contiguous:
            return array
        return np.copy(array)

    return keep_or_copy


@njit(no_cpython_wrapper=True)
def check_rows(rows, least, n_steps):
    """Raise unless a buffer or a sequence has the rows that the steps will touch."""
    if n_steps > 0 and rows < least:
        raise ValueError(_TOO_SHORT)


@njit(no_cpython_wrapper=True)
def check_length(length, expected):
    """Raise unless an array has the length that its type says: nothing below looks again."""
    if length != expected:
        raise ValueError(_NOT_ITS_TYPE)


@njit(no_cpython_wrapper=True)
def first_slot(offset, rows):
    """Return where the row at ``offset`` lies in a circular buffer."""
    return offset % rows if rows > 0 else 0


@njit(no_cpython_wrapper=True)
def _rotated(buffer, shift):
    rows = buffer.shape[0]
    rotated = np.empty_like(buffer)
    for index in np.ndindex(buffer.shape):
        row = (index[0] + shift) % rows
        rotated[index] = buffer[tuple_setitem(index, 0, row)]
    return rotated


@njit(no_cpython_wrapper=True)
def finish_rows(buffer, used, truncate):
    """Return the buffer with its last row last, and with nothing after the rows that were used.

    Parameters
    ----------
    buffer
        Rows of the loop; circular when there are fewer than ``used``.
    used
        Number of initial rows and of steps together.
    truncate
        Whether unused rows are cut off (loops with a stop condition) or zeroed.
    """
    rows = buffer.shape[0]
    if 1 < rows < used:
        shift = used % rows
        return _rotated(buffer, shift) if shift > 0 else buffer
    if rows > used:
        if truncate:
            return buffer[:used]
        buffer[used:] = 0
    return buffer


@register_jitable
def next_state(state, new):
    """Return ``new``, made contiguous.

    The old state is an argument as the step borrows it: Numba frees an array after its last use.
    """
    return contiguous(new)


@register_jitable
def fresh(array):
    """Return a C-contiguous copy."""
    copied = np.empty(array.shape, array.dtype)
    put(copied, array)
    return copied


@njit(no_cpython_wrapper=True)
def replace_state(state, new):
    """Return an owned array with the values of ``new``: ``state`` itself if it has the shape."""
    if state.shape == new.shape:
        put(state, new)
        return state
    return new.copy()


@register_jitable
def put(target, values):
    """Copy an array into another; lengths of one broadcast.

    Not ``target[...] = values``: Numba would compile with it how a string shows a shape.
    """
    if target.shape == values.shape:
        for index in np.ndindex(target.shape):
            target[index] = values[index]
        return
    for axis in range(target.ndim):
        if values.shape[axis] != 1 and values.shape[axis] != target.shape[axis]:
            raise ValueError(_NOT_A_ROW)
    for index in np.ndindex(target.shape):
        place = index
        for axis in range(target.ndim):
            if values.shape[axis] == 1:
                place = tuple_setitem(place, axis, 0)
        target[index] = values[place]
