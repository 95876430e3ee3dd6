"""What the old `scan` was called with: a frozen record of each entry, with the old defaults."""

import dataclasses
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor.random.type import RandomType
from pytensor.tensor.shape import specify_shape
from pytensor.tensor.type import TensorType

from pytensor_loop._agree import AgreeingLengths
from pytensor_loop._inputs import State, as_variable, is_python_number


@dataclasses.dataclass(frozen=True)
class OldSequence:
    """One entry of ``sequences``."""

    values: Any
    taps: tuple[int, ...]
    """In the order in which they were listed, which is the order of the arguments of ``fn``."""

    @property
    def origin(self) -> int:
        """The row that tap 0 reads in the first step: negative taps move it on."""
        return -min(*self.taps, 0)

    @property
    def surplus(self) -> int:
        """How many more rows there are than steps."""
        return max(*self.taps, 0) + self.origin

    def rows_at(self, tap: int) -> Any:
        """Return the rows that the steps read at one tap, from the first of time to the last."""
        start = tap + self.origin
        return self.values[start : (start - self.surplus) or None]

    def name_at(self, tap: int) -> str | None:
        """Return the name that the old `scan` gave to the argument of ``fn``."""
        return _name_at(self.values, tap)


@dataclasses.dataclass(frozen=True)
class OldState(State):
    """What is fed back: the place in the old call is the place in ``init``."""

    @property
    def init_path(self) -> str:
        """Where it sits in what the user passed."""
        return self.path


@dataclasses.dataclass(frozen=True)
class OldOutput:
    """One entry of ``outputs_info``."""

    initial: Any = None
    """As it was passed; None for an output that is not fed back."""
    state: State | None = None
    """How the loop carries it; None for an output that is not fed back."""

    @property
    def has_taps(self) -> bool:
        """Whether its initial value has an axis for its past."""
        return self.state is not None and self.state.offsets is not None

    @property
    def taps(self) -> tuple[int, ...]:
        """The taps in the order in which they were listed; none if it is not fed back."""
        if self.state is None:
            return ()
        return (-1,) if self.state.offsets is None else self.state.offsets

    def name_at(self, tap: int) -> str | None:
        """Return the name that the old `scan` gave to the argument of ``fn``."""
        return _name_at(self.initial, tap)


@dataclasses.dataclass(frozen=True)
class OldArguments:
    """All that ``fn`` is given."""

    sequences: tuple[OldSequence, ...]
    outputs: tuple[OldOutput, ...]
    non_sequences: tuple[Variable, ...]

    @property
    def states(self) -> tuple[State, ...]:
        """What is fed back, in order."""
        return tuple(output.state for output in self.outputs if output.state is not None)


def read_arguments(sequences: Any, outputs_info: Any, non_sequences: Any) -> OldArguments:
    """Read the old arguments; the caller's own lists and dicts are left as they are."""
    return OldArguments(
        sequences=tuple(map(_read_sequence, as_list(sequences))),
        outputs=tuple(_read_output(i, entry) for i, entry in enumerate(as_list(outputs_info))),
        non_sequences=tuple(map(_as_argument, as_list(non_sequences))),
    )


def as_list(entries: Any) -> list[Any]:
    """Return a list of entries: none for None, one for what is neither a list nor a tuple."""
    if entries is None:
        return []
    return list(entries) if isinstance(entries, list | tuple) else [entries]


def _as_argument(value: Any) -> Any:
    return value if isinstance(value, Variable) else pt.as_tensor_variable(value)


def _read_sequence(entry: Any) -> OldSequence:
    entry = entry if isinstance(entry, dict) else {"input": entry}
    taps = entry.get("taps")
    return OldSequence(
        values=pt.as_tensor_variable(entry["input"]),
        taps=(0,) if taps is None else tuple(map(int, as_list(taps))),
    )


def _read_output(position: int, entry: Any) -> OldOutput:
    if entry is None:
        return OldOutput()
    if not isinstance(entry, dict):
        return _plain_output(position, entry)
    place = f"outputs_info[{position}]"
    unknown = sorted(set(entry) - {"initial", "taps", "inplace"})
    if unknown:
        msg = f"{place} has keys that mean nothing: {unknown}. It takes 'initial' and 'taps'"
        raise ValueError(msg)
    initial, taps = entry.get("initial"), entry.get("taps")
    if initial is None:
        if taps is not None:
            msg = f"{place} has taps, so it needs the values before the first step: 'initial'"
            raise ValueError(msg)
        return OldOutput()
    # A list of -1 alone means a value without an axis for its past; a tuple never did.
    if taps is None or taps == [-1]:
        if taps is None and "taps" in entry:
            msg = f"{place} has an initial value, so its taps are [-1] although they were None"
            warnings.warn(msg, UserWarning, stacklevel=6)
        return _plain_output(position, initial)
    return _tapped_output(position, initial, tuple(map(int, as_list(taps))))


def _plain_output(position: int, initial: Any) -> OldOutput:
    place = f"outputs_info[{position}]"
    variable = as_variable(initial, place)
    if not isinstance(variable.type, TensorType | RandomType):
        msg = (
            f"{place} is of type {variable.type}, whose past cannot be stacked: "
            "only its last value is returned"
        )
        warnings.warn(msg, UserWarning, stacklevel=7)
    name = _name_at(initial, -1) or place
    return OldOutput(initial, OldState(place, name, variable, None, is_python_number(initial)))


def _tapped_output(position: int, initial: Any, taps: tuple[int, ...]) -> OldOutput:
    place = f"outputs_info[{position}]"
    if len(set(taps)) < len(taps):
        msg = f"{place} has taps={list(taps)}: list each tap once"
        raise ValueError(msg)
    if max(taps) >= 0:
        msg = f"{place} has taps={list(taps)}: an output is fed back, so its taps are negative"
        raise ValueError(msg)
    rows = _first_rows(as_variable(initial, place), -min(taps), place)
    return OldOutput(initial, OldState(place, place, rows, taps, weak=False))


def _first_rows(rows: Any, depth: int, place: str) -> Any:
    """Return the rows before the first step: further ones never counted, too few are an error."""
    known = rows.type.shape[0]
    if known == depth:
        return rows
    if known is not None and known > depth:
        return rows[:depth]
    check = AgreeingLengths(
        labels=("rows of 'initial'", "steps that the taps look back"),
        opening=f"{place} has fewer initial rows than its taps look back",
        closing="Pass one row for each step that they look back, the oldest first",
    )
    if known is not None:
        check.check([known, depth])
    first = rows[:depth]
    checked: Any = check(first, first.shape[0], depth)
    return specify_shape(checked, (depth, *rows.type.shape[1:]))


def _name_at(value: Any, tap: int) -> str | None:
    name = getattr(value, "name", None)
    return name and f"{name}[t{'' if tap == 0 else f'{tap:+}'}]"


def flat(lists: Iterable[Sequence[Any]]) -> list[Any]:
    """Return the entries of all lists in one."""
    return [entry for entries in lists for entry in entries]


def as_count(n_steps: Any) -> Any:
    """Return ``n_steps`` as the new `scan` reads it: whole floats were counts too."""
    if isinstance(n_steps, float) and n_steps.is_integer():
        return int(n_steps)
    if isinstance(n_steps, np.ndarray) and n_steps.size == 1:
        return n_steps.reshape(())
    return n_steps
