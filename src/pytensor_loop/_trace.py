"""Run the step on placeholders, until the types of the carry settle."""

import dataclasses
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from pytensor.graph.basic import Variable
from pytensor.tensor.type import DenseTensorType

from pytensor_loop._check import Update, fit_dtype, fit_shapes, read_updates, settle_types
from pytensor_loop._closure import close_over, mark_now
from pytensor_loop._errors import type_in_short, value_in_short
from pytensor_loop._inputs import RETURNED, Inputs, Series, State, as_variable, row_type
from pytensor_loop._taps import CarryTaps, PushedTap, Taps, XsTaps
from pytensor_loop._tree import Tree


@dataclasses.dataclass(frozen=True)
class Step:
    """One step: what it reads, by offset, and what it makes of it."""

    states: tuple[State, ...]
    """The leaves of the carry, with settled types."""
    past: tuple[dict[int, Variable], ...]
    """For each leaf of the carry, its placeholders by offset; a plain leaf is read at -1."""
    rows: tuple[dict[int, Variable], ...]
    """For each leaf of ``xs``, its placeholders by offset; a plain leaf is read at 0."""
    updates: tuple[Variable, ...]
    """For each leaf of the carry, its value after the step."""
    y: Tree
    """What the step returned for stacking: its leaves are `ys`."""
    ys: tuple["Row", ...]
    stop: Variable | None
    """The stop condition, if the step has one."""
    captured: tuple[Variable, ...]
    """Outer variables that the step uses."""
    captured_placeholders: tuple[Variable, ...]


@dataclasses.dataclass(frozen=True)
class Row:
    """One leaf of ``y``."""

    value: Variable
    """What is stacked, in terms of the placeholders."""
    state: int | None = None
    """Which leaf of the carry it is the new value of, if it is one: its trace holds these rows."""


def trace_step(step_fn: Callable[..., Any], inputs: Inputs) -> Step:
    """Run `step_fn` on one placeholder for each leaf.

    It runs once more each time that the types of the carry have to change: a Python number takes
    the dtype that the step settles on, and static shapes meet.

    Raises
    ------
    TypeError
        If the step returns something else than a step returns: the message says what and where.
    """
    while True:
        given = _make_placeholders(inputs)
        returned = _read_returned(step_fn(given.carry(inputs), given.x(inputs)))
        updates = read_updates(inputs, given.views, returned.new_carry)
        settled = settle_types(inputs.states, updates)
        if all(map(operator.is_, settled, inputs.states)):
            return _close(inputs, given, returned, updates)
        inputs = dataclasses.replace(inputs, states=settled)


@dataclasses.dataclass(frozen=True)
class _Given:
    """What the step is given: placeholders, and the mark before which they were not made."""

    past: tuple[dict[int, Variable], ...]
    rows: tuple[dict[int, Variable], ...]
    views: tuple[Any, ...]
    x_views: tuple[Any, ...]
    mark: int

    def carry(self, inputs: Inputs) -> Any:
        return inputs.init.build(self.views)

    def x(self, inputs: Inputs) -> Any:
        return inputs.xs.build(self.x_views)

    @property
    def placeholders(self) -> list[Variable]:
        return [value for leaf in (*self.past, *self.rows) for value in leaf.values()]


@dataclasses.dataclass(frozen=True)
class _Returned:
    """What the step returned, by name."""

    new_carry: Any
    y: Any
    stop: Variable | None


def _make_placeholders(inputs: Inputs) -> _Given:
    mark = mark_now()
    past = tuple(map(_past_placeholders, inputs.states))
    rows = tuple(map(_row_placeholders, inputs.series))
    return _Given(
        past,
        rows,
        views=tuple(map(_carry_view, inputs.states, past)),
        x_views=tuple(map(_x_view, inputs.series, rows)),
        mark=mark,
    )


def _past_placeholders(state: State) -> dict[int, Variable]:
    if state.offsets is None:
        return {-1: state.step_type(name=state.place)}
    return {tap: state.step_type(name=f"{state.place}.tap({tap})") for tap in state.offsets}


