"""What the user passed to `scan`: a record for each leaf of ``init`` and of ``xs``."""

import dataclasses
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.configdefaults import config
from pytensor.graph.basic import Variable
from pytensor.graph.type import Type
from pytensor.scalar.basic import ScalarType
from pytensor.tensor.random.type import RandomType
from pytensor.tensor.type import DenseTensorType, TensorType

from pytensor_loop._agree import AgreeingLengths
from pytensor_loop._errors import value_in_short
from pytensor_loop._taps import CarryTaps, PushedTap, Taps, XsTaps
from pytensor_loop._tree import Tree


@dataclasses.dataclass(frozen=True)
class State:
    """One leaf of the carry."""

    path: str
    """Where it sits, for errors and names: ``carry['level']``, in the step's own word for carry."""
    place: str
    """The same in the word of this library, for the placeholder."""
    initial: Variable
    """The value before the first step; with taps, the rows before it, the oldest first."""
    offsets: tuple[int, ...] | None
    """The taps in the order in which they were listed; None for a plain leaf."""
    weak: bool
    """Whether it was given as Python numbers, so that the step decides its dtype."""

    @property
    def init_path(self) -> str:
        """Where it sits in what the user passed: ``init['level']``."""
        return f"init{self.place.removeprefix('carry')}"

    @property
    def traced(self) -> bool:
        """Whether it is a tensor, whose past can be stacked."""
        return isinstance(self.initial.type, DenseTensorType)

    @property
    def step_type(self) -> Type:
        """The type that one step sees and returns."""
        if self.offsets is None:
            return self.initial.type
        return row_type(self.initial.type)

    @property
    def depth(self) -> int:
        """How many past values the buffer keeps before the first step."""
        return 1 if self.offsets is None else -min(self.offsets)

    def settled_as(self, dtype: str, shape: tuple[int | None, ...]) -> "State":
        """Return this leaf with the dtype and static shape of a row that the step settled on."""
        initial = self.initial.astype(dtype) if dtype != self.initial.type.dtype else self.initial
        full = shape if self.offsets is None else (self.depth, *shape)
        return dataclasses.replace(self, initial=pt.specify_shape(initial, full))


@dataclasses.dataclass(frozen=True)
class Series:
    """One leaf of ``xs``."""

    path: str
    """Where it sits, for errors and names: ``xs['y'][0]``."""
    values: Variable
    """All rows; axis 0 is scanned."""
    offsets: tuple[int, ...] | None
    """The taps in the order in which they were listed; None for a plain leaf."""

    @property
    def lookahead(self) -> int:
        """How many rows past its own the last step reads."""
        return max(self.offsets or (0,))


@dataclasses.dataclass(frozen=True)
class Inputs:
    """The trees and leaves that were passed to `scan`."""

    init: Tree
    states: tuple[State, ...]
    xs: Tree
    series: tuple[Series, ...]
    carry_name: str
    """The step's own name of its first parameter, in which errors speak."""

    def rebuild_carry(self, values: Iterable[Variable]) -> Any:
        """Return a carry of these values, with taps in the places where `init` has them."""
        return self.init.build(
            value if state.offsets is None else Taps(value, state.offsets)
            for state, value in zip(self.states, values, strict=True)
        )


def read_inputs(step_fn: Callable[..., Any], init: Any, xs: Any) -> Inputs:
    """Read ``init`` and ``xs``: a record for each leaf, or an error that names the leaf."""
    if not callable(step_fn):
        msg = (
            f"step_fn must be a function of (carry, x), not {value_in_short(step_fn)}. "
            "The order of the arguments is scan(step_fn, init, xs, n_steps)"
        )
        raise TypeError(msg)
    carry_name = _first_parameter(step_fn)
    init_tree, xs_tree = Tree.of(init), Tree.of(xs)
    states = map(
        _read_state,
        init_tree.leaves,
        init_tree.paths("init"),
        init_tree.paths(carry_name),
        init_tree.paths("carry"),
    )
    series = map(_read_series, xs_tree.leaves, xs_tree.paths("xs"))
    return Inputs(init_tree, tuple(states), xs_tree, tuple(series), carry_name)


def row_type(type_: TensorType) -> TensorType:
    """Return the type of one row."""
    return TensorType(type_.dtype, shape=type_.shape[1:])


def is_python_number(leaf: Any) -> bool:
    """Whether `leaf` is a Python number, which is weak: NumPy's scalars are not."""
    return type(leaf) in (bool, int, float, complex)


def weak_constant(leaf: Any) -> Variable:
    """Return Python numbers as a constant of the dtype that they start from, never int8."""
    array = np.asarray(leaf)
    return pt.constant(array.astype(weak_dtype(array.dtype)))


