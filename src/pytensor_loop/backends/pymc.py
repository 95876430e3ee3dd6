"""What PyMC needs to derive the log-probability of the rows that a loop returns.

PyMC has rules for the `Scan` Op. They miss some of our loops; for these the loop is brought into
the form that the rules are right for. Where no density can be derived, the error says which form of
loop has one.
"""

from collections.abc import Sequence
from typing import Any

from pymc.logprob.abstract import (
    MeasurableOp,
    ValuedRV,
    promised_valued_rv,
)
from pymc.logprob.rewriting import (
    assume_valued_outputs,
    logprob_rewrites_db,
)
from pymc.logprob.scan import MeasurableScan
from pymc.logprob.tensor import MeasurableDimShuffle, MeasurableJoin
from pymc.logprob.utils import (
    dirac_delta,
)
from pymc.pytensorf import toposort_replace
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.replace import graph_replace
from pytensor.graph.rewriting.basic import graph_rewriter
from pytensor.graph.traversal import walk
from pytensor.scan.op import Scan
from pytensor.tensor.basic import MakeVector, as_tensor
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.shape import SpecifyShape
from pytensor.tensor.subtensor import Subtensor

from pytensor_loop._slots import Loop, Recurrent
from pytensor_loop.backends import _pymc_loop as edit
from pytensor_loop.backends import _pymc_reasons as reasons
from pytensor_loop.backends._pymc_ops import NewRows, Reversed, Underivable
from pytensor_loop.backends._pymc_rows import (
    Rows,
    draws_in_a_loop,
    has_valued_ancestor,
    is_part_of_rows,
    is_random,
    joins_rows,
    parents_without_value,
    read_rows,
)


@graph_rewriter
def prepare_loops(fgraph: FunctionGraph) -> None:
    """Bring the loops whose rows have values into a form that PyMC's rules are right for."""
    for node in fgraph.toposort():
        value = node.inputs[0] if isinstance(node.op, ValuedRV) else None
        if value is None or value.owner is None:
            continue
        rows = read_rows(value)
        if rows is not None:
            _prepare(fgraph, rows)
        elif joins_rows(value.owner):
            _join(fgraph, value, value.owner.inputs)
        elif is_part_of_rows(value):
            # PyMC would take any slice of a trace for the new values, all of them.
            _refuse(fgraph, value, reasons.NOT_ALL_ROWS)
        elif isinstance(value.owner.op, DimShuffle) and read_rows(value.owner.inputs[0]):
            _rearrange(fgraph, value)


@graph_rewriter
def settle_rows(fgraph: FunctionGraph) -> None:
    """Give the rows that PyMC's rule has taken their number again."""
    for loop in fgraph.toposort():
        if isinstance(loop.op, MeasurableScan):
            valued = [(node, rows) for rows in loop.outputs for node in _valued(fgraph, rows)]
            if len(valued) > 1:
                _type_rows(fgraph, loop, valued)
            elif valued:
                _cut_trace(fgraph, *valued[0])


def _valued(fgraph: FunctionGraph, rows: Variable) -> list[Apply]:
    """Return the nodes that give values to rows, perhaps with a check of their shape between."""
    clients = [client for client, _ in fgraph.clients[rows]]
    checked = [node for node in clients if isinstance(node.op, SpecifyShape)]
    found = [node for node in clients if isinstance(node.op, ValuedRV)]
    return found + [node for check in checked for node in _valued(fgraph, check.outputs[0])]


def _type_rows(fgraph: FunctionGraph, loop: Apply, valued: Sequence[tuple[Apply, Any]]) -> None:
    """Take the checks of shape away that keep several values of one loop apart."""
    types = {rows: node.inputs[0].type for node, rows in valued}
    outputs = [types.get(output, output.type)() for output in loop.outputs]
    typed = dict(zip(loop.outputs, Apply(loop.op, loop.inputs, outputs).outputs, strict=True))
    for node, rows in valued:
        if node.inputs[0] is not rows:
            fgraph.change_node_input(node, 0, typed[rows], import_missing=True)
    fgraph.replace_all(list(typed.items()), reason="settle_rows", import_missing=True)


def _cut_trace(fgraph: FunctionGraph, node: Apply, trace: Variable) -> None:
    """Count only the new values of a trace, as the slice did that PyMC's rule has dropped."""
    loop = trace.owner
    [result] = [r for r in edit.results_of(edit.read_loop(loop), loop) if r.output is trace]
    if result.leaf is not None and node.inputs[0] is trace:
        new = NewRows(result.depth).make_node(trace).outputs[0]
        fgraph.change_node_input(node, 0, new, reason="settle_rows", import_missing=True)


@graph_rewriter
def explain_loops(fgraph: FunctionGraph) -> None:
    """Put a sentence in the place of a value that PyMC has found no rule for."""
    for node in fgraph.toposort():
        value = node.inputs[0] if isinstance(node.op, ValuedRV) else None
        if value is None or value.owner is None or isinstance(value.owner.op, MeasurableOp):
            continue
        if any(map(draws_in_a_loop, walk([value], parents_without_value))):
            _refuse(fgraph, value, reasons.NO_RULE)


