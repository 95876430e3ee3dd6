"""The node that checks lengths which are known only when the function runs."""

from collections.abc import Sequence
from typing import Any

import pytensor.tensor as pt
from pytensor.gradient import disconnected_type
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import node_rewriter
from pytensor.tensor.rewriting.basic import register_canonicalize
from pytensor.tensor.shape import Shape, Shape_i
from pytensor.tensor.subtensor import Subtensor


class AgreeingLengths(Op):
    """Hand on a value if lengths agree, and say which one does not if not.

    The first input is handed on; the others are the lengths, one for each label.
    """

    __props__ = ("labels", "opening", "closing")
    view_map = {0: [0]}  # noqa: RUF012 - the name and type that every Op uses
    negative = "a loop cannot take a negative number of steps"

    def __init__(self, labels: tuple[str, ...], opening: str, closing: str) -> None:
        self.labels = labels
        self.opening = opening
        self.closing = closing

    def __str__(self) -> str:
        return "AgreeingLengths"

    def make_node(self, value: Variable, *lengths: Any) -> Apply:
        """Build the node; the output is of the type of `value`."""
        tensors = [pt.as_tensor(length, dtype="int64") for length in lengths]
        assert len(tensors) == len(self.labels)
        return Apply(self, [value, *tensors], [value.type()])

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Any) -> None:
        """Compare the lengths of this call."""
        value, *lengths = inputs
        self.check([int(length) for length in lengths])
        output_storage[0][0] = value

    def check(self, lengths: Sequence[int]) -> None:
        """Raise the ValueError that names the lengths unless they agree and none is negative."""
        if len(set(lengths)) > 1 or lengths[0] < 0:
            found = ", ".join(
                f"{label} {length}" for label, length in zip(self.labels, lengths, strict=True)
            )
            if min(lengths) < 0:
                msg = f"{self.negative}: {found}"
            else:
                msg = f"{self.opening}: {found}. {self.closing}"
            raise ValueError(msg)

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        """Return the shape of the value, which is handed on as it is."""
        return [shapes[0]]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Say that only the value carries gradients."""
        return [[True], *([False] for _ in node.inputs[1:])]

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable]:
        """Hand back the gradient of the value."""
        return [cotangents[0], *(disconnected_type() for _ in inputs[1:])]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> list[Variable]:
        """Hand on the tangent of the value."""
        return [tangents[0]]


@register_canonicalize
@node_rewriter([AgreeingLengths])
def _lengths_known_to_agree(fgraph: Any, node: Apply) -> list[Variable] | None:
    """Drop the check where all lengths have become one shape or one constant."""
    value, *lengths = node.inputs
    if any(length is not lengths[0] for length in lengths[1:]):
        return None
    if isinstance(lengths[0], Constant):
        return [value] if int(lengths[0].data) >= 0 else None
    return [value] if is_a_shape(lengths[0]) else None


def is_a_shape(length: Variable) -> bool:
    """Whether a length is read off an array, and so is never negative."""
    owner = length.owner
    if owner is not None and isinstance(owner.op, Subtensor):
        owner = owner.inputs[0].owner
    return owner is not None and isinstance(owner.op, Shape | Shape_i)
