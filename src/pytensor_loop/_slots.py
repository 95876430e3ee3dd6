"""Named groups of leaves, and the flat order in which the `Scan` Op wants them.

The only module that knows that order and slices flat lists.
"""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from pytensor.graph.basic import Variable
from pytensor.scan.op import ScanInfo


@dataclasses.dataclass(frozen=True)
class Loop:
    """One loop by names: for each group, what stands inside the step and what stands outside."""

    n_steps: Variable
    sequences: tuple["Slot", ...]
    """Read one row a step."""
    recurrent: tuple["Recurrent", ...]
    """Tensors of the carry: read at their offsets, and traced."""
    untraced: tuple["Slot", ...]
    """What is carried without a trace; the update is what the step makes of it."""
    stacked: tuple[Variable, ...]
    """What is stacked and is no value of the carry."""
    captured: tuple["Slot", ...]
    """Read unchanged by every step."""
    stop: Variable | None


@dataclasses.dataclass(frozen=True)
class Slot:
    """An outer variable, its placeholder in the step and, if it is carried, its update."""

    outer: Variable
    inner: Variable
    update: Variable | None = None


@dataclasses.dataclass(frozen=True)
class Recurrent:
    """A tensor of the carry: its buffer, and its placeholders by offset."""

    buffer: Variable
    inner: dict[int, Variable]
    update: Variable

    @property
    def offsets(self) -> tuple[int, ...]:
        """The offsets in ascending order, as the gradient of the Op expects them."""
        return tuple(sorted(self.inner))

    @property
    def single(self) -> bool:
        """Whether only the last value is read, which the Op treats apart."""
        return self.offsets == (-1,)


@dataclasses.dataclass(frozen=True)
class Traces:
    """What the loop returned, in the order of the groups of `Loop`."""

    recurrent: tuple[Any, ...]
    stacked: tuple[Any, ...]
    untraced: tuple[Any, ...]


def info_of(loop: Loop) -> ScanInfo:
    """Return the Op's description of its flat lists."""
    several, single = _by_depth(loop.recurrent)
    return ScanInfo(
        n_seqs=len(loop.sequences),
        mit_mot_in_slices=(),
        mit_mot_out_slices=(),
        mit_sot_in_slices=tuple(leaf.offsets for leaf in several),
        sit_sot_in_slices=tuple((-1,) for _ in single),
        n_nit_sot=len(loop.stacked),
        n_untraced_sit_sot=len(loop.untraced),
        n_non_seqs=len(loop.captured),
        as_while=loop.stop is not None,
    )


def inner_inputs(loop: Loop) -> list[Variable]:
    """Return the placeholders in the Op's order."""
    several, single = _by_depth(loop.recurrent)
    return [
        *(slot.inner for slot in loop.sequences),
        *(leaf.inner[offset] for leaf in (*several, *single) for offset in leaf.offsets),
        *(slot.inner for slot in loop.untraced),
        *(slot.inner for slot in loop.captured),
    ]


def inner_outputs(loop: Loop) -> list[Variable]:
    """Return what one step computes in the Op's order."""
    several, single = _by_depth(loop.recurrent)
    untraced = (slot.update for slot in loop.untraced if slot.update is not None)
    return [
        *(leaf.update for leaf in (*several, *single)),
        *loop.stacked,
        *untraced,
        *([] if loop.stop is None else [loop.stop]),
    ]


def outer_inputs(loop: Loop) -> list[Variable]:
    """Return what the loop reads in the Op's order."""
    several, single = _by_depth(loop.recurrent)
    return [
        loop.n_steps,
        *(slot.outer for slot in loop.sequences),
        *(leaf.buffer for leaf in (*several, *single)),
        *(slot.outer for slot in loop.untraced),
        *(loop.n_steps for _ in loop.stacked),
        *(slot.outer for slot in loop.captured),
    ]


def read_outputs(loop: Loop, outputs: Sequence[Variable]) -> Traces:
    """Return what the Op returned, group by group, in the order of `loop`."""
    remaining = iter(outputs)
    several, single = _by_depth(loop.recurrent)
    trace_of = {id(leaf): next(remaining) for leaf in (*several, *single)}
    return Traces(
        recurrent=tuple(trace_of[id(leaf)] for leaf in loop.recurrent),
        stacked=tuple(next(remaining) for _ in loop.stacked),
        untraced=tuple(remaining),
    )


def _by_depth(recurrent: Iterable[Recurrent]) -> tuple[list[Recurrent], list[Recurrent]]:
    """Return the leaves read at several or deep offsets, and those read at the last one."""
    leaves = list(recurrent)
    return [leaf for leaf in leaves if not leaf.single], [leaf for leaf in leaves if leaf.single]