def _prepare(fgraph: FunctionGraph, rows: Rows) -> None:
    node = rows.output.owner
    loop = edit.read_loop(node)
    if loop.stop is not None:
        return _refuse(fgraph, rows.variable, reasons.STOPS)
    used = _used(fgraph, loop, node)
    [observed] = [result for result in used if result.output is rows.output]
    if observed.leaf is None and (trace := _trace_of_new_value(loop, node, observed.value)):
        # Written twice in the step, `return (rng, x + e), x + e`.
        return _prepare(fgraph, _read_from_trace(fgraph, rows, trace))
    if observed.leaf is None and (leaf := _leaf_of_old_value(loop, observed.value)):
        return _put_start_in_front(fgraph, rows, loop, leaf)
    kept = edit.keep_only(loop, used)
    valued = [i for i, result in enumerate(used) if _has_value(fgraph, result.output)]
    values = [used[i].value for i in valued]
    if edit.has_random_carry(kept, values) and len(values) == 1:
        loop = edit.with_idle_generators(loop)
        used = _used(fgraph, loop, node)
        kept, values = edit.keep_only(loop, used), [used[i].value for i in valued]
    if edit.has_random_carry(kept, values):
        return _refuse(fgraph, rows.variable, reasons.RANDOM_CARRY)
    if _size(kept) < _size(loop) or any(map(edit.has_gaps, kept.recurrent)):
        _replace_loop(fgraph, used, edit.without_gaps(kept), node.op)
    if rows.turned:
        _turn(fgraph, rows)
    return None


def _rearrange(fgraph: FunctionGraph, value: Variable) -> None:
    """Put rows whose axes were moved in place: PyMC's rule wants to see a distribution behind."""
    op, [rows] = value.owner.op, value.owner.inputs
    [measurable] = assume_valued_outputs([rows])
    if measurable.owner is not None and isinstance(measurable.owner.op, MeasurableOp):
        moved = MeasurableDimShuffle(input_ndim=op.input_ndim, new_order=op.new_order)
        _put(fgraph, value, moved, measurable)


def _used(fgraph: FunctionGraph, loop: Loop, node: Apply) -> list[edit.Result]:
    return [result for result in edit.results_of(loop, node) if fgraph.clients[result.output]]


def _size(loop: Loop) -> int:
    return len(loop.recurrent) + len(loop.untraced) + len(loop.stacked)


def _has_value(fgraph: FunctionGraph, variable: Variable) -> bool:
    return any(
        isinstance(client.op, ValuedRV)
        or (isinstance(client.op, Subtensor) and _has_value(fgraph, client.outputs[0]))
        for client, _ in fgraph.clients[variable]
    )


def _leaf_of_old_value(loop: Loop, value: Variable) -> Recurrent | None:
    leaves = [leaf for leaf in loop.recurrent if value in leaf.inner.values()]
    return leaves[0] if leaves else None


def _trace_of_new_value(loop: Loop, node: Apply, value: Variable) -> edit.Result | None:
    traces = [result for result in edit.results_of(loop, node) if result.leaf is not None]
    return next((trace for trace in traces if trace.value is value), None)


def _read_from_trace(fgraph: FunctionGraph, rows: Rows, trace: edit.Result) -> Rows:
    cut = as_tensor(trace.output)[trace.depth :].owner
    new = Apply(cut.op, cut.inputs, [rows.output.type()]).outputs[0]
    fgraph.replace(rows.output, new, reason="prepare_loops", import_missing=True)
    return Rows(rows.variable if rows.turned else new, trace.output, rows.turned)


def _put_start_in_front(fgraph: FunctionGraph, rows: Rows, loop: Loop, leaf: Recurrent) -> None:
    """Write rows of an old carry as the start, and behind it the new values of a shorter loop."""
    node = rows.output.owner
    results = edit.results_of(loop, node)
    [old] = [result.value for result in results if result.output is rows.output]
    [trace] = [result for result in results if result.leaf is leaf]
    [back] = [-tap for tap, inner in leaf.inner.items() if inner is old]
    alone = edit.keep_only(loop, [trace])
    starts: dict[Any, Any] = {other.buffer: edit.start_of(other) for other in alone.recurrent}
    start, depth = starts[leaf.buffer], trace.depth
    others = [r for r in _used(fgraph, loop, node) if r.output is not rows.output]
    if None in starts.values() or others:
        return None  # `explain_loops` follows
    if edit.has_random_carry(alone, [leaf.update]):
        return _refuse(fgraph, rows.variable, reasons.RANDOM_CARRY)
    if back < depth and is_random(start):
        return _refuse(fgraph, rows.variable, reasons.START_IS_PARTLY_SEEN)
    shorter = edit.without_gaps(edit.shortened(alone, back))
    [new] = [
        result
        for result in edit.results_of(shorter, edit.build_loop(shorter, node.op))
        if result.key == trace.key
    ]
    first = start if back == depth else as_tensor(start)[depth - back :]
    later = as_tensor(new.output)[depth:]
    # PyMC has no rule for a loop that is known to take no steps.
    parts = [first] if later.type.shape[0] == 0 else [first, later]
    return _join(fgraph, rows.variable, parts, turned=rows.turned)


