"""Types of the carry: weak numbers settle, strong leaves stay, static shapes meet."""

from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode
from pytensor.gradient import grad
from pytensor.scalar.basic import Exp
from pytensor.scan.op import Scan

from pytensor_loop import scan, taps
from tests.helpers import evaluate
from tests.test_closure import loop_of


def dtypes(tree: Any) -> list[str]:
    return [leaf.type.dtype for leaf in tree]


def test_python_numbers_start_from_bool_int64_and_floatx() -> None:
    """Never int8, never float32."""
    final, ys = scan(lambda c, _: (c, (0, 1.5, True, *c)), (0, 0.0, False, 1j), n_steps=2)

    assert dtypes(final) == ["int64", "float64", "bool", "complex128"]
    assert dtypes(ys) == ["int64", "float64", "bool", *dtypes(final)]


def test_python_floats_start_from_floatx() -> None:
    """Users who set floatX mean it."""
    with pytensor.config.change_flags(floatX="float32"):
        final, _ = scan(lambda c, _: (c * 2, None), 1.0, n_steps=2)

    assert final.type.dtype == "float32"


def test_two_hundred_increments(mode: str) -> None:
    """An int8 would be at -56."""
    final, _ = scan(lambda c, _: (c + 1, None), 0, n_steps=200)

    assert evaluate(final, mode) == 200


@pytest.mark.parametrize(
    ("init", "x", "settled"),
    [
        (0, "float64", "float64"),
        (0, "float32", "float64"),
        (0, "int8", "int64"),
        (0.0, "float32", "float64"),
        (0.0, "int64", "float64"),
        (False, "bool", "bool"),
        (False, "int8", "int64"),
        (False, "float32", "float64"),
        (0, "complex64", "complex128"),
    ],
)
def test_a_number_takes_the_dtype_of_its_update(init: Any, x: str, settled: str) -> None:
    """By promotion, also where the update ignores the carry."""
    v = pt.vector("v", dtype=x)
    final, ys = scan(lambda c, row: (row, c), init, v)

    assert (final.type.dtype, ys.type.dtype) == (settled, settled)


def test_a_chain_settles_whatever_its_length(python_mode: str) -> None:
    """Each leaf takes the dtype of the one before, which is known only then."""
    x = pt.dvector("x")
    calls = []

    def shift(carry: Any, row: Any) -> Any:
        calls.append(None)
        return (row, *carry[:-1]), None

    final, _ = scan(shift, (0, 0, False, 0, 0), x)

    assert dtypes(final) == ["float64"] * 5
    assert len(calls) <= 6
    np.testing.assert_array_equal(
        evaluate(final, python_mode, {x: np.arange(4.0)}), [3.0, 2.0, 1.0, 0.0, 0.0]
    )


def test_taps_of_numbers_are_weak_too() -> None:
    """`taps([0, 1])` settles like a number."""
    final, ys = scan(lambda h, x: (h.push_tap(h[0] + x), h[1]), taps([0, 1]), np.ones(3))

    assert (final.values.type.dtype, ys.type.dtype) == ("float64", "float64")
    assert final.values.type.shape == (2,)


@pytest.mark.parametrize(
    ("carry", "update"),
    [("float64", "float32"), ("float64", "int32"), ("int64", "int8"), ("int16", "bool")],
)
def test_a_strong_leaf_takes_a_lossless_cast(carry: str, update: str) -> None:
    """NumPy's own rule of what is safe."""
    x = pt.vector("x", dtype=update)
    final, _ = scan(lambda c, row: (row, c), np.zeros((), dtype=carry), x)

    assert final.type.dtype == carry


@pytest.mark.parametrize(
    ("dtype", "number"),
    [("int8", 5), ("uint8", True), ("float32", 0.5), ("float32", 2), ("bool", True)],
)
def test_a_strong_leaf_takes_a_number_of_its_kind(dtype: str, number: Any) -> None:
    """It is cast, whatever dtype it would have had by itself."""
    final, _ = scan(lambda c, _: (number, c), np.zeros((), dtype=dtype), n_steps=1)

    assert final.type.dtype == dtype
    assert final.eval() == np.asarray(number, dtype=dtype)


@pytest.mark.parametrize("dtype", ["int8", "float32", "float64", "uint16", "complex64"])
def test_numpy_scalars_are_strong(dtype: str) -> None:
    """`np.float64` is a Python float by inheritance, and strong all the same."""
    final, _ = scan(lambda c, _: (c, None), np.dtype(dtype).type(1), n_steps=1)

    assert final.type.dtype == dtype


