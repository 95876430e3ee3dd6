"""The old call built into a loop: what all the old functions share."""

import dataclasses
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.configdefaults import config
from pytensor.graph.basic import Variable
from pytensor.tensor.exceptions import NotScalarConstantError
from pytensor.tensor.type import TensorType

from pytensor_loop._agree import AgreeingLengths
from pytensor_loop._inputs import Series, State
from pytensor_loop._length import Length, settle_length
from pytensor_loop._lower import Options, Results, lower
from pytensor_loop.legacy._arguments import (
    OldArguments,
    OldSequence,
    as_count,
    flat,
    read_arguments,
)
from pytensor_loop.legacy._returned import Returned, read_returned
from pytensor_loop.legacy._step import OldStep, match_outputs, trace_old_step


@dataclasses.dataclass(frozen=True)
class OldCall:
    """One call of an old function, as it was made."""

    fn: Callable[..., Any]
    sequences: Any = None
    outputs_info: Any = None
    non_sequences: Any = None
    n_steps: Any = None
    truncate_gradient: int = -1
    go_backwards: bool = False
    name: str | None = None
    strict: bool = False
    op_settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """The mode, profile and garbage collection of the step."""


@dataclasses.dataclass(frozen=True)
class Built:
    """The results of an old call, and what was learned about it."""

    outputs: list[Variable]
    last: list[Variable]
    """The last row of each output; with no steps, the initial value of what is fed back."""
    updates: dict[Any, Variable]
    arguments: OldArguments
    returned: Returned
    one_step: bool = False
    """Whether it is one step, for which no loop was built."""


def build(call: OldCall) -> Built:
    """Build the loop of an old call.

    Raises
    ------
    ValueError
        If nothing tells the number of steps, or a sequence is known to be too short for it.
    """
    arguments = read_arguments(call.sequences, call.outputs_info, call.non_sequences)
    if _is_one(call.n_steps):
        return _single_step(call, arguments)
    length, series = level(arguments.sequences, call)
    old = trace_old_step(call.fn, arguments, strict=call.strict)
    truncate = None if call.truncate_gradient == -1 else call.truncate_gradient
    settings = {"strict": call.strict, **call.op_settings}
    options = Options(False, truncate, call.name, settings)
    # The loop sees one leaf for each tap, all of equal length, in the order of iteration.
    step = dataclasses.replace(old.step, rows=_one_by_one(old.step.rows))
    return _read(old, lower(step, series, length, options), arguments)


def op_settings(mode: Any, profile: Any, allow_gc: bool | None) -> dict[str, Any]:
    """Return the settings of the Op, and warn about those on their way out."""
    if mode is not None:
        msg = (
            "the `mode` argument is honoured for now, but the step is compiled with the mode of "
            "the function around it: drop it"
        )
        warnings.warn(msg, FutureWarning, stacklevel=3)
    return {
        "mode": mode,
        "profile": profile,
        "allow_gc": config.scan__allow_gc if allow_gc is None else allow_gc,
    }


def _is_one(n_steps: Any) -> bool:
    if isinstance(n_steps, int | float):
        return n_steps == 1
    if n_steps is None:
        return False
    try:
        return bool(pt.get_scalar_constant_value(n_steps) == 1)
    except NotScalarConstantError:
        return False


def level(sequences: Sequence[OldSequence], call: OldCall) -> tuple[Length, list[Series]]:
    """Return the number of steps, and what each tap of each sequence reads in that many."""
    reads = [
        (f"sequences[{i}]", _in_order(leaf.rows_at(tap), call.go_backwards))
        for i, leaf in enumerate(sequences)
        for tap in leaf.taps
    ]
    if call.n_steps is not None:
        return _as_long_as(reads, settle_length([], as_count(call.n_steps)))
    if not reads:
        msg = "scan needs n_steps when there are no sequences to tell how many steps to take"
        raise ValueError(msg)
    return _as_long_as_the_shortest(reads)


def _in_order(rows: Any, backwards: bool) -> Any:
    return rows[::-1] if backwards else rows


def _as_long_as_the_shortest(
    reads: Sequence[tuple[str, Any]],
) -> tuple[Length, list[Series]]:
    """Cut all to the shortest, as the old `scan` did and said."""
    known = {rows.type.shape[0] for _, rows in reads}
    static = None if None in known else min(known)
    if static is not None:
        n_steps = pt.constant(np.asarray(static, dtype="int64"))
    else:
        n_steps = reduce(pt.minimum, [rows.shape[0] for _, rows in reads])
    # Cut even where there is nothing to cut: the gradient of an integer sequence is zero by it.
    series = [Series(path, rows[:n_steps], None) for path, rows in reads]
    return Length(n_steps, static), series


def _as_long_as(reads: Sequence[tuple[str, Any]], length: Length) -> tuple[Length, list[Series]]:
    """Cut all to `length`, and see to it that none is shorter."""
    return length, [Series(path, _first(path, rows, length), None) for path, rows in reads]


def _first(path: str, rows: Any, length: Length) -> Any:
    """Return the first rows, with a check that there are so many.

    The check is on the rows, not on the number of steps: PyTensor may compute with all rows at
    once, without a loop.
    """
    cut, known = rows[: length.n_steps], rows.type.shape[0]
    if known is not None and length.static is not None:
        if known < length.static:
            msg = (
                f"n_steps is {length.static}, but {path} has rows for {known} steps: "
                "ask for fewer steps or pass more rows"
            )
            raise ValueError(msg)
        return cut
    check = AgreeingLengths(
        labels=("n_steps", path),
        opening="n_steps is more than a sequence has rows for",
        closing="Ask for fewer steps or pass more rows",
    )
    return check(cut, length.n_steps, cut.shape[0])


def _one_by_one(rows: Sequence[Mapping[int, Variable]]) -> tuple[dict[int, Variable], ...]:
    return tuple({0: inner} for leaf in rows for inner in leaf.values())


def _read(old: OldStep, results: Results, arguments: OldArguments) -> Built:
    ys, final = iter(results.ys), iter(results.final)
    outputs: list[Variable] = []
    last: list[Variable] = []
    for output in old.outputs:
        rows: Any = next(ys) if output.state is None or output.state.traced else None
        end: Any = rows[-1] if output.state is None else next(final)
        outputs.append(end if rows is None else rows)
        last.append(end[-1] if output.has_taps else end)
    updates = dict(zip(old.shared, final, strict=True))
    arguments = dataclasses.replace(arguments, outputs=old.outputs)
    return Built(outputs, last, updates, arguments, old.returned)


def _single_step(call: OldCall, arguments: OldArguments) -> Built:
    """Run ``fn`` on the first rows themselves: one step needs no loop."""
    rows = [
        leaf.rows_at(tap)[-1] if call.go_backwards else leaf.values[tap + leaf.origin]
        for leaf in arguments.sequences
        for tap in leaf.taps
    ]
    past = flat(map(_last_rows, arguments.states))
    returned = read_returned(call.fn(*rows, *past, *arguments.non_sequences))
    infos = match_outputs(arguments.outputs, returned)
    values: tuple[Any, ...] = returned.outputs
    outputs = [value[None] if isinstance(value.type, TensorType) else value for value in values]
    arguments = dataclasses.replace(arguments, outputs=infos)
    last = list(returned.outputs)
    return Built(outputs, last, returned.updates, arguments, returned, one_step=True)


def _last_rows(state: State) -> list[Any]:
    """Return what the first step reads of a value that is fed back."""
    initial: Any = state.initial
    if state.offsets is None:
        return [initial]
    return [initial[tap + state.depth] for tap in state.offsets]
