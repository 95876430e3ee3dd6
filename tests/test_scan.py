"""What `scan` means, on every backend, against the loop in plain Python."""

import dataclasses
from collections import OrderedDict, defaultdict, namedtuple
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_loop import scan, taps
from pytensor_loop.testing import scan_reference
from tests.helpers import assert_trees_equal, evaluate


XS = {"a": np.array([1.0, 4.0, 9.0, 16.0]), "b": np.arange(8.0).reshape(4, 2)}


def damped(carry: Any, x: Any) -> Any:
    level = 0.5 * carry["level"] + x["a"]
    trend = carry["trend"] * 0.9 + x["b"]
    return {"level": level, "trend": trend}, {"old": carry["level"], "sum": (level, trend.sum())}


@pytest.mark.parametrize("reverse", [False, True])
def test_trees_go_in_and_come_out(mode: str, reverse: bool) -> None:
    """Dicts and tuples; rows of ys line up with rows of xs, also in reverse."""
    init = {"level": 0.0, "trend": np.ones(2)}
    xs = {"a": pt.dvector("a"), "b": pt.dmatrix("b")}

    results = evaluate(
        scan(damped, init, xs, reverse=reverse), mode, {xs[key]: XS[key] for key in xs}
    )

    assert_trees_equal(results, scan_reference(damped, init, XS, reverse=reverse))


def test_a_pure_map(mode: str) -> None:
    """`init=None` carries nothing."""
    x = pt.dvector("x")
    final, ys = scan(lambda carry, v: (carry, v**2), None, x)

    assert final is None
    np.testing.assert_allclose(evaluate(ys, mode, {x: XS["a"]}), XS["a"] ** 2)


def test_n_steps_given_as_an_input(native_mode: str) -> None:
    """One compiled function takes any number of steps."""
    n = pt.iscalar("n")
    final, ys = scan(lambda c, _: (2 * c, c), np.ones(3), n_steps=n)
    f = pytensor.function([n], [final, ys], mode=native_mode)

    for steps in (0, 1, 4):
        last, rows = f(steps)
        np.testing.assert_array_equal(last, np.full(3, 2.0**steps))
        np.testing.assert_array_equal(rows, np.repeat(2.0 ** np.arange(steps), 3).reshape(-1, 3))


def test_one_step_however_it_is_said(mode: str) -> None:
    """A literal 1, a symbolic 1 and one row of xs give the same values and types."""
    one = pt.dvector("one")
    x0 = pt.constant(np.array([1.0, 2.0]))
    literal = scan(lambda c, _: (c * 3, c.sum()), x0, n_steps=1)
    symbolic = scan(lambda c, _: (c * 3, c.sum()), x0, n_steps=one.shape[0])
    series = scan(lambda c, _: (c * 3, c.sum()), x0, one)

    for result in evaluate([literal, symbolic, series], mode, {one: np.zeros(1)}):
        np.testing.assert_array_equal(result[0], [3.0, 6.0])
        np.testing.assert_array_equal(result[1], [3.0])


def test_stopping_keeps_the_step_that_stops(native_mode: str) -> None:
    """`done` tells a loop that stopped from one that ran out of steps; with none it is False."""
    n, limit = pt.iscalar("n"), pt.dscalar("limit")

    def add(carry: Any, _: Any) -> Any:
        total, k = carry
        return (total + k, k + 1), {"k": k, "total": total + k}, total + k > limit

    f = pytensor.function([n, limit], _flat(scan(add, (0.0, 0), n_steps=n)), mode=native_mode)

    for steps, bound in [(10, 5.0), (4, 100.0), (1, -1.0), (0, 0.0)]:
        total, k = np.cumsum(np.arange(steps)), np.arange(steps)
        stop = next((t + 1 for t in range(steps) if total[t] > bound), None)
        ran = slice(stop)
        last, count, ks, totals, done = f(steps, bound)
        assert (last, count) == ((total[ran][-1], k[ran][-1] + 1) if steps else (0.0, 0))
        np.testing.assert_array_equal(ks, k[ran])
        np.testing.assert_array_equal(totals, total[ran])
        assert bool(done) is (stop is not None)


def test_a_constant_condition(native_mode: str) -> None:
    """True stops after the first step, False never."""
    after_one = scan(lambda c, x: (c + x, c, True), 0.0, XS["a"])
    never = scan(lambda c, x: (c + x, c, np.bool_(False)), 0.0, XS["a"])

    (first, first_ys, stopped), (last, _, ran_out) = evaluate([after_one, never], native_mode)
    assert (first, first_ys.shape, bool(stopped)) == (1.0, (1,), True)
    assert (last, bool(ran_out)) == (30.0, False)


