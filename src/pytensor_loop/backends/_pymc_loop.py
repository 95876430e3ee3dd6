"""A `Scan` node as a record by names, changed, and built again: what log-probabilities need."""

import dataclasses
import itertools
from collections.abc import Collection, Sequence
from typing import Any

import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import graph_replace
from pytensor.graph.rewriting.basic import MergeOptimizer
from pytensor.graph.traversal import ancestors, walk
from pytensor.scan.op import Scan
from pytensor.scan.utils import ScanArgs
from pytensor.tensor.basic import AllocEmpty
from pytensor.tensor.random.type import RandomType
from pytensor.tensor.subtensor import IncSubtensor
from pytensor.tensor.type import TensorType

from pytensor_loop import _slots
from pytensor_loop._lower import with_row_counts
from pytensor_loop._slots import Loop, Recurrent, Slot


def read_loop(node: Apply) -> Loop:
    """Return the record of a loop, with a copy of its step that may be changed."""
    args = ScanArgs.from_node(node, clone=True)
    _merge(args)
    several = zip(args.mit_sot_in_slices, args.inner_in_mit_sot, strict=True)
    read = [dict(zip(offsets, inner, strict=True)) for offsets, inner in several]
    read += [{-1: inner} for inner in args.inner_in_sit_sot]
    return Loop(
        n_steps=args.n_steps,
        sequences=tuple(map(Slot, args.outer_in_seqs, args.inner_in_seqs)),
        recurrent=tuple(
            map(
                Recurrent,
                [*args.outer_in_mit_sot, *args.outer_in_sit_sot],
                read,
                [*args.inner_out_mit_sot, *args.inner_out_sit_sot],
            )
        ),
        untraced=tuple(
            map(Slot, args.outer_in_shared, args.inner_in_shared, args.inner_out_shared)
        ),
        stacked=tuple(args.inner_out_nit_sot),
        captured=tuple(map(Slot, args.outer_in_non_seqs, args.inner_in_non_seqs)),
        stop=args.cond[0] if args.cond else None,
    )


def _merge(args: ScanArgs) -> None:
    """Let what a step computes twice, ``return x + e, x + e``, be one variable."""
    groups = ("mit_sot", "sit_sot", "nit_sot", "shared")
    lists = [getattr(args, f"inner_out_{group}") for group in groups]
    graph = FunctionGraph(outputs=list(itertools.chain(*lists)), clone=False)
    MergeOptimizer().rewrite(graph)
    merged = iter(graph.outputs)
    for group, values in zip(groups, lists, strict=True):
        setattr(args, f"inner_out_{group}", list(itertools.islice(merged, len(values))))


@dataclasses.dataclass(frozen=True)
class Result:
    """One output of the node of a loop."""

    output: Variable
    value: Any
    """What one step computes for it."""
    leaf: Recurrent | None
    """The leaf of the carry that it is the trace of, if it is one."""
    key: tuple[str, Variable]
    """The same for this result before and after a change of the loop."""

    @property
    def depth(self) -> int:
        """How many rows of a trace are before the first step."""
        return -min(self.leaf.inner) if self.leaf else 0


def results_of(loop: Loop, node: Apply) -> list[Result]:
    """Return what the node of a loop returns."""
    traces = _slots.read_outputs(loop, node.outputs)
    recurrent = zip(traces.recurrent, loop.recurrent, strict=True)
    stacked = zip(traces.stacked, loop.stacked, strict=True)
    untraced = zip(traces.untraced, loop.untraced, strict=True)
    return [
        *(
            Result(o, leaf.update, leaf, ("trace", leaf.inner[min(leaf.inner)]))
            for o, leaf in recurrent
        ),
        *(Result(o, value, None, ("stacked", value)) for o, value in stacked),
        *(Result(o, slot.update, None, ("carried", slot.inner)) for o, slot in untraced),
    ]


def build_loop(loop: Loop, like: Scan) -> Apply:
    """Build the node of a loop, with the settings of another."""
    op = Scan(
        _slots.inner_inputs(loop),
        _slots.inner_outputs(loop),
        _slots.info_of(loop),
        mode=like.mode,
        truncate_gradient=like.truncate_gradient,
        name=like.name,
    )
    node = op.make_node(*_slots.outer_inputs(loop))
    return _with_known_rows(loop, node) if isinstance(loop.n_steps, Constant) else node


def _with_known_rows(loop: Loop, node: Apply) -> Apply:
    """Return the node with the number of rows in the types of its outputs."""
    n_steps = int(loop.n_steps.data)
    rows = {
        result.output: result.depth + n_steps
        for result in results_of(loop, node)
        if result.key[0] != "carried"
    }
    return with_row_counts(node, rows)