def _row_placeholders(leaf: Series) -> dict[int, Variable]:
    type_ = row_type(leaf.values.type)
    if leaf.offsets is None:
        return {0: type_(name=leaf.path)}
    return {tap: type_(name=f"{leaf.path}.tap({tap})") for tap in leaf.offsets}


def _carry_view(state: State, values: dict[int, Variable]) -> Any:
    return values[-1] if state.offsets is None else CarryTaps(state.path, values)


def _x_view(leaf: Series, values: dict[int, Variable]) -> Any:
    return values[0] if leaf.offsets is None else XsTaps(leaf.path, values)


def _read_returned(returned: Any) -> _Returned:
    if type(returned) is not tuple or len(returned) not in (2, 3):
        if type(returned) is tuple:
            what = f"a tuple of {len(returned)}"
        else:
            what = "None" if returned is None else value_in_short(returned)
        msg = (
            "step_fn must return `(new_carry, y)` or `(new_carry, y, break_cond)`, "
            f"but it returned {what}. Return `new_carry, None` when there is nothing to stack"
        )
        raise TypeError(msg)
    new_carry, y, *conditions = returned
    return _Returned(new_carry, y, _read_condition(conditions[0]) if conditions else None)


def _read_condition(condition: Any) -> Variable:
    # A Python bool or NumPy's is a condition too, though a constant one.
    variable = as_variable(condition, "break_cond", RETURNED)
    type_ = variable.type
    if not isinstance(type_, DenseTensorType) or type_.ndim or type_.dtype != "bool":
        fix = (
            "`.any()` or `.all()` make one of many"
            if getattr(type_, "ndim", 0)
            else ("compare, `x > 0`")
        )
        msg = (
            "break_cond, the third value that step_fn returns, must be a bool scalar, "
            f"not {type_in_short(type_)}: {fix}"
        )
        raise TypeError(msg)
    return variable


def _close(inputs: Inputs, given: _Given, returned: _Returned, updates: Sequence[Update]) -> Step:
    """Put the parts of a step whose types have settled together, closed over what it captured."""
    y = Tree.of(returned.y)
    y_values = _read_y(y)
    cast = [fit_dtype(update, state) for update, state in zip(updates, inputs.states, strict=True)]
    stops = [] if returned.stop is None else [returned.stop]
    closed = close_over([*cast, *y_values, *stops], given.placeholders, given.mark)
    outputs = iter(fit_shapes(closed.outputs, inputs.states))
    new_values = tuple(itertools.islice(outputs, len(cast)))
    traced_by = _traced_by(inputs.states, updates)
    rows = [Row(next(outputs), traced_by.get(value)) for value in y_values]
    return Step(
        states=inputs.states,
        past=given.past,
        rows=given.rows,
        updates=new_values,
        y=y,
        ys=tuple(rows),
        stop=next(outputs, None),
        captured=closed.captured,
        captured_placeholders=closed.placeholders,
    )


def _traced_by(states: Sequence[State], updates: Sequence[Update]) -> dict[Variable, int]:
    """Map every new value of the carry that the loop traces anyway to its leaf.

    Old values are not looked for, although a trace holds them too: PyMC takes any slice of a trace
    for the new values, and its log-probability of a slice of old ones would be wrong.
    """
    return {
        update.value: index
        for index, (state, update) in reversed(list(enumerate(zip(states, updates, strict=True))))
        if state.traced and update.value.type.dtype == state.step_type.dtype
    }


def _read_y(y: Tree) -> list[Variable]:
    values = []
    for leaf, path in zip(y.leaves, y.paths("y"), strict=True):
        if isinstance(leaf, CarryTaps | XsTaps | PushedTap | Taps):
            msg = f"{path} is {leaf!r}: return the value itself to stack it, x and not push_tap(x)"
            raise TypeError(msg)
        value = as_variable(leaf, path, RETURNED)
        if not isinstance(value.type, DenseTensorType):
            msg = (
                f"{path} is {value_in_short(value)}, which cannot be stacked into rows. "
                "Carry it instead: return it in the new carry, and its last value is in `final`"
            )
            raise TypeError(msg)
        values.append(value)
    return values
