"""Gradients of gradients on C and in Python, where a step hands on what it was given.

The gradient of a loop writes over what it reads. Where a step also returns what it read as it is,
the Op loses it: so it does in the gradient of a gradient of a loop that stacks the old carry. This
rewrite lets the step return a copy.
"""

from pytensor.compile.mode import optdb
from pytensor.compile.ops import deep_copy_op
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import dfs_rewriter, node_rewriter
from pytensor.link.jax.linker import JAXLinker
from pytensor.link.numba.linker import NumbaLinker
from pytensor.scan.op import Scan
from pytensor.scan.utils import ScanArgs

from pytensor_loop._modes import compiles_with
from pytensor_loop._remade import remade


@node_rewriter([Scan])
def copy_what_is_passed_on(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """Copy what a step of a gradient returns of what it was given."""
    op = node.op
    overwritten = op.inner_mitmot(op.fgraph.inputs)
    passed_on = [output in overwritten for output in op.fgraph.outputs]
    if not any(passed_on) or compiles_with(fgraph, JAXLinker, NumbaLinker):
        return None
    parts = ScanArgs.from_node(node, clone=True)
    overwritten = op.inner_mitmot(parts.inner_inputs)
    updates = [deep_copy_op(v) if v in overwritten else v for v in parts.inner_outputs]
    return remade(op, parts, updates)


optdb.register(
    "copy_what_is_passed_on",
    dfs_rewriter(copy_what_is_passed_on, ignore_newtrees=True),
    # Every mode includes it, behind all rewrites that change what a step computes.
    "minimum_compile",
    position=3.6,
)
