"""Stand-ins for the rows of a loop, with the log-probabilities that they have or lack."""

from collections.abc import Sequence
from typing import Any

from pymc.logprob.abstract import MeasurableOp, _logprob, _logprob_helper
from pymc.logprob.rewriting import remove_promised_valued_rvs
from pymc.logprob.scan import MeasurableScan
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.graph.utils import MissingInputError
from pytensor.tensor.basic import as_tensor

from pytensor_loop.backends._pymc_reasons import ANOTHER_DRAW


class Reversed(MeasurableOp, Op):
    """Rows from the last to the first, with a log-probability if the rows have one."""

    __props__ = ()

    def make_node(self, *inputs: Variable) -> Apply:
        """Build the node; the output is of the type of the input."""
        [rows] = inputs
        return Apply(self, [rows], [rows.type()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Any) -> None:
        """Turn the rows."""
        output_storage[0][0] = inputs[0][::-1]

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        """Return the shape of the rows."""
        return [shapes[0]]


class NewRows(MeasurableOp, Op):
    """The rows of a trace behind those before the first step.

    PyMC's rule drops the slice that cuts them. Whoever asks for the shape then, as a join does,
    would be told that there are more rows than have values.
    """

    __props__ = ("depth",)

    def __init__(self, depth: int) -> None:
        self.depth = depth

    def make_node(self, *inputs: Variable) -> Apply:
        """Build the node."""
        [trace] = inputs
        return Apply(self, [trace], [as_tensor(trace)[self.depth :].type()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Any) -> None:
        """Cut the trace."""
        output_storage[0][0] = inputs[0][self.depth :]

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        """Return the shape of the rows."""
        return [(shapes[0][0] - self.depth, *shapes[0][1:])]


class Underivable(MeasurableOp, Op):
    """Stands for rows without a log-probability, and knows why."""

    __props__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def make_node(self, *inputs: Variable) -> Apply:
        """Build the node; the output is of the type of the input."""
        [rows] = inputs
        return Apply(self, [rows], [rows.type()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Any) -> None:
        """Hand on the rows."""
        output_storage[0][0] = inputs[0]

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        """Return the shape of the rows."""
        return [shapes[0]]


@_logprob.register(Reversed)
def _logprob_of_reversed(op: Reversed, values: Sequence[Any], rows: Variable, **kwargs: Any) -> Any:
    [rows] = remove_promised_valued_rvs([rows])
    return _logprob_helper(rows, values[0][::-1], **kwargs)[::-1]


@_logprob.register(NewRows)
def _logprob_of_new_rows(op: NewRows, values: Sequence[Any], trace: Variable, **kwargs: Any) -> Any:
    return _logprob_helper(trace, values[0], **kwargs)


@_logprob.register(Underivable)
def _logprob_of_underivable(op: Underivable, values: Any, rows: Variable, **kwargs: Any) -> Any:
    raise NotImplementedError(op.reason)


_logprob_of_scan = _logprob.dispatch(MeasurableScan)


@_logprob.register(MeasurableScan)
def _logprob_or_reason(op: MeasurableScan, values: Any, *inputs: Variable, **kwargs: Any) -> Any:
    """Say what is missing when a draw is left over, without its generator, after the derivation."""
    try:
        return _logprob_of_scan(op, values, *inputs, **kwargs)
    except MissingInputError as error:
        raise NotImplementedError(ANOTHER_DRAW) from error
