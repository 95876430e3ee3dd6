"""Gradients that come in through the last state only: handed on from step to step without rows.

The gradient of a loop goes back over the steps and adds what it finds to a buffer of as many rows
as the carry has, in which the cost has left the gradient with respect to every state. If the cost
reads only the last state, all rows of that buffer but one are zeros; if only the gradient with
respect to the first state is wanted, all rows of the result but one are thrown away. Then a value
that every step overwrites does, and the memory of whole traces is saved.
"""

from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.mode import optdb
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import clone_replace
from pytensor.graph.rewriting.basic import dfs_rewriter, node_rewriter
from pytensor.scan.op import Scan
from pytensor.scan.utils import ScanArgs
from pytensor.tensor.basic import Alloc
from pytensor.tensor.subtensor import (
    IncSubtensor,
    Subtensor,
    as_index_literal,
    indices_from_subtensor,
)

from pytensor_loop._remade import remade


@node_rewriter([Scan])
def hand_on_gradient_of_last_row(
    fgraph: FunctionGraph, node: Apply
) -> dict[Variable, Variable] | None:
    """Hand the gradient with respect to a state on without a trace."""
    if node.op.truncate_gradient != -1:  # the rows that it does not reach are zeros
        return None
    found = [k for k in range(node.op.info.n_mit_mot) if _can_be_handed_on(fgraph, node, k)]
    if not found:
        return None
    parts = ScanArgs.from_node(node, clone=True)
    zeros = {row: zero for k in found for row, zero in _rows_to_come(parts, k)}
    for k in reversed(found):
        _without_rows(parts, k)
    outputs = remade(node.op, parts, clone_replace(parts.inner_outputs, zeros))
    kept = [v for k, v in enumerate(node.outputs) if k not in found]
    replaced = dict(zip(kept, outputs, strict=False))
    for k, row in zip(reversed(found), outputs[len(kept) :], strict=True):
        for client, _ in fgraph.clients[node.outputs[k]]:
            [shown] = client.outputs
            same = row if shown.type.ndim == row.type.ndim else row[None]
            replaced[shown] = shown.type.filter_variable(same)
    return replaced


def _can_be_handed_on(fgraph: FunctionGraph, node: Apply, k: int) -> bool:
    """Return whether a gradient comes in through the last state and leaves through the first."""
    reads, writes = node.op.info.mit_mot_in_slices[k], node.op.info.mit_mot_out_slices[k]
    clients = fgraph.clients[node.outputs[k]]
    return (
        0 in reads
        and set(reads) <= {0, 1}
        and writes == (1,)
        and _first_row(node.op.outer_mitmot(node.inputs)[k]) is not None
        and all(_index(client) in _LAST_ROW for client, _ in clients)
    )


def _rows_to_come(parts: ScanArgs, k: int) -> list[tuple[Variable, Variable]]:
    """Return what a step reads of the row that it writes, if it does, and the zeros that it is."""
    by_tap = dict(zip(parts.mit_mot_in_slices[k], parts.inner_in_mit_mot[k], strict=True))
    return [(by_tap[1], pt.zeros_like(by_tap[0]))] if 1 in by_tap else []


def _without_rows(parts: ScanArgs, k: int) -> None:
    """Make a gradient that is kept in rows a state that is not."""
    state = parts.inner_in_mit_mot[k][parts.mit_mot_in_slices[k].index(0)]
    row = _first_row(parts.outer_in_mit_mot[k])
    parts.outer_in_shared.append(state.type.filter_variable(row))
    parts.inner_in_shared.append(state)
    parts.inner_out_shared += parts.inner_out_mit_mot[k]
    for name in _GROUPS:
        group = list(getattr(parts, name))
        del group[k]
        setattr(parts, name, group)


_GROUPS = (
    "outer_in_mit_mot",
    "inner_in_mit_mot",
    "inner_out_mit_mot",
    "mit_mot_in_slices",
    "mit_mot_out_slices",
)
_LAST, _REVERSED = (-1,), (slice(None, None, -1),)
_LAST_ROW = (_LAST, (slice(-1, None, None),), (slice(None, -2, -1),))


def _first_row(rows: Variable) -> Any:
    """Return the first row of an array whose other rows are zeros; None if it is no such array."""
    if _is_zero(rows):
        return _last_row(rows)
    reversed_ = rows.owner is not None and isinstance(rows.owner.op, Subtensor)
    return (
        _last_row(rows.owner.inputs[0]) if reversed_ and _index(rows.owner) == _REVERSED else None
    )


def _last_row(rows: Variable) -> Any:
    """Return the last row of an array whose other rows are zeros; None if it is no such array."""
    if _is_zero(rows):
        return pt.alloc(np.zeros((), rows.type.dtype), *rows.owner.inputs[2:])
    node = rows.owner
    if node is None or not isinstance(node.op, IncSubtensor):
        return None
    if node.op.set_instead_of_inc and not _is_zero(node.inputs[0]):
        return None
    before, added = _last_row(node.inputs[0]), _added_to_last_row(node)
    return None if before is None or added is None else before + added


def _is_zero(rows: Variable) -> bool:
    """Return whether an array was allocated as zeros."""
    if rows.owner is None or not isinstance(rows.owner.op, Alloc):
        return False
    value = rows.owner.inputs[0]
    return isinstance(value, Constant) and not value.data.any()


def _added_to_last_row(node: Apply) -> Any:
    """Return what an update adds to the last row; None if it may add to others."""
    rows, added = node.inputs[:2]
    index = _index(node)
    if index == _LAST:
        return added
    if index is None or not isinstance(index[0], slice):
        return None
    from_row_on = index[0] == slice(index[0].start, None, None) and (index[0].start or 0) >= 0
    broadcast = added.type.ndim < rows.type.ndim or added.type.broadcastable[0]
    return _last_row(added) if from_row_on and not broadcast else None


def _index(node: Any) -> tuple[Any, ...] | None:
    """Return the only index of a node that reads or writes rows; None if there are others."""
    if not isinstance(getattr(node, "op", None), Subtensor | IncSubtensor):
        return None
    n_arrays = 1 if isinstance(node.op, Subtensor) else 2
    indices = indices_from_subtensor(node.inputs[n_arrays:], node.op.idx_list)
    literals = tuple(as_index_literal(index) for index in indices)
    variable = any(isinstance(v, Variable) for i in literals for v in _parts(i))
    return literals if len(literals) == 1 and not variable else None


def _parts(index: Any) -> tuple[Any, ...]:
    return (index.start, index.stop, index.step) if isinstance(index, slice) else (index,)


optdb.register(
    "hand_on_gradient_of_last_row",
    dfs_rewriter(hand_on_gradient_of_last_row, ignore_newtrees=True),
    "fast_run",
    # Behind the rewrites that cut traces, in front of the one that writes constants into the step.
    position=1.613,
)
