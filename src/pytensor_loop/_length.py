"""How many steps: settled here, with every disagreement about it."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Constant, Variable
from pytensor.tensor.type import DenseTensorType, integer_dtypes
from pytensor.tensor.variable import TensorVariable

from pytensor_loop._agree import AgreeingLengths, is_a_shape
from pytensor_loop._errors import count, value_in_short
from pytensor_loop._inputs import Series


@dataclasses.dataclass(frozen=True)
class Length:
    """The number of steps, as a variable and, where it is known already, as an int."""

    n_steps: TensorVariable
    static: int | None
    check: AgreeingLengths | None = None
    """What checks when the function runs that all lengths agree, if they may not."""
    lengths: tuple[TensorVariable, ...] = ()

    def guard(self, rows: Variable) -> Variable:
        """Return the rows of one leaf behind the check.

        The number of steps is behind it too, but a loop that becomes one operation on whole arrays
        does not count its steps.
        """
        return rows if self.check is None else self.check(rows, *self.lengths)


@dataclasses.dataclass(frozen=True)
class _Claim:
    """What one argument says about the number of steps."""

    label: str
    length: TensorVariable
    static: int | None
    reason: str = ""


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
    if len(claims) == 1 and not claims[0].reason and is_a_shape(claims[0].length):
        return Length(claims[0].length, None)
    check = AgreeingLengths(
        labels=tuple(map(_with_reason, claims)), opening=_OPENING, closing=_CLOSING
    )
    lengths = tuple(claim.length for claim in claims)
    handed_on = next((claim.length for claim in claims if claim.static is not None), lengths[0])
    return Length(check(handed_on, *lengths), static, check, lengths)


def _claim_of(leaf: Series) -> _Claim:
    rows, static = leaf.values.shape[0], leaf.values.type.shape[0]
    if not leaf.lookahead:
        return _Claim(leaf.path, rows, static)
    reason = f"rows less its furthest tap {leaf.lookahead}"
    if static is not None and static < leaf.lookahead:
        msg = (
            f"{leaf.path} has {count(static, 'row')}, fewer than its furthest tap "
            f"{leaf.lookahead}: a step would read past the end"
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
        if (
            not isinstance(type_, DenseTensorType)
            or type_.ndim
            or type_.dtype not in integer_dtypes
        ):
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


def _with_reason(claim: _Claim) -> str:
    return f"{claim.label} ({claim.reason})" if claim.reason else claim.label


_OPENING = "the number of steps is not the same for all"
_CLOSING = "Cut the longer ones, `x[:n]`, so that every step has a row of each"
