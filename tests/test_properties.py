"""Any tree, any taps, any length: `scan` agrees with the loop in plain Python."""

from typing import Any

import numpy as np
import pytensor.tensor as pt
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pytensor.compile.mode import get_mode

from pytensor_loop import CarryTaps, scan, taps
from pytensor_loop._tree import Tree, map_tree
from pytensor_loop.testing import scan_reference
from tests.helpers import assert_trees_equal, evaluate


DTYPES = ["float64", "float32", "int64", "int8", "bool", "complex128"]

shapes = st.lists(st.integers(1, 3), max_size=2).map(tuple)
offsets = st.lists(st.integers(-5, -1), min_size=1, max_size=3, unique=True)
lookaheads = st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True)


def array(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    values = np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape)
    return (values % 3).astype(dtype)


arrays = st.builds(array, shapes, st.sampled_from(DTYPES))
numbers = st.sampled_from([0, 1, 0.5, True])
tapped = st.builds(
    lambda listed, shape, dtype: taps(array((-min(listed), *shape), dtype), listed),
    offsets,
    shapes,
    st.sampled_from(DTYPES),
)


def trees(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Trees of tuples, lists, dicts and None."""
    return st.recursive(
        st.none() | leaves,
        lambda children: (
            st.lists(children, max_size=2)
            | st.tuples(children, children)
            | st.dictionaries(st.sampled_from("abc"), children, max_size=2)
        ),
        max_leaves=4,
    )


@st.composite
def series(draw: st.DrawFn, n_steps: int) -> Any:
    """Trees of arrays with as many rows as there are steps, some with taps."""

    def leaf() -> st.SearchStrategy[Any]:
        plain = st.builds(
            lambda shape, dtype: array((n_steps, *shape), dtype), shapes, st.sampled_from(DTYPES)
        )
        ahead = st.builds(
            lambda listed, shape: taps(array((n_steps + max(listed), *shape), "float64"), listed),
            lookaheads,
            shapes,
        )
        return plain | ahead

    return draw(trees(leaf()))


def as_real(value: Any) -> Any:
    return pt.real(value) if value.type.dtype.startswith("complex") else value


def summary(tree: Any) -> Any:
    """One float64 scalar that depends on every value in a tree."""
    total = pt.constant(np.float64(0.25))
    for leaf in Tree.of(tree).leaves:
        values = list(leaf) if isinstance(leaf, CarryTaps) or hasattr(leaf, "tap") else [leaf]
        for place, value in enumerate(values, start=1):
            total = 0.5 * total + place * pt.cast(as_real(value), "float64").mean()
    return pt.tanh(total)


def moved(value: Any, signal: Any) -> Any:
    """A new value of the dtype of the old one."""
    if value.type.dtype == "bool":
        return value ^ (signal > 0.3)
    return value + pt.cast(signal * 3, value.type.dtype)


def make_step(stops: bool) -> Any:
    """A step for any carry and any x, in which everything depends on everything."""

    def step(carry: Any, x: Any) -> Any:
        signal = summary((carry, x))
        new = map_tree(
            lambda leaf: (
                moved(leaf[0], signal) if isinstance(leaf, CarryTaps) else moved(leaf, signal)
            ),
            carry,
        )
        old = map_tree(lambda leaf: leaf[-1] if isinstance(leaf, CarryTaps) else leaf, carry)
        tree = Tree.of(carry)
        new_carry = tree.build(
            leaf.push_tap(value) if isinstance(leaf, CarryTaps) else value
            for leaf, value in zip(tree.leaves, Tree.of(new).leaves, strict=True)
        )
        y = {"new": new, "old": old, "signal": signal}
        return (new_carry, y, signal > 0.6) if stops else (new_carry, y)

    return step


def assert_scan_agrees(data: st.DataObject, n_steps: int, mode: Any) -> None:
    init = data.draw(trees(arrays | numbers | tapped))
    xs = data.draw(series(n_steps))
    reverse, stops = data.draw(st.booleans()), data.draw(st.booleans())
    step = make_step(stops)

    results = evaluate(scan(step, init, xs, n_steps, reverse=reverse), mode)
    expected = scan_reference(step, init, xs, n_steps, reverse=reverse)

    assert_trees_equal(results[0], expected[0])
    if n_steps:
        assert_trees_equal(results[1:], expected[1:])
    else:
        assert all(len(leaf) == 0 for leaf in Tree.of(results[1]).leaves)
        assert not any(results[2:])


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), n_steps=st.sampled_from([0, 1, 2, 5]))
def test_scan_agrees_with_the_python_loop(
    python_mode: str, data: st.DataObject, n_steps: int
) -> None:
    """Structure, values, dtypes and shapes; the gradient and the stop have tests of their own."""
    assert_scan_agrees(data, n_steps, python_mode)


@pytest.mark.slow
@settings(
    max_examples=12,
    deadline=None,
    # Each example takes seconds to compile: the same ones every time, and none made smaller.
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data(), n_steps=st.sampled_from([1, 5]))
def test_scan_agrees_when_numba_compiles_it(data: st.DataObject, n_steps: int) -> None:
    """The lowering of this package writes the code of every loop anew."""
    # Constants would be folded, in Python, before there is anything to compile.
    mode = get_mode("NUMBA").excluding("constant_folding", "topo_constant_folding")
    assert_scan_agrees(data, n_steps, mode)
