"""Lengths stay known on JAX.

JAX compiles a function for the shapes of its arguments. They are plain numbers then, but not what
`jax.numpy` computes from them, so no shape can be made of that. PyTensor computes lengths in its
graphs like everything else: here, scalars are computed without JAX where all inputs are known.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.link.jax.dispatch.basic import jax_funcify
from pytensor.link.jax.dispatch.tensor_basic import ARANGE_CONCRETE_VALUE_ERROR
from pytensor.tensor.basic import Alloc, AllocEmpty, ARange, ScalarFromTensor
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.subtensor import IncSubtensor, indices_from_subtensor


LENGTH_UNKNOWN = (
    "the number of steps must be known when compiling to JAX, because an array of as many rows is "
    "needed, for `ys` or a gradient; fix n_steps or use another backend. "
    "`final` alone can have n_steps as an input"
)

Converted = Callable[..., Any]


def is_known(*values: Any) -> bool:
    """Whether scalars are plain numbers, rather than what JAX traces or has computed."""
    return not any(isinstance(value, jax.Array) for value in values)


def _extend(op_class: type[Op]) -> Callable[[Callable[[Op, Apply, Converted], Converted]], None]:
    """Register a conversion that starts from the one registered so far."""
    former = jax_funcify.dispatch(op_class)

    def register(extended: Callable[[Op, Apply, Converted], Converted]) -> None:
        @wraps(extended)
        def convert(op: Op, node: Apply, **kwargs: Any) -> Converted:
            return extended(op, node, former(op, node=node, **kwargs))

        jax_funcify.register(op_class, convert)

    return register


@_extend(Elemwise)
def _compute_known_scalars(op: Any, node: Apply, converted: Converted) -> Converted:
    if any(variable.type.ndim for variable in node.inputs):
        return converted
    dtypes = [np.dtype(output.type.dtype) for output in node.outputs]

    def compute(*inputs: Any) -> Any:
        if not is_known(*inputs):
            return converted(*inputs)
        values = op.scalar_op.impl(*inputs)
        if len(dtypes) == 1:
            return dtypes[0].type(values)
        return tuple(dtype.type(value) for dtype, value in zip(dtypes, values, strict=True))

    return compute


@_extend(ScalarFromTensor)
def _hand_on_known_scalars(op: Op, node: Apply, converted: Converted) -> Converted:
    return lambda value: value if is_known(value) else converted(value)


@_extend(IncSubtensor)
def _write_known_region(op: Any, node: Apply, converted: Converted) -> Converted:
    """Write to regions of known places in one go.

    JAX makes a scatter of every such write. It takes longer to compile and to run, and some
    gradients of gradients, which reverse the result, abort the process in XLA.
    """

    def write(x: Any, y: Any, *scalars: Any) -> Any:
        if not is_known(*scalars):
            return converted(x, y, *scalars)
        region = _region(x.shape, indices_from_subtensor(scalars, op.idx_list))
        if region is None:
            return converted(x, y, *scalars)
        starts, sizes, shape = region
        y = jnp.broadcast_to(jnp.asarray(y, x.dtype), shape).reshape(sizes)
        if not op.set_instead_of_inc:
            y += jax.lax.dynamic_slice(x, starts, sizes)
        return jax.lax.dynamic_update_slice(x, y, starts)

    return write


def _region(shape: Any, indices: Any) -> tuple[list[int], list[int], list[int]] | None:
    """Return where a region starts, its sizes, and the latter without the axes of integers.

    None stands for what is no region: with steps, or outside of the array.
    """
    starts, sizes, sliced = [], [], []
    for axis, length in enumerate(shape):
        index = indices[axis] if axis < len(indices) else slice(None)
        if isinstance(index, slice):
            start, stop, step = index.indices(length)
            sliced.append(max(stop - start, 0))
        else:
            if not -length <= index < length:
                return None
            start, step = int(index) % length, 1
            stop = start + 1
        if step != 1:
            return None
        starts.append(start)
        sizes.append(max(stop - start, 0))
    return starts, sizes, sliced


@_extend(Alloc)
def _fill_known_shape(op: Op, node: Apply, converted: Converted) -> Converted:
    def fill(value: Any, *shape: Any) -> Any:
        _check_known(shape)
        return converted(value, *shape)

    return fill


@_extend(AllocEmpty)
def _allocate_known_shape(op: Op, node: Apply, converted: Converted) -> Converted:
    def allocate(*shape: Any) -> Any:
        _check_known(shape)
        return converted(*shape)

    return allocate


def _check_known(shape: tuple[Any, ...]) -> None:
    if not is_known(*shape):
        raise NotImplementedError(LENGTH_UNKNOWN)


@jax_funcify.register(ARange)
def _convert_arange(op: ARange, node: Apply, **kwargs: Any) -> Converted:
    def arange(*bounds: Any) -> Any:
        if not is_known(*bounds):
            raise NotImplementedError(ARANGE_CONCRETE_VALUE_ERROR)
        return jnp.asarray(np.arange(*bounds, dtype=op.dtype))

    return arange
