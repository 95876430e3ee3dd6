"""Lengths that are known only when the function runs."""

from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.traversal import explicit_graph_inputs

from pytensor_loop import scan, taps
from pytensor_loop._agree import AgreeingLengths
from tests.helpers import found_lengths


def lengths_checked(*outputs: Any) -> int:
    """How many checks of lengths a compiled function of these outputs makes."""
    inputs = list(explicit_graph_inputs(outputs))
    with pytensor.config.change_flags(cxx=""):
        f = pytensor.function(inputs, list(outputs), mode="CVM")
    return sum(isinstance(node.op, AgreeingLengths) for node in f.maker.fgraph.apply_nodes)


def told(error: pytest.ExceptionInfo[ValueError]) -> str:
    """The text of an error without what PyTensor adds when a function runs."""
    return str(error.value).split("\n")[0]


def disagreement(mode: str, *lengths: tuple[str, int]) -> str:
    """The text about two lengths."""
    return (
        f"the number of steps is not the same for all: {found_lengths(mode, *lengths)}. "
        "Cut the longer ones, `x[:n]`, so that every step has a row of each"
    )


def test_lengths_that_disagree(mode: str) -> None:
    """Nothing is cut, nothing is read past the end, and every leaf is named with its length."""
    a, b = pt.dvectors("a", "b")
    _, ys = scan(
        lambda c, x: (c, x["a"] + x["b"][0] * x["b"][1]), None, {"a": a, "b": taps(b, [0, 1])}
    )
    f = pytensor.function([a, b], ys, mode=mode)

    np.testing.assert_array_equal(f(np.ones(3), np.arange(4.0)), [1.0, 3.0, 7.0])
    for short, long in [(2, 4), (3, 3), (4, 4)]:
        with pytest.raises(ValueError, match="the number of steps") as error:
            f(np.ones(short), np.ones(long))
        assert told(error) == disagreement(
            mode, ("xs['a']", short), ("xs['b'] (rows less its furthest tap 1)", long - 1)
        )


def test_a_leaf_that_the_step_does_not_read(native_mode: str) -> None:
    """It has to agree all the same."""
    a, b = pt.dvectors("a", "b")
    _, ys = scan(lambda c, x: (c, 2 * x[0]), None, (a, b))
    f = pytensor.function([a, b], ys, mode=native_mode)

    np.testing.assert_array_equal(f(np.ones(3), np.ones(3)), np.full(3, 2.0))
    with pytest.raises(ValueError, match="the number of steps"):
        f(np.ones(3), np.ones(2))


def test_n_steps_beyond_xs(native_mode: str) -> None:
    """Today's backends read past the end, or cut."""
    x, n = pt.dvector("x"), pt.iscalar("n")
    _, ys = scan(lambda c, v: (c, v), None, x, n_steps=n)
    f = pytensor.function([x, n], ys, mode=native_mode)

    np.testing.assert_array_equal(f(np.arange(3.0), 3), [0.0, 1.0, 2.0])
    for wrong in (2, 4, 0):
        with pytest.raises(ValueError, match="the number of steps") as error:
            f(np.arange(3.0), wrong)
        assert told(error) == disagreement(native_mode, ("xs", 3), ("n_steps", wrong))


def test_a_negative_number_of_steps(native_mode: str) -> None:
    """Given as an input, or from fewer rows than the taps look ahead."""
    n, x = pt.iscalar("n"), pt.dvector("x")
    counted, _ = scan(lambda c, _: (c + 1, None), 0, n_steps=n)
    _, ahead = scan(lambda c, v: (c, v[0]), None, taps(x, [0, 2]))
    f = pytensor.function([n, x], [counted, ahead], mode=native_mode)

    assert f(2, np.zeros(2))[1].shape == (0,)
    with pytest.raises(ValueError, match="negative") as error:
        f(-1, np.zeros(3))
    shown = "" if native_mode == "NUMBA" else " -1"
    assert told(error) == f"a loop cannot take a negative number of steps: n_steps{shown}"
    with pytest.raises(ValueError, match="negative") as error:
        f(2, np.zeros(1))
    assert told(error) == (
        f"a loop cannot take a negative number of steps: xs (rows less its furthest tap 2){shown}"
    )


def test_rows_for_taps(mode: str) -> None:
    """One row too many or too few is an error, and never a broadcast."""
    a = pt.dvector("a")
    final, _ = scan(lambda h, _: (h.push_tap(h[0]), None), {"h": taps(a, [-2])}["h"], n_steps=1)
    f = pytensor.function([a], final.values, mode=mode)

    np.testing.assert_array_equal(f(np.array([1.0, 2.0])), [2.0, 1.0])
    for wrong in (1, 3):
        with pytest.raises(ValueError, match="rows for them") as error:
            f(np.ones(wrong))
        found = found_lengths(mode, ("rows", wrong), ("steps that the taps look back", 2))
        assert told(error) == (
            f"init has taps=[-2] but not the rows for them: {found}. "
            "Pass one row for each step that the taps look back, the oldest first"
        )


def test_nothing_is_checked_where_nothing_can_differ() -> None:
    """Static lengths, one leaf of xs, one array used twice."""
    x, m = pt.dvector("x"), pt.dmatrix("m")
    one = scan(lambda c, v: (c + v, c), 0.0, x)
    twice = scan(lambda c, v: (c + v[0] * v[1], c), 0.0, (x, 2.0 * x))
    static = scan(lambda c, v: (c + v, c), 0.0, np.ones(3), n_steps=3)
    two = scan(lambda c, v: (c + v[0] * v[1].sum(), c), 0.0, (x, m))

    assert lengths_checked(one[1]) == lengths_checked(static[1]) == 0
    assert lengths_checked(twice[1]) == 0
    assert lengths_checked(two[1]) > 0


def test_a_symbolic_zero_dimensional_count_of_any_integer_dtype() -> None:
    """An int8 or uint16 counts as well."""
    for dtype in ("int8", "uint16", "int32", "int64"):
        n = pt.scalar("n", dtype=dtype)
        final, _ = scan(lambda c, _: (c + 1, None), 0, n_steps=n)
        assert final.eval({n: 3}) == 3