def test_a_generator_advances_with_each_step(native_mode: str) -> None:
    """Draws, the step that stops and the state of the generator are those of a plain loop."""
    rng = pytensor.shared(np.random.default_rng(5), name="rng")

    def step(carry: Any, _: Any) -> Any:
        next_rng, x = pt.random.normal(rng=carry["rng"], return_next_rng=True)
        return {"rng": next_rng}, x, x > 1.5

    final, xs, done = scan(step, {"rng": rng}, n_steps=500)
    after = pt.random.normal(rng=final["rng"], return_next_rng=True)[1]
    draws, following, stopped = pytensor.function([], [xs, after, done], mode=native_mode)()

    expected = np.random.default_rng(5).normal(size=501)
    k = int(np.argmax(expected > 1.5))
    assert stopped
    np.testing.assert_array_equal(draws, expected[: k + 1])
    assert following == expected[k + 1]


def test_arrays_that_come_out_are_independent(mode: str) -> None:
    """One variable may be returned in several places; what comes out shares no memory."""
    x = pt.dmatrix("x")

    def step(carry: Any, row: Any) -> Any:
        new = carry["a"] + row
        return {"a": new, "b": new}, (new, new)

    final, ys = scan(step, {"a": pt.zeros(2), "b": pt.zeros(2)}, x)
    results = evaluate([final["a"], final["b"], *ys], mode, {x: np.ones((3, 2))})

    if mode != "JAX":  # its arrays cannot be written
        for result in results:
            before = [np.array(other) for other in results if other is not result]
            result[...] = -1.0
            others = [other for other in results if other is not result]
            for old, other in zip(before, others, strict=True):
                np.testing.assert_array_equal(old, other)


Pair = namedtuple("Pair", "x y")


@dataclasses.dataclass(frozen=True)
class Point:
    x: Any
    y: Any

    def __post_init__(self) -> None:
        assert self.x is not None


@pytest.mark.parametrize(
    "build",
    [
        lambda x, y: (x, y),
        lambda x, y: [x, y],
        lambda x, y: {"x": x, "y": y},
        lambda x, y: OrderedDict(y=y, x=x),
        lambda x, y: defaultdict(list, x=x, y=y),
        Pair,
        Point,
        lambda x, y: {"deep": [(x, None), Point(y, Pair((), {}))]},
    ],
)
def test_what_comes_back_is_of_the_classes_that_went_in(build: Any) -> None:
    """In init, xs and y."""
    x0, y0 = pt.dscalars("x0", "y0")
    xs = build(np.ones(3), np.ones(3))
    final, ys = scan(lambda carry, x: (carry, x), build(x0, y0), xs)

    assert type(final) is type(ys) is type(build(x0, y0))
    assert _classes(final) == _classes(ys) == _classes(build(x0, y0))
    if isinstance(final, dict):
        assert list(final) == list(build(x0, y0))


def test_the_order_of_keys_does_not_matter() -> None:
    """Nor does the class of the mapping that the step returns."""
    init = {"b": np.float64(2.0), "a": np.float64(1.0)}
    final, _ = scan(lambda c, _: (OrderedDict(a=c["a"] + 1, b=c["b"] * 2), None), init, n_steps=3)

    assert type(final) is dict
    assert (final["a"].eval(), final["b"].eval()) == (4.0, 16.0)


def test_the_step_may_change_the_dicts_that_it_is_given() -> None:
    """They are its own."""
    init = {"a": np.float64(1.0)}

    def step(carry: Any, _: Any) -> Any:
        carry["a"] = carry["a"] * 2
        return carry, None

    final, _ = scan(step, init, n_steps=3)
    assert (final["a"].eval(), init) == (8.0, {"a": 1.0})


def test_nested_loops(mode: str) -> None:
    """A loop in a step reads the outer carry, outer rows and captured variables."""
    x, w = pt.dmatrix("x"), pt.dscalar("w")

    def outer(carry: Any, row: Any) -> Any:
        inner, _ = scan(lambda h, v: (h * w + v, None), carry, row)
        return inner, inner

    values = np.arange(6.0).reshape(2, 3)
    final, ys = evaluate(scan(outer, 1.0, x), mode, {x: values, w: 0.5})

    h, expected = 1.0, []
    for row in values:
        for v in row:
            h = h * 0.5 + v
        expected.append(h)
    np.testing.assert_allclose(ys, expected)
    np.testing.assert_allclose(final, h)


