"""Gradients of `final` through a stop condition, on JAX.

The gradient of a loop is another loop, over as many rows as the first one ran steps. JAX has no
arrays of such a length. This rewrite lets both run for all of `n_steps`: steps after the stop
change nothing, and what is read or written from the end of the rows is found by counting the steps
that were run. It does so only where nothing else depends on how many rows there are.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.mode import optdb
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import graph_rewriter
from pytensor.scalar.basic import Second
from pytensor.scan.op import Scan
from pytensor.tensor.basic import (
    Alloc,
    Join,
    ScalarFromTensor,
    get_underlying_scalar_constant_value,
)
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.exceptions import NotScalarConstantError
from pytensor.tensor.shape import Shape
from pytensor.tensor.subtensor import IncSubtensor, Subtensor, get_idx_list
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorVariable

from pytensor_loop.backends._jax_masked import masked_gradient, masked_loop


class _OtherUse(Exception):  # noqa: N818 - caught here: the graph is left as it is
    """The rows of a loop, or their number, are used in a way that this rewrite does not know."""


@dataclasses.dataclass
class _Uses:
    """What depends on the rows of one loop."""

    gradients: list[Apply] = dataclasses.field(default_factory=list)
    """The loops that go back over the rows."""
    from_the_end: dict[Apply, int] = dataclasses.field(default_factory=dict)
    """Nodes that read or write rows counted from the end, and how many rows precede step one."""


@graph_rewriter
def run_all_steps_for_gradients(fgraph: FunctionGraph) -> None:
    """Let loops with a stop condition run all of `n_steps` where a gradient goes back over them."""
    for node in fgraph.toposort():
        if isinstance(node.op, Scan) and node.op.info.as_while and _can_be_masked(node.op):
            try:
                uses = _uses_of(fgraph, node)
            except _OtherUse:
                continue
            if uses.gradients:
                _run_all_steps(fgraph, node, uses)


def _can_be_masked(op: Scan) -> bool:
    untraced = op.inner_untraced_sit_sot(op.fgraph.inputs)
    return (
        op.truncate_gradient == -1
        and not op.info.n_mit_mot
        and all(isinstance(variable.type, TensorType) for variable in untraced)
    )


def _uses_of(fgraph: FunctionGraph, loop: Apply) -> _Uses:
    """Return what depends on the rows of a loop.

    Raises
    ------
    _OtherUse
        If anything does that is no part of a gradient with respect to the last rows.
    """
    uses = _Uses()
    info = loop.op.info
    n_traces = info.n_mit_sot + info.n_sit_sot + info.n_nit_sot
    before = [-min(taps) for taps in (*info.mit_sot_in_slices, *info.sit_sot_in_slices)]
    before += [0] * info.n_nit_sot
    rows = list(zip(loop.outputs[:n_traces], before, strict=True))
    seen = set()
    while rows:
        variable, n_before = rows.pop()
        if variable in seen:
            continue
        seen.add(variable)
        for client, position in fgraph.clients[variable]:
            rows += _uses_of_rows(fgraph, client, position, n_before, uses)
    return uses


def _uses_of_rows(
    fgraph: FunctionGraph, client: Apply, position: int, n_before: int, uses: _Uses
) -> Iterator[tuple[Variable, int]]:
    """Note what a node makes of rows; yield a result that is rows again, and how many precede."""
    op = client.op
    index = _first_index(client) if isinstance(op, Subtensor | IncSubtensor) else None
    if isinstance(op, Shape):
        _check_length(fgraph, client.outputs[0])
    elif isinstance(op, Elemwise) and _is_zeros_like(client):
        yield client.outputs[0], n_before
    elif index is None or position > 0:
        raise _OtherUse
    elif _counts_from_end(index):
        uses.from_the_end[client] = n_before
        if isinstance(op, IncSubtensor):
            yield client.outputs[0], n_before
    elif not isinstance(op, Subtensor) or not isinstance(index, slice):
        raise _OtherUse
    elif index.step == -1:
        uses.gradients += _gradients_over(fgraph, client.outputs[0])
    elif index.step is None and (index.start or 0) >= 0 >= (index.stop or 0):
        yield client.outputs[0], n_before - (index.start or 0) + (index.stop or 0)
    else:
        raise _OtherUse


def _check_length(fgraph: FunctionGraph, shape: Variable) -> None:
    """Make sure that the number of rows is asked for by gradients only."""
    lengths = []
    for client, _ in fgraph.clients[shape]:
        if not isinstance(client.op, Subtensor) or not isinstance(_first_index(client), int):
            raise _OtherUse
        if _first_index(client) == 0:
            lengths.append(client.outputs[0])
    while lengths:
        length = lengths.pop()
        for client, position in fgraph.clients[length]:
            if isinstance(client.op, Elemwise | ScalarFromTensor):
                lengths.append(client.outputs[0])
            elif isinstance(client.op, Subtensor) and position > 0:
                _gradients_over(fgraph, client.outputs[0])
            elif isinstance(client.op, Alloc) and _is_zero(client.inputs[0]):
                _check_padding(fgraph, client.outputs[0])
            elif not _is_gradient(client) or client.inputs[position].type.ndim:
                raise _OtherUse


def _check_padding(fgraph: FunctionGraph, zeros: Variable) -> None:
    for client, _ in fgraph.clients[zeros]:
        if not isinstance(client.op, Join) and not _is_gradient(client):
            raise _OtherUse


def _gradients_over(fgraph: FunctionGraph, rows: Variable) -> list[Apply]:
    """Return the loops that take rows, cut in any way, and make sure that nothing else does."""
    gradients = []
    for client, position in fgraph.clients[rows]:
        if isinstance(client.op, Subtensor) and position == 0:
            gradients += _gradients_over(fgraph, client.outputs[0])
        elif _is_gradient(client):
            _check_not_differentiated(fgraph, client)
            gradients.append(client)
        else:
            raise _OtherUse
    return gradients


def _is_gradient(node: Apply) -> bool:
    """Whether a node is a loop that only PyTensor's gradient builds, and of a kind that we mask."""
    if not isinstance(node.op, Scan):
        return False
    info = node.op.info
    overwritten = zip(info.mit_mot_in_slices, info.mit_mot_out_slices, strict=True)
    return (
        info.n_mit_mot > 0
        and not (info.as_while or info.n_mit_sot or info.n_untraced_sit_sot)
        and all(set(written) <= set(read) for read, written in overwritten)
    )


