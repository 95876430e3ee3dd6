"""Sequences that are cheap to compute: each step computes its row, and no trace is kept of them.

PyTensor takes what a step computes from its sequences alone out of the loop. With a loop that is
compiled as a whole this saves nothing where the computation is a few instructions, and costs a
pass over a whole trace and the memory for it; in gradients those traces are most of the memory.
"""

from pytensor.compile.mode import optdb
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import clone_replace
from pytensor.graph.rewriting.basic import dfs_rewriter, node_rewriter
from pytensor.scan.op import Scan
from pytensor.scan.utils import ScanArgs
from pytensor.tensor.elemwise import Elemwise

from pytensor_loop._remade import remade


@node_rewriter([Scan])
def compute_rows_in_the_step(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Move elementwise arithmetic on whole sequences into the step."""
    # Not at the top: Numba takes seconds to import, and this module is imported with the package.
    from pytensor_loop.backends.numba import is_enabled

    sequences = node.op.outer_seqs(node.inputs) if is_enabled() else []
    makers = dict.fromkeys(v.owner for v in sequences if _is_cheap(fgraph, v.owner, node))
    if not makers:
        return None
    parts = ScanArgs.from_node(node, clone=True)
    placeholders = dict(zip(sequences, parts.inner_in_seqs, strict=True))
    computed: dict[Variable, Variable] = {}
    for maker in makers:
        rows = maker.op(*(_input_row(parts, v) for v in maker.inputs), return_list=True)
        computed |= {placeholders[v]: row for v, row in zip(maker.outputs, rows, strict=True)}
    for k in reversed(range(len(sequences))):
        if sequences[k].owner in makers:
            del parts.outer_in_seqs[k], parts.inner_in_seqs[k]
    return remade(node.op, parts, clone_replace(parts.inner_outputs, computed))


def _is_cheap(fgraph: FunctionGraph, maker: Apply | None, loop: Apply) -> bool:
    """Return whether a node makes sequences for one loop only, with a few instructions a row."""
    from pytensor_loop.backends._numba_scalar import is_arithmetic

    if maker is None or not isinstance(maker.op, Elemwise):
        return False
    sequences = loop.op.outer_seqs(loop.inputs)
    private = all(len(fgraph.clients[v]) == 1 and v in sequences for v in maker.outputs)
    rows = maker.outputs[0].type.shape[0] != 1
    return private and rows and is_arithmetic(maker.op.scalar_op)


def _input_row(parts: ScanArgs, variable: Variable) -> Variable:
    """Return the placeholder of a row: of a sequence, or of what is the same in every step."""
    if variable.type.shape[0] != 1:
        return _bound(parts.outer_in_seqs, parts.inner_in_seqs, variable, variable[0])
    same = variable[0]
    return _bound(parts.outer_in_non_seqs, parts.inner_in_non_seqs, same, same)


def _bound(
    outer: list[Variable], inner: list[Variable], variable: Variable, like: Variable
) -> Variable:
    if variable not in outer:
        outer.append(variable)
        inner.append(like.type())
    return inner[outer.index(variable)]


optdb.register(
    "pytensor_loop_compute_rows_in_the_step",
    dfs_rewriter(compute_rows_in_the_step, ignore_newtrees=True),
    "numba",
    # Behind the fusion of elementwise Ops, in front of the rewrites that reuse memory.
    position=49.9,
)
