"""Rows of no steps have the shape of a row: ``(0, *row)``.

The `Scan` Op learns the shape of what it stacks from its first step, and makes up zeros when there
is none. These rewrites give the outputs their shape back, where it can be told without a step. They
cover every loop in the graph: the gradient of a loop stacks too.
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
from pytensor.scalar.basic import ScalarMinimum
from pytensor.scan.op import Scan
from pytensor.tensor.shape import Shape, Shape_i
from pytensor.tensor.subtensor import Subtensor
from pytensor.tensor.type import DenseTensorType

from pytensor_loop._modes import compiles_with


@graph_rewriter
def remove_loops_of_no_steps(fgraph: FunctionGraph) -> None:
    """Replace what a loop that is known to take no steps returns by what it starts from.

    It has to be early: PyTensor folds a loop of constants, made-up shapes and all.
    """
    for node in _loops(fgraph, static_steps=0):
        for rows, row in _stacked_rows(fgraph, node):
            known = [0] * (rows.type.ndim - 1) if row is None else row
            empty = pt.zeros((0, *known), dtype=rows.type.dtype)
            if row is None:
                _refuse_no_steps(fgraph, rows, empty, node)
            _replace(fgraph, rows, empty)
        for output, start in _starts(node):
            _replace(fgraph, output, start)


def _starts(node: Apply) -> Iterator[tuple[Variable, Variable]]:
    """Yield what a loop carries: the output, and the input that it starts from."""
    op = node.op
    for group in (op.outer_mitmot, op.outer_mitsot, op.outer_sitsot, op.outer_untraced_sit_sot):
        outputs = getattr(op, f"{group.__name__}_outs")(node.outputs)
        yield from zip(outputs, group(node.inputs), strict=True)


def _replace(fgraph: FunctionGraph, old: Variable, new: Variable) -> None:
    fgraph.replace(
        old, old.type.filter_variable(new), reason="loop of no steps", import_missing=True
    )


@graph_rewriter
def shape_rows_of_no_steps(fgraph: FunctionGraph) -> None:
    """Give what loops stack its true shape when there are no steps, or say that it is unknown.

    It has to be late: the rewrites that look for the outputs of loops would not see through it.
    """
    if compiles_with(fgraph, JAXLinker):
        return  # JAX knows the shape of a step without running it
    for node in _loops(fgraph, static_steps=None):
        for rows, row in _stacked_rows(fgraph, node):
            if row is None:
                _refuse_no_steps(fgraph, rows, rows, node)
            elif row:
                shaped = pt.reshape(rows, (Shape_i(0)(rows), *row), ndim=rows.type.ndim)
                typed = rows.type.filter_variable(shaped)
                _replace_for(fgraph, list(fgraph.clients[rows]), typed)


def _loops(fgraph: FunctionGraph, static_steps: int | None) -> list[Apply]:
    """Return the loops whose number of steps is known to be this, or is not known."""
    return [
        node
        for node in fgraph.toposort()
        if isinstance(node.op, Scan) and _static_steps(node) == static_steps
    ]


def _static_steps(node: Apply) -> int | None:
    n_steps = node.inputs[0]
    return int(n_steps.data) if isinstance(n_steps, Constant) else None


def _stacked_rows(
    fgraph: FunctionGraph, node: Apply
) -> Iterator[tuple[Variable, list[Any] | None]]:
    """Yield what a loop stacks, with the shape of a row, or None where only a step can tell."""
    stacked = [rows for rows in node.op.outer_nitsot_outs(node.outputs) if fgraph.clients[rows]]
    shapes = dict(zip(node.outputs, _shapes_of_outputs(node), strict=True)) if stacked else {}
    for rows in stacked:
        row = list(shapes[rows][1:])
        yield rows, None if any(_reads(dim, rows) for dim in row) else row


def _shapes_of_outputs(node: Apply) -> list[Any]:
    shapes = [
        tuple(
            pt.constant(dim, dtype="int64") if dim is not None else Shape_i(axis)(variable)
            for axis, dim in enumerate(variable.type.shape)
        )
        if isinstance(variable.type, DenseTensorType)
        else None
        for variable in node.inputs
    ]
    return node.op.infer_shape(node, shapes)


def _reads(dim: Any, rows: Variable) -> bool:
    """Whether a dimension could only be read off the rows themselves: then it is not known."""
    owner = getattr(dim, "owner", None)
    return owner is not None and isinstance(owner.op, Shape_i) and owner.inputs[0] is rows


def _replace_for(fgraph: FunctionGraph, clients: Any, new: Variable) -> None:
    for client, position in clients:
        fgraph.change_node_input(
            client, position, new, reason="shape_rows_of_no_steps", import_missing=True
        )


def _refuse_no_steps(fgraph: FunctionGraph, rows: Variable, instead: Variable, node: Apply) -> None:
    """Let whoever reads the rows, but other loops, fail when there are no steps."""
    name = node.op.name or "the loop"
    check = CheckAndRaise(ValueError, _UNKNOWN_SHAPE.format(name=name))
    for variable, clients in list(_read_outside_loops(fgraph, rows)):
        value = instead if variable is rows else variable
        _replace_for(fgraph, clients, check(value, node.inputs[0] > 0))


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


@graph_rewriter
def count_no_fewer_than_no_steps(fgraph: FunctionGraph) -> None:
    """Keep a number of steps that was reduced from going below zero.

    PyTensor takes off the steps that nobody reads, ``ys[:-1]`` say, also when there are none. It
    writes the reduced number as a minimum.
    """
    for n_steps in {node.inputs[0] for node in _loops(fgraph, static_steps=None)}:
        reduced = n_steps.owner is not None and getattr(n_steps.owner.op, "scalar_op", None)
        if isinstance(reduced, ScalarMinimum):
            clients = list(fgraph.clients[n_steps])
            _replace_for(fgraph, clients, pt.maximum(n_steps, 0))


# Every mode includes these rewrites, those without any optimisation too. One comes before all
# others, one after the memory rewrites of loops (1.6) and the last simplifications (3).
for _rewrite, _position in ((remove_loops_of_no_steps, 0.01), (shape_rows_of_no_steps, 3.5)):
    optdb.register(_rewrite.__name__, _rewrite, "minimum_compile", position=_position)

# Right behind the rewrite that reduces steps (1.611), before the one that cuts buffers (1.612).
optdb.register(
    count_no_fewer_than_no_steps.__name__,
    count_no_fewer_than_no_steps,
    "fast_run",
    position=1.6115,
)