def _check_not_differentiated(fgraph: FunctionGraph, gradient: Apply) -> None:
    for output in gradient.outputs:
        for client, _ in fgraph.clients[output]:
            if isinstance(client.op, Scan):
                raise _OtherUse
            if isinstance(client.op, Shape) and any(
                not isinstance(reader.op, Subtensor) or _first_index(reader) == 0
                for reader, _ in fgraph.clients[client.outputs[0]]
            ):
                raise _OtherUse


def _first_index(node: Apply) -> Any:
    """Return the index along the first axis as numbers, or None if it is not one of numbers."""
    index = get_idx_list(node.inputs[isinstance(node.op, IncSubtensor) :], node.op.idx_list)[0]
    if not isinstance(index, slice):
        return int(index.data) if isinstance(index, Constant) else None
    bounds = [index.start, index.stop, index.step]
    if any(isinstance(b, Variable) and not isinstance(b, Constant) for b in bounds):
        return None
    return slice(*(int(b.data) if isinstance(b, Constant) else b for b in bounds))


def _counts_from_end(index: Any) -> bool:
    if isinstance(index, slice):
        return (index.start or 0) < 0 and index.stop is None and index.step in {None, 1}
    return index < 0


def _is_zeros_like(node: Apply) -> bool:
    return isinstance(node.op.scalar_op, Second) and _is_zero(node.inputs[1])


def _is_zero(variable: Variable) -> bool:
    try:
        return get_underlying_scalar_constant_value(variable) == 0
    except NotScalarConstantError:
        return False


def _run_all_steps(fgraph: FunctionGraph, loop: Apply, uses: _Uses) -> None:
    masked, running = masked_loop(loop)
    _replace(fgraph, loop.outputs, masked)
    # Their inputs are by now the rows of the masked loop: the graph is changed in place.
    n_run = running.sum(dtype="int64")
    order = {node: place for place, node in enumerate(fgraph.toposort())}
    for node in sorted(uses.from_the_end, key=order.__getitem__):
        _replace(fgraph, node.outputs, [_from_the_end(node, n_run + uses.from_the_end[node])])
    for node in dict.fromkeys(uses.gradients):
        _replace(fgraph, node.outputs, masked_gradient(node, running))


def _replace(fgraph: FunctionGraph, olds: list[Variable], news: list[Variable]) -> None:
    pairs = [(old, new) for old, new in zip(olds, news, strict=True) if old in fgraph.variables]
    fgraph.replace_all(pairs, reason="run_all_steps_for_gradients", import_missing=True)


def _from_the_end(node: Apply, n_rows: TensorVariable) -> Variable:
    """Return what a node reads or writes, where only the first `n_rows` rows count."""
    index = _first_index(node)
    place = n_rows + (np.arange(index.start, 0) if isinstance(index, slice) else index)
    rest = get_idx_list(node.inputs[isinstance(node.op, IncSubtensor) :], node.op.idx_list)[1:]
    part = pt.as_tensor(node.inputs[0])[(place, *rest)]
    if isinstance(node.op, Subtensor):
        return part
    write = pt.set_subtensor if node.op.set_instead_of_inc else pt.inc_subtensor
    return write(part, node.inputs[1])


# Before any rewrite changes the form in which PyTensor builds gradients.
optdb.register(
    "pytensor_loop_run_all_steps_for_gradients", run_all_steps_for_gradients, "jax", position=0.01
)
