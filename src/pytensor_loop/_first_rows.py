"""A loop of which only the last state is read keeps only the rows it starts from.

PyTensor cuts the buffer of such a loop to its first rows, but where ``init`` was broadcast to its
shape it first allocates the whole of it; and where it was made of zeros, as the sums of gradients
are, it does not see how many rows are left.
"""

from typing import Any

import pytensor.tensor as pt
from pytensor.compile.mode import optdb
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import dfs_rewriter, node_rewriter
from pytensor.scan.op import Scan
from pytensor.tensor.basic import Alloc, AllocEmpty
from pytensor.tensor.subtensor import IncSubtensor, Subtensor


@node_rewriter([Subtensor])
def fill_first_rows_only(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
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


@node_rewriter([Subtensor])
def allocate_first_rows_only(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Make ``alloc(v, k + n_steps, *row)[:k]`` of a loop the ``k`` rows that it is."""
    n_rows = _first_rows(node)
    whole = node.inputs[0].owner
    if n_rows is None or whole is None or not isinstance(whole.op, Alloc):
        return None
    value, length, *row = whole.inputs
    loops = [client for client, _ in fgraph.clients[node.outputs[0]]]
    repeated = value.type.ndim < len(whole.inputs) - 1 or value.type.broadcastable[0]
    if not repeated or not all(_is_longer(length, n_rows, loop) for loop in loops):
        return None
    rows: Any = pt.alloc(value, n_rows, *row)
    return [rows] if node.outputs[0].type.is_super(rows.type) else None


def _is_longer(length: Variable, n_rows: int, loop: Apply) -> bool:
    """Return whether a length is at least `n_rows` more than the number of steps of a loop."""
    sum_ = length.owner
    if not isinstance(loop.op, Scan) or sum_ is None or len(sum_.inputs) != 2:
        return False
    more = [v for v in sum_.inputs if isinstance(v, Constant) and v.data >= n_rows]
    return sum_.op == pt.add and bool(more) and loop.inputs[0] in sum_.inputs


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
for _rewrite in (fill_first_rows_only, allocate_first_rows_only):
    optdb.register(
        f"pytensor_loop_{_rewrite.__name__}",
        dfs_rewriter(_rewrite, ignore_newtrees=True),
        "fast_run",
        position=1.615,
    )
