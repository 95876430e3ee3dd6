"""No steps are an ordinary number of steps, in every mode."""

from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode

from pytensor_loop import scan, taps


UNOPTIMISED = Mode(linker="py", optimizer=None)


def rows_of_every_kind(carry: Any, _: Any) -> Any:
    h = carry["h"]
    new = carry["v"] * 2
    y = {
        "new": new,
        "old": carry["v"],
        "outer": pt.outer(carry["v"], new),
        "sum": new.sum(),
        "zeros": pt.zeros((3, 2)) + new[0],
        "tap": h[0],
        "flag": new > 0,
    }
    return {"v": new, "h": h.push_tap(h[0] + h[1])}, y


SHAPES = {"new": (3,), "old": (3,), "outer": (3, 3), "sum": (), "zeros": (3, 2), "tap": (2,)}
DTYPES = {"flag": "bool"}


@pytest.mark.parametrize("unoptimised", [False, True])
def test_rows_have_the_shape_of_a_row(native_mode: str, unoptimised: bool) -> None:
    """Not zeros that were made up, on any backend, with and without rewrites."""
    v, n = pt.dvector("v"), pt.iscalar("n")
    init = {"v": v, "h": taps(np.ones((2, 2)), [-2, -1])}
    final, ys = scan(rows_of_every_kind, init, n_steps=n)
    outputs = [final["v"], final["h"].values, *ys.values()]
    mode = UNOPTIMISED if unoptimised and native_mode == "FAST_COMPILE" else native_mode
    if unoptimised and native_mode != "FAST_COMPILE":
        pytest.skip("what is not optimised is the same in Python")

    last, window, *rows = pytensor.function([v, n], outputs, mode=mode)([1.0, 2.0, 3.0], 0)
    np.testing.assert_array_equal(last, [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(window, np.ones((2, 2)))
    for key, value in zip(ys, rows, strict=True):
        assert value.shape == (0, *SHAPES.get(key, (3,))), key
        assert value.dtype == DTYPES.get(key, "float64"), key


def test_empty_xs(mode: str) -> None:
    """The rows of what was never read, in reverse and with a stop too."""
    x, v = pt.dmatrix("x"), pt.dvector("v")
    final, ys = scan(lambda c, row: (c + row, (c * row, row[:1])), v, x, reverse=True)
    f = pytensor.function([v, x], [final, *ys], mode=mode)

    last, products, first = f([1.0, 2.0], np.zeros((0, 2)))
    np.testing.assert_array_equal(last, [1.0, 2.0])
    assert (products.shape, first.shape) == ((0, 2), (0, 1))


def test_literal_zero(native_mode: str) -> None:
    """A loop of constants too, which PyTensor computes when it compiles."""
    final, ys, done = scan(
        lambda c, _: (c * 2, {"new": c * 2, "pair": pt.stack([c, c])}, c.sum() > 0),
        np.ones((2, 3)),
        n_steps=0,
    )
    outputs = [final, *ys.values(), done]
    with pytensor.config.change_flags(on_opt_error="raise"):
        values = pytensor.function([], outputs, mode=native_mode)()

    np.testing.assert_array_equal(values[0], np.ones((2, 3)))
    assert [value.shape for value in values[1:]] == [(0, 2, 3), (0, 2, 2, 3), ()]
    assert not values[-1]


@pytest.mark.parametrize("literal", [False, True])
def test_a_row_whose_shape_only_a_step_can_tell(native_mode: str, literal: bool) -> None:
    """An error that says so, and no made-up shape; with steps it is what the step made."""
    n = pt.iscalar("n")
    start = pt.lscalar("start")
    final, ys = scan(
        lambda c, _: (c, pt.arange(c)), start, n_steps=0 if literal else n, name="ragged"
    )
    f = pytensor.function([start, n], [final, ys], mode=native_mode, on_unused_input="ignore")

    if not literal:
        np.testing.assert_array_equal(f(3, 2)[1], [[0, 1, 2], [0, 1, 2]])
    with pytest.raises(ValueError, match="ragged took no steps") as error:
        f(3, 0)
    assert str(error.value).startswith(
        "ragged took no steps, and the shape of a row of ys cannot be known without running one: "
        "it depends on values inside step_fn. Give the row a shape that can be told from outside, "
        "such as `pt.specify_shape(y, shape)` in step_fn, or take at least one step"
    )


def test_a_part_of_no_rows(native_mode: str) -> None:
    """PyTensor's rewrites count steps back from the end."""
    n = pt.iscalar("n")
    _, ys = scan(lambda c, _: (c * 2, (c * 2, c)), np.ones(2), n_steps=n)
    f = pytensor.function([n], [ys[0][:-1], ys[1][:-1]], mode=native_mode)

    for steps in (0, 1, 3):
        new, old = f(steps)
        rows = max(steps - 1, 0)
        np.testing.assert_array_equal(
            new, np.repeat(2.0 ** np.arange(1, rows + 1), 2).reshape(-1, 2)
        )
        np.testing.assert_array_equal(old, np.repeat(2.0 ** np.arange(rows), 2).reshape(-1, 2))


def test_a_loop_whose_step_would_fail(native_mode: str) -> None:
    """Without steps, nothing of the body runs."""
    v = pt.dvector("v")
    final, _ = scan(lambda c, j: (c[j].set(pt.cast(j, "float64")), None), v, pt.arange(v.shape[0]))
    f = pytensor.function([v], final, mode=native_mode)

    assert f(np.zeros(0)).shape == (0,)
    np.testing.assert_array_equal(f(np.zeros(3)), [0.0, 1.0, 2.0])
