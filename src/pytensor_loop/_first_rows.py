"""A loop of which only the last state is read keeps only the rows it starts from.

PyTensor cuts the buffer of such a loop to its first rows, but where ``init`` was broadcast to its
shape it first allocates the whole of it.
"""

from typing import Any

import pytensor.tensor as pt
from pytensor.compile.mode import optdb
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.rewriting.basic import dfs_rewriter, node_rewriter
from pytensor.tensor.basic import AllocEmpty
from pytensor.tensor.subtensor import IncSubtensor, Subtensor


@node_rewriter([Subtensor])
def fill_first_rows_only(fgraph: Any, node: Apply) -> list[Variable] | None:
    """Make ``empty(n, *row)[:k].set(v)[:k]`` the ``k`` rows that it is.

    On JAX `n` may not even be known.
    """
    n_rows = _first_rows(node)
    written = node.inputs[0].owner
    if n_rows is None or written is None or not isinstance(written.op, IncSubtensor):
        return None
    buffer = written.inputs[0].owner
    if not written.op.set_instead_of_inc or n_rows != _first_rows(written):
        return None
    if buffer is None or not isinstance(buffer.op, AllocEmpty):
        return None
    rows: Any = pt.alloc(written.inputs[1], n_rows, *buffer.inputs[1:])
    return [rows] if node.outputs[0].type.is_super(rows.type) else None


def _first_rows(node: Apply) -> int | None:
    """Return `k` of a node that reads or writes ``[:k]``, if it is a number."""
    if len(node.op.idx_list) != 1 or not isinstance(node.inputs[-1], Constant):
        return None
    index = node.op.idx_list[0]
    if not isinstance(index, slice) or index.stop is None:
        return None
    first = index.start is None and index.step is None
    n_rows = int(node.inputs[-1].data)
    return n_rows if first and n_rows > 0 else None


# Behind the rewrite that cuts the buffers, before the one that looks for those of one row.
optdb.register(
    "pytensor_loop_fill_first_rows_only",
    dfs_rewriter(fill_first_rows_only, ignore_newtrees=True),
    "fast_run",
    position=1.615,
)