def test_sparse_matrices_and_lists_are_carried(native_mode: str) -> None:
    """Any type may be carried; it comes out by final."""
    scipy_sparse = pytest.importorskip("scipy.sparse")
    import pytensor.sparse as ps
    from pytensor.typed_list import TypedListType, append

    if native_mode == "NUMBA":
        pytest.skip("Numba has no typed lists")
    matrix = ps.csr_matrix("matrix", dtype="float64")
    rows = TypedListType(pt.TensorType("float64", shape=(2,)))("rows")

    def step(carry: Any, x: Any) -> Any:
        sparse, collected = carry
        return (ps.multiply(sparse, x), append(collected, pt.stack([x, x]))), None

    (product, collected), _ = scan(step, (matrix, rows), np.array([2.0, 3.0]))
    f = pytensor.function([matrix, rows], [product, collected], mode=native_mode)
    value, gathered = f(scipy_sparse.eye(2, format="csr"), [])
    np.testing.assert_array_equal(value.toarray(), 6.0 * np.eye(2))
    np.testing.assert_array_equal(gathered, [[2.0, 2.0], [3.0, 3.0]])


def test_taps_in_the_step(mode: str) -> None:
    """Sequences in the listed order, gaps, deep single taps, taps ahead on xs, in reverse too."""
    x = pt.dvector("x")
    values = np.arange(1.0, 9.0)
    init = {
        "gap": taps(np.arange(10.0, 15.0), [-5, -3]),
        "deep": taps([1.0, 2.0, 3.0], -3),
        "order": taps([[1.0, 2.0], [3.0, 4.0]], [-1, -2]),
    }

    def step(carry: Any, ahead: Any) -> Any:
        a, b = carry["gap"]
        newest, older = carry["order"]
        assert (len(carry["gap"]), carry["order"].taps) == (2, (-1, -2))
        assert carry["order"].tap(-2) is carry["order"][1] is older
        new_gap = a + 0.1 * b + ahead[0]
        new_carry = {
            "gap": carry["gap"].push_tap(new_gap),
            "deep": carry["deep"].push_tap(carry["deep"][0] + ahead.tap(2)),
            "order": carry["order"].push_tap(older - newest + ahead.tap(2)),
        }
        return new_carry, {"gap": new_gap, "older": older, "ahead": ahead[1]}

    for reverse in (False, True):
        results = evaluate(scan(step, init, taps(x, [0, 2]), reverse=reverse), mode, {x: values})
        expected = scan_reference(step, init, taps(values, [0, 2]), reverse=reverse)
        assert_trees_equal(results, expected)


@pytest.mark.parametrize("split", [0, 1, 4, 7])
def test_a_loop_continues_from_final(split: int, python_mode: str) -> None:
    """T steps are k steps and then T - k, with taps, plain leaves and a generator."""
    rng = pytensor.shared(np.random.default_rng(1))
    x = np.arange(7.0)

    def step(carry: Any, v: Any) -> Any:
        h2, h1 = carry["h"]
        next_rng, noise = pt.random.normal(rng=carry["rng"], return_next_rng=True)
        y = 0.5 * h1 - 0.2 * h2 + v + noise
        return {"h": carry["h"].push_tap(y), "rng": next_rng}, y

    init = {"h": taps(np.array([0.3, -0.1]), [-2, -1]), "rng": rng}
    whole_final, whole = scan(step, init, x)
    middle, first = scan(step, init, x[:split])
    final, second = scan(step, middle, x[split:])
    results = evaluate(
        [whole, pt.concatenate([first, second]), whole_final["h"], final["h"], final["h"][0]],
        python_mode,
    )

    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[2], results[3])
    np.testing.assert_array_equal(results[4], results[0][-2])
    assert (len(final["h"]), final["h"].taps) == (2, (-2, -1))


def _flat(results: Any) -> list[Any]:
    from pytensor_loop._tree import Tree

    return list(Tree.of(results).leaves)


def _classes(tree: Any) -> Any:
    """The classes of all containers in a tree."""
    if isinstance(tree, dict):
        return type(tree), {key: _classes(value) for key, value in tree.items()}
    if dataclasses.is_dataclass(tree):
        return type(tree), _classes(tuple(vars(tree).values()))
    if isinstance(tree, list | tuple):
        return type(tree), [_classes(value) for value in tree]
    return None
