"""Which rows of a loop a variable has, and whether they are drawn."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pymc.logprob.abstract import MeasurableOp, ValuedRV
from pymc.logprob.utils import check_potential_measurability
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.traversal import ancestors, walk
from pytensor.scan.op import Scan
from pytensor.tensor.basic import Join
from pytensor.tensor.random.type import RandomType
from pytensor.tensor.subtensor import Subtensor, indices_from_subtensor

from pytensor_loop.backends import _pymc_loop as edit


@dataclass(frozen=True)
class Rows:
    """A variable that has the rows of an output of a loop."""

    variable: Variable
    output: Variable
    turned: bool
    """Whether from the last to the first."""


def read_rows(variable: Variable) -> Rows | None:
    """Return which rows a variable has, if it has all rows of ``ys``."""
    rows, turned = variable, False
    if _is_cut(rows, None, None, -1):
        rows, turned = rows.owner.inputs[0], True
    cut = rows.owner is not None and isinstance(rows.owner.op, Subtensor)
    output = rows.owner.inputs[0] if cut else rows
    if not draws_in_a_loop(output):
        return None
    node = output.owner
    if isinstance(node.op, MeasurableOp) or node.op.info.n_mit_mot:
        return None
    [result] = [r for r in edit.results_of(edit.read_loop(node), node) if r.output is output]
    if result.leaf is None:
        return Rows(variable, output, turned) if rows is output else None
    return Rows(variable, output, turned) if _is_cut(rows, result.depth) else None


def is_part_of_rows(variable: Variable) -> bool:
    """Whether a variable was cut out of an output of a loop."""
    whole = variable
    while whole.owner is not None and isinstance(whole.owner.op, Subtensor):
        whole = whole.owner.inputs[0]
    return whole is not variable and draws_in_a_loop(whole)


def joins_rows(node: Apply) -> bool:
    """Whether a node puts something before or behind the rows of a loop."""
    along_time = isinstance(node.op, Join) and node.op.axis == 0
    return along_time and any(map(read_rows, node.inputs))


def _is_cut(
    variable: Variable, start: int | None, stop: int | None = None, step: int | None = None
) -> bool:
    """Whether a variable is a slice of another's rows by these constants."""
    if variable.owner is None or not isinstance(variable.owner.op, Subtensor):
        return False
    indices = indices_from_subtensor(variable.owner.inputs[1:], variable.owner.op.idx_list)
    if len(indices) != 1 or not isinstance(indices[0], slice):
        return False
    cut = indices[0]
    return [_known(cut.start), _known(cut.stop), _known(cut.step)] == [start, stop, step]


def _known(index: Any) -> Any:
    while isinstance(index, Variable) and index.owner is not None and len(index.owner.inputs) == 1:
        index = index.owner.inputs[0]  # a conversion between a tensor and a scalar
    return int(index.data) if isinstance(index, Constant) else index


def is_random(variable: Variable) -> bool:
    """Whether a variable is drawn: by a distribution, or in a loop."""
    reached = walk([variable], parents_without_value)
    return check_potential_measurability([variable]) or any(map(draws_in_a_loop, reached))


def has_valued_ancestor(variable: Variable) -> bool:
    """Whether a variable is made of another one that has a value."""
    return any(v.owner and isinstance(v.owner.op, ValuedRV) for v in ancestors([variable]))


def draws_in_a_loop(variable: Variable) -> bool:
    """Whether a variable is an output of a loop that has a generator."""
    owner = variable.owner
    return (
        owner is not None
        and isinstance(owner.op, Scan)
        and any(isinstance(parent.type, RandomType) for parent in owner.inputs)
    )


def parents_without_value(variable: Variable) -> Sequence[Variable]:
    """Return what a variable is made of, up to what has a value."""
    if variable.owner is None or isinstance(variable.owner.op, ValuedRV):
        return []
    return variable.owner.inputs
