"""The loops with names of their own, each against a loop in Python."""

import dataclasses
import operator
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.gradient import verify_grad
from pytensor.scan.op import Scan

import pytensor_loop
from pytensor_loop import accumulate, fold, fori_loop, iterate, scan, taps, while_loop
from pytensor_loop._tree import map_tree
from tests.helpers import assert_trees_equal, evaluate


ROWS = np.random.default_rng(5).normal(size=(6, 2))


@dataclasses.dataclass
class Pair:
    level: Any
    count: Any


def grow(pair, x):
    return Pair(pair.level * 0.5 + x["a"] * x["b"].sum(), pair.count + 1)


GROW_XS = {"a": ROWS[:, 0], "b": ROWS}
GROW_INIT = Pair(np.float64(1.0), 0)


def rows_of_grow(order):
    pair, seen = Pair(np.float64(1.0), np.int64(0)), []
    for t in order:
        pair = grow(pair, map_tree(operator.itemgetter(t), GROW_XS))
        seen.append(pair)
    return seen


def stack_pairs(pairs):
    return Pair(np.stack([p.level for p in pairs]), np.stack([p.count for p in pairs]))


def test_map_applies_a_function_of_trees_to_every_row(mode):
    result = pytensor_loop.map(lambda x: {"sum": x["a"] + x["b"].sum()}, GROW_XS)
    expected = {"sum": np.stack([a + b.sum() for a, b in zip(*GROW_XS.values(), strict=True)])}
    assert_trees_equal(evaluate(result, mode), expected)


def test_map_carries_nothing():
    result = pytensor_loop.map(lambda x: x + 1, pt.vector("x"))
    info = result.owner.op.info
    assert (info.n_sit_sot, info.n_mit_sot, info.n_untraced_sit_sot) == (0, 0, 0)


def test_map_of_no_rows_has_rows_of_the_true_shape(mode):
    xs = pt.matrix("xs", shape=(None, 3))
    result = pytensor_loop.map(lambda x: x[:, None] * x, xs)
    assert evaluate(result, mode, {xs: np.zeros((0, 3))}).shape == (0, 3, 3)


@pytest.mark.parametrize("reverse", [False, True])
def test_fold_returns_the_last_carry(mode, reverse):
    result = fold(grow, GROW_INIT, GROW_XS, reverse=reverse)
    order = range(5, -1, -1) if reverse else range(6)
    assert_trees_equal(evaluate(result, mode), rows_of_grow(order)[-1])


def test_fold_over_no_rows_is_init(mode):
    result = fold(lambda a, x: a + x, np.arange(3.0), np.zeros((0, 3)))
    assert_trees_equal(evaluate(result, mode), np.arange(3.0))


def test_fold_keeps_the_last_rows_of_taps(native_mode):
    result = fold(lambda past, x: past.push_tap(past[0] + x), taps([1.0, 2.0]), ROWS[:, 0])
    values = [1.0, 2.0]
    for x in ROWS[:, 0]:
        values.append(values[-2] + x)
    assert_trees_equal(evaluate(result, native_mode), np.array(values[-2:]))


RANGES = [(0, 5), (-2, 3), (3, 3), (4, 1)]


def sum_squares(lower, upper):
    expected = {"s": np.int64(0), "i": np.int64(99)}
    for i in range(lower, upper):
        expected = {"s": expected["s"] + i * i, "i": np.int64(i)}
    return expected


def body_of_sum_squares(i, carry):
    return {"s": carry["s"] + i * i, "i": i}


def test_fori_loop_counts_like_range(mode):
    loops = [fori_loop(*bounds, body_of_sum_squares, {"s": 0, "i": 99}) for bounds in RANGES]
    assert_trees_equal(evaluate(loops, mode), [sum_squares(*bounds) for bounds in RANGES])


def test_fori_loop_takes_symbolic_bounds(mode):
    lower, upper = pt.iscalar("lower"), pt.lscalar("upper")
    final = fori_loop(lower, upper, body_of_sum_squares, {"s": 0, "i": 99})
    function = pytensor.function([lower, upper], list(final.values()), mode=mode)
    for bounds in RANGES:
        assert_trees_equal(function(*bounds), list(sum_squares(*bounds).values()))


# The start, the most steps, the last value, and whether the condition ended the loop.
WHILES = [
    (1, 50, 128, True),
    (1, 7, 128, True),
    (1, 6, 64, False),
    (1, 0, 1, False),
    (100, 50, 100, True),
    (100, 0, 100, True),
]


def double_until_100(start, max_steps):
    return while_loop(lambda x: x < 100, lambda x: 2 * x, start, max_steps)


def test_while_loop_asks_before_each_step(mode):
    loops = [double_until_100(start, most) for start, most, _, _ in WHILES]
    expected = [(np.int64(final), np.bool_(done)) for _, _, final, done in WHILES]
    assert_trees_equal(evaluate(loops, mode), expected)


def test_while_loop_takes_a_symbolic_start_and_maximum(mode):
    start, most = pt.lscalar("start"), pt.lscalar("most")
    function = pytensor.function([start, most], double_until_100(start, most), mode=mode)
    for x, n, final, done in WHILES:
        assert_trees_equal(function(x, n), [np.int64(final), np.bool_(done)])


