"""What a loop to measure is."""

from collections.abc import Callable
from dataclasses import dataclass, field

import jax
import numba


jax.config.update("jax_enable_x64", True)
jit = numba.njit(fastmath=True, error_model="numpy")


@dataclass(frozen=True)
class Problem:
    """One loop, written for PyTensor, for ``jax.lax.scan`` and by hand for Numba.

    Parameters
    ----------
    name
        Its name in tables.
    n_steps
        How many steps the tables measure.
    values
        Returns the arguments of every implementation for a number of steps, as NumPy arrays. A
        loop whose length is written in it ignores the number.
    variants
        Some of ``trace`` (every row), ``final`` (the last state) and ``grad`` (of a number that
        the loop computes): those that make sense.
    graph
        ``graph(loop, variant)`` returns symbolic inputs and outputs; ``loop`` is that of
        one of the `idioms`.
    by_jax, by_hand
        A function of ``values`` for each variant that there is.
    random
        Whether the results are draws, which implementations need not share.
    """

    name: str
    n_steps: int
    values: Callable
    variants: tuple
    graph: Callable
    by_jax: dict = field(default_factory=dict)
    by_hand: dict = field(default_factory=dict)
    random: bool = False
