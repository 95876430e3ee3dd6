"""How many steps: settled here, with every disagreement about it."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import disconnected_type
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import node_rewriter
from pytensor.tensor.rewriting.basic import register_canonicalize
from pytensor.tensor.type import TensorType, integer_dtypes
from pytensor.tensor.variable import TensorVariable

from pytensor_loop._errors import value_in_short
from pytensor_loop._inputs import Series, State


@dataclasses.dataclass(frozen=True)
class Length:
    """The number of steps, as a variable and, where it is known when the loop is built, as an int."""

    n_steps: TensorVariable
    static: int | None


@dataclasses.dataclass(frozen=True)
class _Claim:
    """What one argument says about the number of steps."""

    label: str
    length: TensorVariable
    static: int | None
    reason: str = ""


class AgreeingLengths(Op):
    """Hand on a value if lengths agree, and say which one does not if not.

    The first input is handed on; the others are the lengths, one for each label.
    """

    __props__ = ("labels", "opening", "closing")
    view_map = {0: [0]}  # noqa: RUF012 - the name and type that every Op uses

    def __init__(self, labels: tuple[str, ...], opening: str, closing: str) -> None:
        self.labels = labels
        self.opening = opening
        self.closing = closing

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
                msg = f"a loop cannot take a negative number of steps: {found}"
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
    return [value] if _is_a_shape(lengths[0]) else None


def settle_length(series: Sequence[Series], n_steps: Any) -> Length:
    """Return the number of steps that every leaf of ``xs`` and ``n_steps`` agree on.

    Raises
    ------
    ValueError
        If nothing tells the number of steps, if it is not an integer of zero or more, or if
        lengths that are known when the loop is built disagree: every one of them is named.
    """
    claims = [_claim_of(leaf) for leaf in series]
    if n_steps is not None:
        claims.append(_read_n_steps(n_steps))
    if not claims:
        msg = (
            "scan needs n_steps when there are no xs to tell how many steps to take: "
            "`scan(step_fn, init, n_steps=10)`"
        )
        raise ValueError(msg)
    known = {claim.static for claim in claims if claim.static is not None}
    if len(known) > 1:
        raise ValueError(_disagreement(claims))
    static = known.pop() if known else None
    unknown = [claim for claim in claims if claim.static is None]
    if not unknown:
        return Length(pt.constant(np.asarray(static, dtype="int64")), static)
    if len(claims) == 1 and not claims[0].reason and _is_a_shape(claims[0].length):
        return Length(claims[0].length, None)
    return Length(_agreed(claims), static)


def with_rows_for_taps(state: State) -> State:
    """Return a leaf with taps whose number of rows is checked when the function runs."""
    rows = state.initial
    if state.offsets is None or rows.type.shape[0] is not None:
        return state
    check = AgreeingLengths(
        labels=("the rows of `a` are", "the deepest tap looks back"),
        opening=f"{state.path} was given by taps(a, taps={list(state.offsets)})",
        closing="`a` must have one row for each step that the taps look back, row 0 the oldest",
    )
    checked = check(rows, rows.shape[0], state.depth)
    initial = pt.specify_shape(checked, (state.depth, *rows.type.shape[1:]))
    return dataclasses.replace(state, initial=initial)


def _claim_of(leaf: Series) -> _Claim:
    rows, static = leaf.values.shape[0], leaf.values.type.shape[0]
    if not leaf.lookahead:
        return _Claim(leaf.path, rows, static)
    reason = f"rows less its furthest tap {leaf.lookahead}"
    if static is not None and static < leaf.lookahead:
        msg = (
            f"{leaf.path} has {static} rows, fewer than its furthest tap {leaf.lookahead}: "
            "a step would read past the end"
        )
        raise ValueError(msg)
    less = static - leaf.lookahead if static is not None else None
    return _Claim(leaf.path, rows - leaf.lookahead, less, reason)


def _read_n_steps(n_steps: Any) -> _Claim:
    variable = n_steps if isinstance(n_steps, Variable) else None
    if isinstance(n_steps, Constant):
        n_steps = n_steps.data
    elif variable is not None:
        type_ = variable.type
        if not isinstance(type_, TensorType) or type_.ndim or type_.dtype not in integer_dtypes:
            raise ValueError(_not_a_count(value_in_short(variable)))
        return _Claim("n_steps", pt.cast(variable, "int64"), None)
    whole = isinstance(n_steps, int | np.integer) or (
        isinstance(n_steps, np.ndarray) and n_steps.ndim == 0 and n_steps.dtype.kind in "iu"
    )
    if not whole or isinstance(n_steps, bool) or n_steps < 0:
        raise ValueError(_not_a_count(repr(n_steps)))
    return _Claim("n_steps", pt.constant(np.asarray(n_steps, dtype="int64")), int(n_steps))


def _not_a_count(what: str) -> str:
    return f"n_steps must be an int of zero or more, or an integer scalar variable, not {what}"


def _disagreement(claims: Iterable[_Claim]) -> str:
    lengths = ", ".join(
        f"{_with_reason(claim)} {'unknown' if claim.static is None else claim.static}"
        for claim in claims
    )
    return f"{_OPENING}: {lengths}. {_CLOSING}"


def _agreed(claims: Sequence[_Claim]) -> TensorVariable:
    check = AgreeingLengths(
        labels=tuple(map(_with_reason, claims)), opening=_OPENING, closing=_CLOSING
    )
    lengths = [claim.length for claim in claims]
    known = next((claim.length for claim in claims if claim.static is not None), lengths[0])
    return check(known, *lengths)


def _with_reason(claim: _Claim) -> str:
    return f"{claim.label} ({claim.reason})" if claim.reason else claim.label


def _is_a_shape(length: Variable) -> bool:
    """Whether a length is read off an array, and so is never negative."""
    from pytensor.tensor.shape import Shape, Shape_i
    from pytensor.tensor.subtensor import Subtensor

    owner = length.owner
    if owner is not None and isinstance(owner.op, Subtensor):
        owner = owner.inputs[0].owner
    return owner is not None and isinstance(owner.op, Shape | Shape_i)


_OPENING = "the number of steps is not the same for all"
_CLOSING = "Cut the longer ones, `x[:n]`, so that every step has a row of each"
