"""Small things that several tests need."""

from typing import Any

import numpy as np
import pytensor

from pytensor_loop import Taps
from pytensor_loop._tree import Tree, map_tree


def evaluate(tree: Any, mode: Any, givens: dict[Any, Any] | None = None) -> Any:
    """Return the values of a tree of variables, computed by one function.

    `givens` maps symbolic inputs to their values; taps leaves are replaced by their rows.
    """
    inputs = givens or {}
    taken = Tree.of(map_tree(lambda leaf: leaf.values if isinstance(leaf, Taps) else leaf, tree))
    function = pytensor.function(
        list(inputs), list(taken.leaves), mode=mode, on_unused_input="ignore"
    )
    return taken.build(function(*inputs.values()))


def assert_trees_equal(got: Any, expected: Any, rtol: float = 1e-10) -> None:
    """Assert that two trees have one structure and equal leaves, dtypes and shapes included."""
    expected = Tree.of(
        map_tree(lambda leaf: leaf.values if isinstance(leaf, Taps) else leaf, expected)
    )
    for path, a, b in zip(
        expected.paths("result"), expected.align(got), expected.leaves, strict=True
    ):
        if isinstance(b, np.random.Generator):
            assert a.bit_generator.state == b.bit_generator.state, path
        else:
            assert (np.asarray(a).dtype, np.shape(a)) == (np.asarray(b).dtype, np.shape(b)), path
            np.testing.assert_allclose(a, b, rtol=rtol, err_msg=path)


def found_lengths(mode: str, first: tuple[str, int], second: tuple[str, int]) -> str:
    """How a message tells two lengths; compiled by Numba it cannot tell how long they are."""
    (a, length_a), (b, length_b) = first, second
    return f"{a} and {b} differ" if mode == "NUMBA" else f"{a} {length_a}, {b} {length_b}"
