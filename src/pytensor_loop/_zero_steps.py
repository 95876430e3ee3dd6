"""Rows of no steps have the shape of a row: ``(0, *row)``.

The `Scan` Op learns the shape of what it stacks from its first step, and makes up zeros when there
is none. This rewrite gives the outputs their shape back, where it can be told without a step. It
comes after the rewrites that look for the outputs of loops, which would not see through it, and it
covers every loop in the graph: the gradient of a loop stacks too.
"""

from collections.abc import Iterator
from typing import Any

import pytensor.tensor as pt
from pytensor.compile.mode import optdb
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import graph_rewriter
from pytensor.link.jax.linker import JAXLinker
from pytensor.raise_op import CheckAndRaise
from pytensor.scan.op import Scan
from pytensor.tensor.shape import Shape, Shape_i
from pytensor.tensor.subtensor import Subtensor
from pytensor.tensor.type import TensorType


@graph_rewriter
def shape_rows_of_no_steps(fgraph: FunctionGraph) -> None:
    """Give what loops stack its true shape when there are no steps, or say that it is unknown."""
    mode = getattr(fgraph, "_compile_mode", None)
    if mode is not None and isinstance(mode.linker, JAXLinker):
        return  # JAX knows the shape of a step without running it
    for node in list(fgraph.toposort()):
        if isinstance(node.op, Scan) and not _takes_steps(node):
            _shape_rows(fgraph, node)


def _takes_steps(node: Apply) -> bool:
    n_steps = node.inputs[0]
    return isinstance(n_steps, Constant) and int(n_steps.data) > 0


def _shape_rows(fgraph: FunctionGraph, node: Apply) -> None:
    stacked = [rows for rows in node.op.outer_nitsot_outs(node.outputs) if rows.type.ndim > 1]
    stacked = [rows for rows in stacked if fgraph.clients[rows]]
    if not stacked:
        return
    shapes = dict(zip(node.outputs, _shapes_of_outputs(node), strict=True))
    for rows in stacked:
        row = shapes[rows][1:]
        if any(_reads(dim, rows) for dim in row):
            _refuse_no_steps(fgraph, node, rows)
        else:
            shaped = pt.reshape(rows, (Shape_i(0)(rows), *row), ndim=rows.type.ndim)
            _replace_for(fgraph, list(fgraph.clients[rows]), _as_typed(shaped, rows))


def _shapes_of_outputs(node: Apply) -> list[Any]:
    shapes = [
        tuple(
            pt.constant(dim, dtype="int64") if dim is not None else Shape_i(axis)(variable)
            for axis, dim in enumerate(variable.type.shape)
        )
        if isinstance(variable.type, TensorType)
        else None
        for variable in node.inputs
    ]
    return node.op.infer_shape(node, shapes)


def _reads(dim: Any, rows: Variable) -> bool:
    """Whether a dimension could only be read off the rows themselves: then it is not known."""
    owner = getattr(dim, "owner", None)
    return owner is not None and isinstance(owner.op, Shape_i) and owner.inputs[0] is rows


def _as_typed(shaped: Variable, rows: Variable) -> Variable:
    return rows.type.filter_variable(shaped)


def _replace_for(fgraph: FunctionGraph, clients: Any, new: Variable) -> None:
    for client, position in clients:
        fgraph.change_node_input(
            client, position, new, reason="shape_rows_of_no_steps", import_missing=True
        )


def _refuse_no_steps(fgraph: FunctionGraph, node: Apply, rows: Variable) -> None:
    check = CheckAndRaise(ValueError, _UNKNOWN_SHAPE.format(name=node.op.name or "a loop"))
    for variable, clients in list(_read_outside_loops(fgraph, rows)):
        _replace_for(fgraph, clients, check(variable, node.inputs[0] > 0))


def _read_outside_loops(
    fgraph: FunctionGraph, rows: Variable
) -> Iterator[tuple[Variable, list[Any]]]:
    """Yield `rows`, and slices of them, with the clients that are not loops or slices.

    The gradient of a loop reads the rows as a sequence: when there are no steps, it reads none.
    """
    others = []
    for client, position in fgraph.clients[rows]:
        if isinstance(client.op, Subtensor):
            yield from _read_outside_loops(fgraph, client.outputs[0])
        elif not isinstance(client.op, Scan | Shape | Shape_i):
            others.append((client, position))
    if others:
        yield rows, others


_UNKNOWN_SHAPE = (
    "{name} took no steps, and the shape of a row of ys cannot be known without running one: "
    "it depends on values inside step_fn. Give the row a shape that can be told from outside, "
    "such as `pt.specify_shape(y, shape)` in step_fn, or take at least one step"
)

optdb.register(
    "shape_rows_of_no_steps",
    shape_rows_of_no_steps,
    # Every mode includes these rewrites, those without any optimisation too.
    "minimum_compile",
    # After the memory rewrites of loops (1.6) and the last simplifications (3).
    position=3.5,
)