def keep_only(loop: Loop, used: Sequence[Result]) -> Loop:
    """Return the loop without the leaves that do not matter to the results that are used."""
    keys = {result.key for result in used}
    needed = {result.value for result in used}
    while True:
        read = set(ancestors(needed))
        recurrent = [
            leaf
            for leaf in loop.recurrent
            if ("trace", leaf.inner[min(leaf.inner)]) in keys or read & set(leaf.inner.values())
        ]
        untraced = [
            slot for slot in loop.untraced if ("carried", slot.inner) in keys or slot.inner in read
        ]
        carried = {leaf.update for leaf in recurrent} | {slot.update for slot in untraced}
        if carried <= needed:
            break
        needed |= carried
    stacked = [value for value in loop.stacked if ("stacked", value) in keys]
    return dataclasses.replace(
        loop, recurrent=tuple(recurrent), untraced=tuple(untraced), stacked=tuple(stacked)
    )


def without_gaps(loop: Loop) -> Loop:
    """Return the loop with every offset between the deepest and the last one read."""
    return dataclasses.replace(loop, recurrent=tuple(map(_without_gaps, loop.recurrent)))


def _without_gaps(leaf: Recurrent) -> Recurrent:
    if not has_gaps(leaf):
        return leaf
    unread = {tap: leaf.update.type() for tap in range(min(leaf.inner), 0)}
    return dataclasses.replace(leaf, inner=unread | leaf.inner)


def has_gaps(leaf: Recurrent) -> bool:
    """Whether several offsets are read, but not all from the deepest to the last value."""
    return len(leaf.inner) > 1 and len(leaf.inner) < -min(leaf.inner)


def shortened(loop: Loop, by: int) -> Loop:
    """Return a loop that takes fewer steps."""
    n_steps = pt.as_tensor(loop.n_steps) - by
    if isinstance(loop.n_steps, Constant):
        n_steps = pt.constant(loop.n_steps.data - by)
    return dataclasses.replace(
        loop,
        n_steps=n_steps,
        sequences=tuple(
            dataclasses.replace(slot, outer=pt.as_tensor(slot.outer)[:n_steps])
            for slot in loop.sequences
        ),
        recurrent=tuple(
            dataclasses.replace(leaf, buffer=_buffer(start_of(leaf), n_steps))
            for leaf in loop.recurrent
        ),
    )


def _buffer(start: Any, n_steps: Any) -> Variable:
    depth = start.type.shape[0]
    rows = [start.shape[axis] for axis in range(1, start.type.ndim)]
    empty = pt.empty((depth + n_steps, *rows), dtype=start.type.dtype)
    return pt.set_subtensor(empty[:depth], start)


def start_of(leaf: Recurrent) -> Variable | None:
    """Return the rows before the first step, if the buffer shows them."""
    made = leaf.buffer.owner
    if made is None or not isinstance(made.op, IncSubtensor) or not made.op.set_instead_of_inc:
        return None
    empty, rows = made.inputs[:2]
    made_empty = empty.owner is not None and isinstance(empty.owner.op, AllocEmpty)
    known = rows.type.ndim == empty.type.ndim and rows.type.shape[0] == -min(leaf.inner)
    return rows if made_empty and known else None


def with_idle_generators(loop: Loop) -> Loop:
    """Return the loop with every draw from the generator that the step was given.

    A density does not depend on generators, but in a chain of draws from one generator each draw
    depends on the parameters of those before it.
    """
    given = {slot.inner for slot in loop.untraced}
    values: list[Any] = [leaf.update for leaf in loop.recurrent]
    values += [*(slot.update for slot in loop.untraced), *loop.stacked]
    first = {
        variable: _first_generator(variable, given)
        for variable in ancestors(values)
        if isinstance(variable.type, RandomType) and variable.owner is not None
    }
    idle = iter(graph_replace(values, first, strict=False))
    return dataclasses.replace(
        loop,
        recurrent=tuple(dataclasses.replace(leaf, update=next(idle)) for leaf in loop.recurrent),
        untraced=tuple(dataclasses.replace(slot, update=next(idle)) for slot in loop.untraced),
        stacked=tuple(idle),
    )


def _first_generator(variable: Variable, given: Collection[Variable]) -> Variable:
    while variable not in given and variable.owner is not None:
        variable = next(p for p in variable.owner.inputs if isinstance(p.type, RandomType))
    return variable


def has_random_carry(loop: Loop, observed: Collection[Variable]) -> bool:
    """Whether a leaf of the carry is drawn, and not given by what is `observed`."""
    updates: list[Any] = [leaf.update for leaf in loop.recurrent]
    updates += [slot.update for slot in loop.untraced if isinstance(slot.inner.type, TensorType)]
    return any(update not in observed and _is_drawn(update, observed) for update in updates)


def _is_drawn(value: Variable, observed: Collection[Variable]) -> bool:
    def parents(variable: Variable) -> list[Variable]:
        given = variable in observed or isinstance(variable.type, RandomType)
        return [] if given or variable.owner is None else variable.owner.inputs

    return any(
        variable not in observed
        and variable.owner is not None
        and not isinstance(variable.type, RandomType)
        and any(isinstance(parent.type, RandomType) for parent in variable.owner.inputs)
        for variable in walk([value], parents)
    )
