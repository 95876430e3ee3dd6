"""Loops over JAX arrays: what is carried from step to step, and the two ways to run the steps.

What a step reads of the past is a *window*: the last few rows of a value, the oldest first. Rows
that are asked for afterwards are read from the last window if they are few, and stacked as the
steps go if they are many.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp


# Shifting a tuple copies nothing, but each of its rows is a variable of the compiled loop.
MOST_ROWS_IN_TUPLE = 8

type Window = Any  # a tuple of rows, or one array of them


class Carry(NamedTuple):
    """What goes from one step to the next."""

    moving: Sequence[Window]
    """Rows of buffers along which the steps move, writing to several rows of them."""
    recurrent: Sequence[Window]
    """The last rows of each value that the steps read again."""
    untraced: Sequence[Any]
    """Values of any type, of which only the last is asked for."""
    stacked: Sequence[Window]
    """The last rows of each value that no step reads."""


class Made(NamedTuple):
    """What one step makes: windows as it leaves them, otherwise one row of each."""

    moving: Sequence[Window]
    recurrent: Sequence[Any]
    untraced: Sequence[Any]
    stacked: Sequence[Any]
    stop: Any


type Step = Callable[[Carry, Sequence[Any]], Made]


@dataclasses.dataclass(frozen=True)
class Asked:
    """What is asked for of one value: its last `count` rows, of those before the first step too."""

    count: int
    before: Any

    def window(self, n_steps: int | None) -> Window:
        """Return the rows to carry into the first step; `n_steps` is None if it is not known."""
        depth = len(self.before)
        if not self._stacks(n_steps):
            depth = max(depth, self.count)
        padding = jnp.zeros((depth - len(self.before), *self.before.shape[1:]), self.before.dtype)
        rows = joined(padding, self.before)
        return tuple(rows) if depth <= MOST_ROWS_IN_TUPLE else rows

    def read(self, n_steps: int, window: Window, stacked: Any) -> Any:
        """Return the rows asked for, from the last window or from all that `n_steps` steps made."""
        if not self._stacks(n_steps):
            return jnp.stack(window) if isinstance(window, tuple) else window
        rows = joined(self.before, stacked)
        missing = jnp.zeros((max(self.count - len(rows), 0), *rows.shape[1:]), rows.dtype)
        return joined(rows, missing)[max(len(rows) - self.count, 0) :]

    def read_open(self, n_steps: Any, window: Window) -> Any:
        """Return the rows asked for after `n_steps` steps, which are known only when it runs."""
        rows = jnp.stack(window) if isinstance(window, tuple) else window
        if self.count <= len(self.before) + 1:
            return rows
        missing = jnp.maximum(self.count - len(self.before) - n_steps, 0)
        return jnp.roll(rows, -missing, axis=0)

    def _stacks(self, n_steps: int | None) -> bool:
        if n_steps is None:
            return False
        before = len(self.before)
        return self.count >= before + n_steps or self.count > max(before, MOST_ROWS_IN_TUPLE)


def run_counted(
    step: Step, carry: Carry, sequences: Sequence[Any], entering: Sequence[Any], n_steps: int
) -> tuple[Carry, Made]:
    """Take `n_steps` steps; return the last carry, and the rows that the steps made, stacked.

    A window on a moving buffer is whole during a step only: the next row comes from `entering`,
    and the row that the step is the last to touch is stacked.
    """

    def body(carry: Carry, rows: Any) -> tuple[Carry, Made]:
        sequence_rows, new_rows = rows
        windows = [(*window, row) for window, row in zip(carry.moving, new_rows, strict=True)]
        made = step(carry._replace(moving=windows), sequence_rows)
        leaving = [window[0] for window in made.moving]
        made = made._replace(moving=[window[1:] for window in made.moving])
        return _advance(carry, made), made._replace(moving=leaving, untraced=(), stop=())

    return jax.lax.scan(body, carry, (sequences, entering), length=n_steps)


def run_open(step: Step, carry: Carry, sequences: Sequence[Any], n_steps: Any) -> tuple[Carry, Any]:
    """Take steps until one says stop, at most `n_steps`; return the last carry and the count."""

    def going(state: Any) -> Any:
        t, stop, _ = state
        return (t < n_steps) & ~stop

    def body(state: Any) -> Any:
        t, _, carry = state
        rows = [jax.lax.dynamic_index_in_dim(x, t, keepdims=False) for x in sequences]
        made = step(carry, rows)
        return t + 1, jnp.asarray(made.stop, bool), _advance(carry, made)

    start = (jnp.zeros((), int), jnp.zeros((), bool), carry)
    t, _, carry = jax.lax.while_loop(going, body, start)
    return carry, t


def joined(*parts: Any) -> Any:
    """Return the rows of all parts: XLA cannot compile some slices of a join with an empty part."""
    filled = [part for part in parts if len(part)]
    return jnp.concatenate(filled) if len(filled) > 1 else (filled or parts)[0]


def _push(window: Window, row: Any) -> Window:
    if isinstance(window, tuple):
        return (*window, row)[1:] if window else window
    return jnp.concatenate([window[1:], row[None]])


def _advance(carry: Carry, made: Made) -> Carry:
    return Carry(
        moving=made.moving,
        recurrent=list(map(_push, carry.recurrent, made.recurrent)),
        untraced=made.untraced,
        stacked=list(map(_push, carry.stacked, made.stacked)),
    )