@pytest.mark.parametrize("size", [1, 2])
def test_known_and_unknown_shapes_meet(native_mode: str, size: int) -> None:
    """In both directions, without a word from the user."""
    known, unknown = pt.tensor("known", shape=(size,)), pt.tensor("unknown", shape=(None,))
    init_known = scan(lambda c, _: (c * unknown, c), known, n_steps=2)
    init_unknown = scan(lambda c, _: (known * 1.0, c), unknown, n_steps=2)
    tapped = scan(lambda h, _: (h.push_tap(unknown), h[0]), taps(known[None], -1), n_steps=2)

    for final, ys in (init_known, init_unknown):
        assert (final.type.shape, ys.type.shape) == ((size,), (2, size))
    assert tapped[0].values.type.shape == (1, size)
    values = {known: np.full(size, 3.0), unknown: np.full(size, 2.0)}
    got = evaluate([init_known[0], init_unknown[0], tapped[0]], native_mode, values)
    np.testing.assert_array_equal(got[0], np.full(size, 12.0))
    np.testing.assert_array_equal(got[1], np.full(size, 3.0))
    np.testing.assert_array_equal(got[2], np.full((1, size), 2.0))


def test_what_one_side_knows_is_checked_when_the_function_runs(native_mode: str) -> None:
    """Another size is an error, not a broadcast."""
    unknown = pt.dvector("unknown")
    final, _ = scan(lambda c, _: (unknown * 1.0, None), np.zeros(3), n_steps=2)
    f = pytensor.function([unknown], final, mode=native_mode)

    np.testing.assert_array_equal(f(np.ones(3)), np.ones(3))
    for wrong in (1, 2):
        with pytest.raises((AssertionError, ValueError), match=r"shape|size|dim"):
            f(np.ones(wrong))


def test_a_gradient_does_not_compute_the_step_again() -> None:
    """Also where only the carry knows its shape: the trace has what the step computed."""
    w, x, h = pt.dmatrix("w"), pt.dmatrix("x"), pt.dvector("h")

    def exponentials(init: Any) -> int:
        final, ys = scan(lambda h, x: (pt.exp(-(w @ h) + x), h.sum()), init, x)
        gradient = grad(final.sum() + ys.sum(), [w, x])
        f = pytensor.function([w, x, h], gradient, mode=mode, on_unused_input="ignore")
        loops = [node.op for node in f.maker.fgraph.apply_nodes if isinstance(node.op, Scan)]
        nodes = [node for op in loops for node in op.fgraph.apply_nodes]
        return sum(isinstance(getattr(node.op, "scalar_op", None), Exp) for node in nodes)

    mode = Mode("py", "fast_run").excluding("fusion")
    assert exponentials(h) == 1
    assert exponentials(np.zeros(3)) == 1


def test_a_value_whose_shape_is_checked_is_used_once(python_mode: str) -> None:
    """As a new carry, as a row, in another leaf and in the condition it is the same value."""
    a, h = pt.dvector("a"), np.ones(2)

    def step(c: Any, _: Any) -> Any:
        new = pt.exp(c["h"] * a)
        return {"h": new, "sum": c["sum"] + new, "raw": a}, (new, new * 2), (new > 50).any()

    init = {"h": h, "sum": h, "raw": h}
    final, (ys, twice), done = scan(step, init, n_steps=3)
    f = pytensor.function([a], [final["h"], final["sum"], ys, twice, done], mode=python_mode)

    e1 = np.exp([0.5, 0.2])
    e2 = np.exp(e1 * [0.5, 0.2])
    e3 = np.exp(e2 * [0.5, 0.2])
    last, total, rows, doubled, stopped = f([0.5, 0.2])
    np.testing.assert_allclose(last, e3)
    np.testing.assert_allclose(total, 1 + e1 + e2 + e3)
    np.testing.assert_allclose(rows, [e1, e2, e3])
    np.testing.assert_allclose(doubled, 2 * rows)
    assert not stopped

    [node] = [n for n in loop_of(ys).op.fgraph.apply_nodes if n.op == pt.exp]
    assert node.outputs[0].type.shape == (2,)


def test_rows_keep_every_static_dimension() -> None:
    """The leading one included, for new values, old values and what is no carry; not in a stop."""
    xs = pt.tensor("xs", shape=(4, 2, None), dtype="float64")

    def step(carry: Any, x: Any) -> Any:
        new = carry + x.sum(axis=1)
        return new, {"new": new, "old": carry, "x": x, "sum": x.sum()}

    for reverse in (False, True):
        final, ys = scan(step, np.zeros(2), xs, reverse=reverse)
        assert final.type.shape == (2,)
        assert {key: rows.type.shape for key, rows in ys.items()} == {
            "new": (4, 2),
            "old": (4, 2),
            "x": (4, 2, None),
            "sum": (4,),
        }
    _, ys, _ = scan(lambda c, x: (*step(c, x), c[0] > 1), np.zeros(2), xs)
    assert ys["new"].type.shape == (None, 2)


def test_shape_of_a_known_length_beside_an_unknown_one() -> None:
    """The known one is checked against the other, and so it is known."""
    a, b = pt.tensor("a", shape=(4,)), pt.tensor("b", shape=(None,))
    _, ys = scan(lambda c, x: (c, x[0] + x[1]), None, (a, b))

    assert ys.type.shape == (4,)


def test_the_step_is_called_once_when_types_are_settled() -> None:
    """And no more often than types change."""
    calls = []

    def step(carry: Any, _: Any) -> Any:
        calls.append(None)
        return carry * 2, None

    scan(step, pt.dscalar(), n_steps=3)
    assert len(calls) == 1
    scan(step, 1.0, n_steps=3)
    assert len(calls) == 2
