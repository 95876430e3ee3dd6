"""The new carry against the carry: what may be cast or met is, everything else is an error."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.replace import graph_replace
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.type import DenseTensorType, TensorType

from pytensor_loop._errors import (
    count,
    sentence_or_bullets,
    shape_in_short,
    type_in_short,
    value_in_short,
)
from pytensor_loop._inputs import (
    RETURNED,
    Inputs,
    State,
    as_variable,
    is_python_number,
    weak_dtype,
)
from pytensor_loop._taps import CarryTaps, PushedTap
from pytensor_loop._tree import structure_differences


@dataclasses.dataclass(frozen=True)
class Update:
    """What the step returned for one leaf of the carry."""

    value: Variable
    number: bool | int | float | complex | None
    """The Python number that it was returned as, if it was one: then its dtype is weak."""


def read_updates(inputs: Inputs, views: Sequence[Any], new_carry: Any) -> list[Update]:
    """Return the update of every leaf, once the new carry is built like the carry.

    Parameters
    ----------
    inputs : Inputs
        What went in.
    views : sequence
        What the step saw in the place of each leaf.
    new_carry : tree
        What the step returned.

    Raises
    ------
    TypeError
        For every place at which the structure differs, and for taps that were not pushed.
    """
    # Built anew: the step may have changed the dicts and lists that it was given.
    carry = inputs.init.build(views)
    differences = list(structure_differences(carry, new_carry, inputs.carry_name))
    if differences:
        opening = "step_fn must return a new carry that is built like the carry it was given"
        raise TypeError(sentence_or_bullets(opening, differences, _STRUCTURE_FIX))
    returned = inputs.init.align(new_carry)
    misplaced = [
        problem
        for state, view, leaf in zip(inputs.states, views, returned, strict=True)
        if (problem := _misplaced_taps(state, view, leaf))
    ]
    if misplaced:
        opening = "step_fn must push every leaf with taps once and return it in its own place"
        raise TypeError(sentence_or_bullets(opening, misplaced))
    return [_read_update(state, leaf) for state, leaf in zip(inputs.states, returned, strict=True)]


def settle_types(states: Sequence[State], updates: Sequence[Update]) -> tuple[State, ...]:
    """Return the leaves with the types that carry and update can both have.

    A weak leaf takes the dtype that both promote to; static shapes meet: what either side knows is
    kept. When nothing changes, the types have settled.

    Raises
    ------
    TypeError
        One sentence for every leaf whose update has another type.
    """
    problems = [
        problem
        for state, update in zip(states, updates, strict=True)
        if (problem := _type_problem(state, update))
    ]
    if problems:
        opening = "step_fn must return a new carry of the types of the carry"
        raise TypeError(sentence_or_bullets(opening, problems))
    return tuple(map(_settle, states, updates))


def fit_dtype(update: Update, state: State) -> Variable:
    """Return an update cast to the settled dtype."""
    value, target = update.value, state.step_type
    same = not isinstance(target, DenseTensorType) or value.type.dtype == target.dtype
    return value if same else value.astype(target.dtype)


def fit_shapes(outputs: Sequence[Variable], states: Sequence[State]) -> list[Variable]:
    """Return what a step computes, its updates with settled shapes: checked as the loop runs.

    Parameters
    ----------
    outputs
        An update for each leaf of the carry, and whatever else the step computes.
    states
        The leaves of the carry.
    """
    fitted = list(outputs)
    for k, state in enumerate(states):
        value, target = fitted[k], state.step_type
        if not isinstance(target, DenseTensorType) or target.is_super(value.type):
            continue
        made = _made_with_shape(value, target.shape)
        if made is None:
            fitted[k] = pt.specify_shape(value, target.shape)
        else:
            fitted = graph_replace(fitted, {value: made}, strict=False)
    return fitted


def _made_with_shape(value: Variable, shape: Sequence[int | None]) -> Variable | None:
    """Return an elementwise result that has a shape since what it is made of has; else None.

    Gradients then find the result as it is in the trace. Behind an assertion about its shape they
    do not recognize it, and compute the step again.
    """
    node = value.owner
    if node is None or not isinstance(node.op, Elemwise) or len(node.outputs) > 1:
        return None
    inputs = list(node.inputs)
    for k, v in enumerate(inputs):
        known = [1 if b else n for b, n in zip(v.type.broadcastable, shape, strict=True)]
        inputs[k] = pt.specify_shape(v, known)
        [made] = node.op.make_node(*inputs).outputs
        if made.type.shape == tuple(shape):
            return made
    return None


def _misplaced_taps(state: State, view: Any, leaf: Any) -> str | None:
    fix = f"return `{state.path}.push_tap(x)` there"
    if isinstance(view, CarryTaps):
        if leaf is view:
            return f"{state.path} has taps but was not pushed: {fix}"
        if isinstance(leaf, PushedTap):
            other = leaf.leaf
            return (
                None if other is view else f"{state.path} is in the place of {other._path}: {fix}"
            )
        got = leaf if isinstance(leaf, CarryTaps) else value_in_short(leaf)
        return f"{state.path} has taps but became {got}: {fix}"
    if isinstance(leaf, PushedTap | CarryTaps):
        return f"{state.path} has no taps but became {leaf!r}: return its new value there"
    return None


def _read_update(state: State, leaf: Any) -> Update:
    if isinstance(leaf, PushedTap):
        leaf = leaf.value
    number = leaf if is_python_number(leaf) else None
    return Update(as_variable(leaf, f"the new {state.path}", RETURNED), number)


def _type_problem(state: State, update: Update) -> str | None:
    """Return the sentence about one leaf, or None if its update has a type that fits."""
    was, now = state.step_type, update.value.type
    if not isinstance(was, DenseTensorType) or not isinstance(now, DenseTensorType):
        if was.is_super(now):
            return None
        fix = "return a value of the type that went in"
    elif was.ndim != now.ndim:
        fix = _ndim_fix(state, was, now)
    elif not (state.weak or _casts(update, was.dtype)):
        fix = _dtype_fix(state, update, was.dtype)
    elif _contradict(was.shape, now.shape):
        fix = f"keep the shape {shape_in_short(was.shape)} that went in"
    else:
        return None
    got = type_in_short(now) if update.number is None else f"the number {update.number!r}"
    return f"{state.path} goes in as {type_in_short(was)} but comes out as {got}: {fix}"


def _ndim_fix(state: State, was: TensorType, now: TensorType) -> str:
    if state.weak and was.ndim == 0:
        return f"start from an array with {count(now.ndim, 'dimension')}, such as np.zeros(shape)"
    return f"keep the {count(was.ndim, 'dimension')} that went in"


def _dtype_fix(state: State, update: Update, dtype: str) -> str:
    if update.number is not None:
        return f"return a value that {dtype} can hold"
    widened = _promoted(dtype, update.value.type.dtype)
    if widened == dtype:
        return f"cast the update, `x.astype({dtype!r})`"
    return (
        f"cast the update, `x.astype({dtype!r})`, "
        f"or start from {widened}, `{state.init_path}.astype({widened!r})`"
    )


def _casts(update: Update, dtype: str) -> bool:
    """Whether an update may be cast to the dtype of a strong leaf without loss."""
    if update.number is None:
        return np.can_cast(update.value.type.dtype, dtype, "safe")
    kinds = "biufc"
    number_kind = np.asarray(update.number).dtype.kind
    kind = np.dtype(dtype).kind
    if kind in "iu" and number_kind in "bi":
        info = np.iinfo(dtype)
        return bool(info.min <= int(update.number.real) <= info.max)
    return kinds.index(number_kind) <= kinds.index(kind)


def _contradict(was: Sequence[int | None], now: Sequence[int | None]) -> bool:
    return any(a is not None and b is not None and a != b for a, b in zip(was, now, strict=True))


def _settle(state: State, update: Update) -> State:
    was, now = state.step_type, update.value.type
    if not isinstance(was, DenseTensorType):
        return state
    shape = tuple(b if a is None else a for a, b in zip(was.shape, now.shape, strict=True))
    dtype = was.dtype
    if state.weak:
        # An update of int8 or float32 does not narrow what started from a Python number.
        dtype = _promoted(_promoted(was.dtype, now.dtype), weak_dtype(now.dtype))
    if (dtype, shape) == (was.dtype, was.shape):
        return state
    return state.settled_as(dtype, shape)


def _promoted(a: str, b: str) -> str:
    return np.promote_types(a, b).name


_STRUCTURE_FIX = "Return the same tuples, dicts and other containers, with a new value in each leaf"