def weak_dtype(dtype: Any) -> str:
    """Return what Python numbers of this kind start from: bool, int64, floatX, complex128."""
    return {"b": "bool", "f": config.floatX, "c": "complex128"}.get(np.dtype(dtype).kind, "int64")


PASSED = (
    ". What does not change from step to step needs no place here: "
    "use it inside step_fn as it is (close over it)"
)
RETURNED = ""


def as_variable(leaf: Any, path: str, advice: str = PASSED) -> Variable:
    """Return a leaf as a variable.

    Raises
    ------
    TypeError
        If it is not a variable, an array or a number, with its path and what to do instead.
    """
    if isinstance(leaf, Variable):
        return pt.as_tensor(leaf) if isinstance(leaf.type, ScalarType) else leaf
    if is_python_number(leaf):
        return weak_constant(leaf)
    if isinstance(leaf, np.random.Generator):
        msg = (
            f"{path} is a NumPy generator: make it a variable of the graph, "
            "`pytensor.shared(generator)`"
        )
        raise TypeError(msg)
    array = None if callable(leaf) or isinstance(leaf, str | bytes) else np.asarray(leaf)
    if array is None or array.dtype.kind not in "biufc":
        msg = (
            f"{path} is {value_in_short(leaf)}: a leaf must be a symbolic variable, an array or "
            f"a number{advice}"
        )
        raise TypeError(msg)
    return pt.constant(array)


def _read_state(leaf: Any, init_path: str, path: str, place: str) -> State:
    if isinstance(leaf, CarryTaps | XsTaps | PushedTap):
        msg = (
            f"{init_path} is {leaf!r}, which lives inside one step: "
            "pass the rows before the first step, `taps(rows, taps=[-2, -1])`"
        )
        raise TypeError(msg)
    if not isinstance(leaf, Taps):
        return State(path, place, as_variable(leaf, init_path), None, is_python_number(leaf))
    if not leaf.depth:
        msg = (
            f"{init_path} has taps={list(leaf.taps)}, but what is carried can only be looked back "
            "at: its taps are negative, `taps(a, taps=[-2, -1])`"
        )
        raise ValueError(msg)
    weak = isinstance(leaf.values, list)
    rows = weak_constant(leaf.values) if weak else as_variable(leaf.values, init_path)
    if not isinstance(rows.type, DenseTensorType):
        msg = f"{init_path} has taps, so it must be an array with rows, not {value_in_short(rows)}"
        raise TypeError(msg)
    return State(path, place, _with_checked_rows(rows, leaf, init_path), leaf.taps, weak)


def _with_checked_rows(rows: Variable, leaf: Taps, path: str) -> Variable:
    """Return the rows before the first step with their number, checked when the function runs."""
    if rows.type.shape[0] is not None:
        return rows
    check = AgreeingLengths(
        labels=("rows", "steps that the taps look back"),
        opening=f"{path} has taps={list(leaf.taps)} but not the rows for them",
        closing="Pass one row for each step that the taps look back, the oldest first",
    )
    checked = check(rows, rows.shape[0], leaf.depth)
    return pt.specify_shape(checked, (leaf.depth, *rows.type.shape[1:]))


def _read_series(leaf: Any, path: str) -> Series:
    offsets = None
    if isinstance(leaf, Taps):
        leaf, offsets = leaf.values, leaf.taps
        if min(offsets) < 0:
            msg = (
                f"{path} has taps={list(offsets)}, but a leaf of xs takes taps of zero and more: "
                f"shift them all, `taps(x, taps={[tap - min(offsets) for tap in offsets]})`"
            )
            raise ValueError(msg)
    values = as_variable(leaf, path)
    if isinstance(values.type, RandomType):
        msg = f"{path} is {value_in_short(values)}, which has no rows to scan: carry it, in init"
        raise TypeError(msg)
    if not isinstance(values.type, DenseTensorType) or values.type.ndim == 0:
        what = value_in_short(leaf if is_python_number(leaf) else values)
        msg = (
            f"{path} must have rows to scan, one for each step, but it is {what}. "
            "Pass an array (a list is a tree of its elements: np.asarray(list)), "
            "or use it inside step_fn as it is (close over it)"
        )
        raise TypeError(msg)
    return Series(path, values, offsets)


def _first_parameter(step_fn: Callable[..., Any]) -> str:
    try:
        parameters = list(inspect.signature(step_fn).parameters.values())
    except (TypeError, ValueError):  # some callables written in C do not tell
        return "carry"
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [parameter.name for parameter in parameters if parameter.kind in positional]
    return names[0] if names else "carry"