def _join(
    fgraph: FunctionGraph, variable: Variable, parts: Sequence[Variable], *, turned: bool = False
) -> None:
    """Put parts, some of them rows of a loop, in the place of a variable that has a value.

    PyMC's rule for joins does not see that a loop draws: it would take its rows for fixed numbers.
    """
    if any(not is_random(part) and has_valued_ancestor(part) for part in parts):
        return _refuse(fgraph, variable, reasons.START_IS_GIVEN)
    if len(parts) == 1:
        [part] = parts
        part = part if is_random(part) else dirac_delta(part)
        fgraph.replace(variable, part, reason="prepare_loops", import_missing=True)
        return None
    parts = _linked(parts)
    measured = assume_valued_outputs([
        part if is_random(part) else dirac_delta(part) for part in parts
    ])
    if not all(part.owner and isinstance(part.owner.op, MeasurableOp) for part in measured):
        return None
    # One may be a parameter of another, and then its value counts, not a draw of it.
    promises = FunctionGraph(outputs=list(measured), clone=False)
    toposort_replace(promises, [(part, promised_valued_rv(part)) for part in measured])
    joined = MeasurableJoin(axis=0).make_node(*promises.outputs)
    if turned:
        return _put(fgraph, variable, Reversed(), promised_valued_rv(joined.outputs[0]))
    return _put(fgraph, variable, joined.op, *joined.inputs)


def _linked(parts: Sequence[Variable]) -> Sequence[Variable]:
    """Return the parts of a join, with what is a row of one read from that part by the others.

    Values are given to the parts. A loop that captures the scalar in ``[scalar]`` has to see them.
    """
    stand_ins = {part: part.type() for part in parts if _rows_of(part)}
    reads = {
        row: stand_in[i]
        for part, stand_in in stand_ins.items()
        for i, row in enumerate(_rows_of(part))
    }
    # By way of stand-ins: a row must not be replaced where its own part is made of it.
    back = {stand_in: part for part, stand_in in stand_ins.items()}
    return [
        part if part in stand_ins else _replaced(_replaced(part, reads), back) for part in parts
    ]


def _replaced(variable: Variable, replacements: dict[Variable, Variable]) -> Variable:
    [replaced] = graph_replace([variable], replacements, strict=False)
    return replaced


def _rows_of(part: Variable) -> Sequence[Variable]:
    """Return the variables that a part of a join was made of, if it is a list of them."""
    if part.owner is None:
        return []
    op = part.owner.op
    if isinstance(op, DimShuffle) and op.new_order == ("x", *range(part.type.ndim - 1)):
        return part.owner.inputs
    return part.owner.inputs if isinstance(op, MakeVector) else []


def _replace_loop(
    fgraph: FunctionGraph, used: Sequence[edit.Result], loop: Loop, like: Scan
) -> None:
    results = edit.results_of(loop, edit.build_loop(loop, like))
    new = {result.key: result.output for result in results}
    pairs = [(result.output, new[result.key]) for result in used]
    fgraph.replace_all(pairs, reason="prepare_loops", import_missing=True)


def _turn(fgraph: FunctionGraph, rows: Rows) -> None:
    [measurable] = assume_valued_outputs([rows.variable.owner.inputs[0]])
    if measurable.owner is not None and isinstance(measurable.owner.op, MeasurableOp):
        _put(fgraph, rows.variable, Reversed(), promised_valued_rv(measurable))


def _refuse(fgraph: FunctionGraph, variable: Variable, reason: str) -> None:
    _put(fgraph, variable, Underivable(reason), variable)


def _put(fgraph: FunctionGraph, variable: Variable, op: Op, *sources: Variable) -> None:
    """Put what `op` makes of `sources` in the place of a variable that has a value."""
    new = Apply(op, list(sources), [variable.type()]).outputs[0]
    for client, position in list(fgraph.clients[variable]):
        if isinstance(client.op, ValuedRV) and position == 0:
            fgraph.change_node_input(client, 0, new, reason="loops", import_missing=True)


# Behind the rewrite that opens what `pm.CustomDist` made of `dist`, before everything else.
logprob_rewrites_db.register("prepare_loops", prepare_loops, "basic", position=-15)
# Directly behind the rules.
logprob_rewrites_db.register("settle_rows", settle_rows, "basic", position=2.5)
# After the last rule, before the values are taken.
logprob_rewrites_db.register("explain_loops", explain_loops, "basic", position=4.5)