def test_while_loop_carries_generators(native_mode):
    rng = np.random.default_rng(3)
    expected, steps = np.random.default_rng(3), 0
    draw = 0.0
    while draw < 2:
        draw, steps = expected.normal(), steps + 1

    def body(carry):
        next_rng, x = pt.random.normal(rng=carry["rng"], return_next_rng=True)
        return {"rng": next_rng, "x": x, "steps": carry["steps"] + 1}

    init = {"rng": pytensor.shared(rng), "x": 0.0, "steps": 0}
    final, done = while_loop(lambda carry: carry["x"] < 2, body, init, 1000)
    got = evaluate((final["x"], final["steps"], done), native_mode)
    assert_trees_equal(got, (np.float64(draw), np.int64(steps), np.bool_(True)))


def test_while_loop_refuses_taps():
    message = (
        "while_loop takes no taps, but init['a'] has some: carry each older value as a leaf of its "
        "own, or let the step of scan return a break_cond"
    )
    with pytest.raises(TypeError) as error:
        while_loop(lambda c: c["a"][0] < 3, lambda c: c, {"a": taps([0, 1])}, 5)
    assert str(error.value) == message


def test_while_loop_refuses_a_condition_that_is_no_bool_scalar():
    with pytest.raises(TypeError) as error:
        while_loop(lambda x: x < 3, lambda x: x + 1, np.zeros(2), 5)
    assert str(error.value) == (
        "cond must return a bool scalar, not bool of shape (2,): compare, `x > 0`, and make one of "
        "many by `.any()` or `.all()`"
    )


def test_accumulate_keeps_every_carry_in_line_with_xs(mode):
    variants = [(False, False), (True, False), (False, True), (True, True)]
    results = [
        accumulate(grow, GROW_INIT, GROW_XS, include_init=include_init, reverse=reverse)
        for include_init, reverse in variants
    ]
    expected = []
    for include_init, reverse in variants:
        seen = rows_of_grow(range(5, -1, -1) if reverse else range(6))
        pairs = [*([Pair(np.float64(1.0), np.int64(0))] if include_init else []), *seen]
        expected.append(stack_pairs(pairs[::-1] if reverse else pairs))
    assert_trees_equal(evaluate(results, mode), expected)


def test_accumulate_puts_all_rows_of_taps_in_front(native_mode):
    result = accumulate(
        lambda past, x: past.push_tap(past[0] + x), taps([1, 2]), ROWS[:, 0], include_init=True
    )
    values = [1.0, 2.0]
    for x in ROWS[:, 0]:
        values.append(values[-2] + x)
    assert_trees_equal(evaluate(result, native_mode), np.array(values))


def test_accumulate_keeps_no_second_buffer():
    result = accumulate(operator.add, pt.scalar("init"), pt.vector("x"))
    (scan_node,) = [v.owner for v in _ancestors(result) if v.owner and isinstance(v.owner.op, Scan)]
    assert scan_node.op.info.n_nit_sot == 0


def test_iterate_keeps_every_carry(mode):
    def fibonacci(pair):
        return pair[1], pair[0] + pair[1]

    variants = [(0, False), (0, True), (4, False), (4, True)]
    results = [
        iterate(fibonacci, (0.0, 1), n_steps, include_init=include_init)
        for n_steps, include_init in variants
    ]
    a, b = np.array([0.0, 1, 1, 2, 3]), np.array([1.0, 1, 2, 3, 5])
    expected = [
        (a[0 if include_init else 1 : n_steps + 1], b[0 if include_init else 1 : n_steps + 1])
        for n_steps, include_init in variants
    ]
    assert_trees_equal(evaluate(results, mode), expected)


@pytest.mark.parametrize(
    "loop",
    [
        lambda x: pytensor_loop.map(lambda row: row**3, x),
        lambda x: fold(lambda c, row: pt.sin(c) * row, x[0], x),
        lambda x: fori_loop(0, 4, lambda i, c: pt.sin(c) * x[i], x[0]),
        lambda x: while_loop(lambda c: c.sum() < 20, lambda c: 1.5 * c + 0.1 * x[1], x[0], 50)[0],
        lambda x: while_loop(lambda c: c.sum() < -90, lambda c: c * x[1], x[0] ** 2, 50)[0],
        lambda x: accumulate(lambda c, row: pt.sin(c) * row, x[0], x, include_init=True),
        lambda x: accumulate(lambda c, row: pt.sin(c) * row, x[0], x, reverse=True),
        lambda x: iterate(lambda c: pt.sin(c) * x[1], x[0], 4, include_init=True),
        lambda x: iterate(lambda c: pt.sin(c) * x[1], x[0] ** 2, 0, include_init=True),
    ],
)
def test_gradients_are_those_of_finite_differences(native_mode, loop):
    point = np.random.default_rng(1).uniform(0.5, 1.5, size=(4, 2))
    verify_grad(loop, [point], rng=np.random.default_rng(2), mode=native_mode)


def test_errors_speak_of_the_parameters_of_the_callers_function():
    with pytest.raises(TypeError) as error:
        fold(lambda state, x: {"level": state["level"] + x}, {"level": np.int64(0)}, ROWS[:, 0])
    assert "state['level'] goes in as int64 scalar" in str(error.value)


def test_names_reach_the_node():
    assert pytensor_loop.map(lambda x: x, pt.vector(), name="rows").owner.op.name == "rows"
    _, ys = scan(lambda c, _: (c, c), 0.0, n_steps=2, name="plain")
    assert ys.owner.inputs[0].owner.op.name == "plain"


def _ancestors(variable):
    from pytensor.graph.traversal import ancestors

    return ancestors([variable])
