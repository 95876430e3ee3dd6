"""Our lowering of Scan computes what PyTensor's own computes."""

import re
import subprocess
import sys

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from numba import njit
from pytensor.graph.traversal import ancestors
from pytensor.scan.op import Scan
from pytensor.scan.utils import until
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.random.type import random_generator_type

from pytensor_loop.backends import _numba_loop as loops
from pytensor_loop.backends import _numba_math as fast
from pytensor_loop.backends.numba import use_lowering


pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"
)


def scan(step, **kwargs):
    return pytensor.scan(step, return_updates=False, **kwargs)


def as_list(outputs):
    return list(outputs) if isinstance(outputs, list | tuple) else [outputs]


def compile_both(inputs, outputs, **kwargs):
    functions = []
    for enabled in (True, False):
        with use_lowering(enabled):
            functions.append(
                pytensor.function(inputs, outputs, mode="NUMBA", on_unused_input="ignore", **kwargs)
            )
    return functions


def check_same(inputs, outputs, *calls, rtol=1e-9):
    """Compare the two lowerings, results and arguments left alone, on each tuple of values."""
    ours, theirs = compile_both(inputs, as_list(outputs))
    for values in calls:
        kept = [np.array(v, copy=True) for v in values]
        for a, b in zip(ours(*values), theirs(*values), strict=True):
            got, expected = np.asarray(a), np.asarray(b)
            assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
            np.testing.assert_allclose(got, expected, rtol=rtol, atol=1e-290)
        for before, after in zip(kept, values, strict=True):
            np.testing.assert_array_equal(before, after)


@pytest.fixture
def lowered(monkeypatch):
    """Collect the source of every loop that is lowered."""
    sources = []

    def record(*args):
        loop = loops.write_loop.original(*args)
        sources.append(loop.source)
        return loop

    record.original = loops.write_loop
    monkeypatch.setattr(loops, "write_loop", record)
    return sources


def rng(seed=0):
    return np.random.default_rng(seed)


# Scalars


@pytest.fixture(scope="module")
def ar1():
    x, a, h0 = pt.vector("x"), pt.scalar("a"), pt.scalar("h0")
    h = scan(lambda x, h, a: a * h + x, sequences=[x], outputs_info=[h0], non_sequences=[a])
    return [x, a, h0], h


SCALAR_CALLS = [(rng().normal(size=n), 0.9, 0.3) for n in (0, 1, 2, 7)]


@pytest.mark.parametrize("rows", [slice(None), -1, slice(-2, None), slice(None, None, 2)])
def test_scalar_carry(ar1, rows):
    inputs, h = ar1
    calls = SCALAR_CALLS if isinstance(rows, slice) else SCALAR_CALLS[1:]
    check_same(inputs, h[rows], *calls)


def test_gradients_of_a_scalar_carry(ar1):
    inputs, h = ar1
    check_same(inputs, pt.grad((h**2).sum(), inputs), *SCALAR_CALLS)
    check_same(inputs, pt.grad(h[-1], inputs), *SCALAR_CALLS[1:])


def test_second_derivatives(ar1):
    inputs, h = ar1
    first = pt.grad((h**2).sum(), inputs)
    second = pt.grad(first[0].sum() + first[1], inputs)
    check_same(inputs, second, *SCALAR_CALLS)


def test_a_scalar_loop_boxes_nothing(ar1, lowered):
    inputs, h = ar1
    pytensor.function(inputs, h, mode="NUMBA")
    assert "np.empty" not in lowered[0]
    assert "%" not in lowered[0]


@pytest.mark.parametrize("taps", [[-1], [-2], [-2, -1], [-1, -3], [-4, -2, -1], [-12, -1]])
@pytest.mark.parametrize("last", [None, 1, 3])
def test_taps(taps, last):
    first = -min(taps)
    x, init = pt.vector("x"), pt.vector("init")
    h = scan(
        lambda x, *h: sum(h[k] * 0.3 ** (k + 1) for k in range(len(h))) + x,
        sequences=[x],
        outputs_info=[{"initial": init, "taps": taps}],
    )
    outputs = h if last is None else h[-last:]
    calls = [(rng().normal(size=n), rng(1).normal(size=first)) for n in (0, 1, 3, 14)]
    check_same([x, init], outputs, *calls)
    check_same([x, init], pt.grad((outputs**2).sum(), [x, init]), *calls[1:])


@pytest.mark.parametrize("taps", [[-1], [-2, -1], [-3, -1]])
@pytest.mark.parametrize("last", [None, 1, 2])
def test_taps_of_vectors(taps, last):
    x, init = pt.matrix("x"), pt.matrix("init")
    h = scan(
        lambda x, *h: pt.tanh(sum(h[k] * 0.5 for k in range(len(h))) + x) + h[0][::-1],
        sequences=[x],
        outputs_info=[{"initial": init, "taps": taps} if len(taps) > 1 else init[0]],
    )
    outputs = h if last is None else h[-last:]
    calls = [(rng().normal(size=(n, 3)), rng(1).normal(size=(-min(taps), 3))) for n in (0, 1, 2, 9)]
    check_same([x, init], outputs, *calls)
    check_same([x, init], pt.grad((outputs**2).sum(), [x, init]), *calls[1:])


def test_a_tap_that_the_gradient_does_not_read():
    init, w = pt.tensor3("init"), pt.matrix("w")
    x = scan(
        lambda _, before, w: w + before,
        n_steps=6,
        outputs_info=[{"initial": init, "taps": [-4, -1]}],
        non_sequences=w,
    )
    values = rng().normal(size=(5, 2, 2)), rng(1).normal(size=(2, 2))
    check_same([init, w], pt.grad((x[-1] ** 2).sum(), [init, w]), values)


def test_taps_of_sequences():
    x = pt.vector("x")
    y = scan(
        lambda a, b, h: a * b + 0.5 * h,
        sequences=[{"input": x, "taps": [-1, 2]}],
        outputs_info=[pt.constant(0.0, dtype="float64")],
    )
    check_same([x], [y, pt.grad(y.sum(), x)], (rng().normal(size=9),))


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint8", "int32", "int64", "float32", "float64", "complex128"]
)
@pytest.mark.parametrize("ndim", [0, 1, 2])
def test_dtypes(dtype, ndim):
    x = pt.tensor("x", dtype=dtype, shape=(None,) * (ndim + 1))
    h0 = pt.tensor("h0", dtype=dtype, shape=(None,) * ndim)

    def step(x, h):
        new = pt.neq(h, x) if dtype == "bool" else h * x + x
        return new.astype(dtype), (new + h).astype(dtype)

    outputs = scan(step, sequences=[x], outputs_info=[h0, None])
    shape = (2, 3)[:ndim]
    values = [(rng().normal(size=(n, *shape)) * 3).astype(dtype) for n in (0, 5)]
    init = np.asarray(rng(1).normal(size=shape) * 3).astype(dtype)
    check_same([x, h0], outputs, *((v, init) for v in values[bool(ndim) :]), rtol=1e-5)
    check_same([x, h0], [o[-1] for o in outputs], (values[1], init), rtol=1e-5)


def test_mixed_dtypes_in_a_step():
    x, k = pt.vector("x", dtype="float32"), pt.lvector("k")

    def step(x, k, h, count):
        positive = x > 0
        new = pt.switch(positive, h + x * k, h / (1 + k**2)).astype("float64")
        return new, count + positive, pt.maximum(x, k), pt.minimum(k, 3), pt.isnan(x) | positive

    outputs = scan(
        step,
        sequences=[x, k],
        outputs_info=[
            pt.constant(1.0, dtype="float64"),
            pt.constant(0, dtype="int64"),
            None,
            None,
            None,
        ],
    )
    values = rng().normal(size=8).astype("float32")
    values[3] = np.nan
    check_same([x, k], outputs, (values, np.arange(8)))


SCALAR_FUNCTIONS = {
    "exp": pt.exp,
    "expm1": pt.expm1,
    "log": pt.log,
    "log1p": pt.log1p,
    "tanh": pt.tanh,
    "sigmoid": pt.sigmoid,
    "softplus": pt.softplus,
    "sqrt": pt.sqrt,
    "abs": pt.abs,
    "sign": pt.sign,
    "gammaln": pt.gammaln,
    "erf": pt.erf,
    "floor": pt.floor,
    "cube": lambda x: x**3,
    "reciprocal": lambda x: 1 / x,
}


@pytest.mark.parametrize("name", SCALAR_FUNCTIONS)
def test_functions_of_numbers_and_of_vectors(name):
    function = SCALAR_FUNCTIONS[name]
    x, m = pt.vector("x"), pt.matrix("m")
    edge = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-310, 800.0, -800.0, 0.5, 3.0, -2.0])
    numbers = scan(lambda x, h: function(x) + 0 * h, sequences=[x], outputs_info=[pt.zeros(())])
    vectors = scan(lambda x, h: function(x) + 0 * h, sequences=[m], outputs_info=[m[0]])
    values = np.concatenate([edge, rng().normal(size=9) * 3])
    with np.errstate(all="ignore"):
        check_same([x, m], [numbers, vectors], (values, values.reshape(4, 5)), rtol=2e-15)


def test_cheap_sequences_are_computed_in_the_step():
    """No trace is kept of what a few instructions make of a sequence."""
    x, y, z, w = pt.matrix("x"), pt.matrix("y"), pt.matrix("z"), pt.vector("w")
    h = scan(
        lambda a, b, h: pt.tanh(h * a) + b, sequences=[(x - y) * w, pt.exp(z)], outputs_info=[w]
    )
    inputs = [x, y, z, w]
    values = *(rng(k).normal(size=(5, 3)) for k in range(3)), rng(3).normal(size=3)
    check_same(inputs, [h, *pt.grad(h[-1].sum(), inputs)], values)

    with use_lowering(True):
        f = pytensor.function(inputs, h, mode="NUMBA")
    [loop] = [n for n in f.maker.fgraph.apply_nodes if isinstance(n.op, Scan)]
    sequences = loop.op.outer_seqs(loop.inputs)  # x, y and exp(z)
    assert sorted(isinstance(v.owner.op, Elemwise) for v in sequences) == [False, False, True]


# Vectors and matrices


@pytest.fixture(scope="module")
def tanh():
    x, a, h0 = pt.matrix("x"), pt.matrix("a"), pt.vector("h0")
    h = scan(
        lambda x, h, a: pt.tanh(a @ h + x), sequences=[x], outputs_info=[h0], non_sequences=[a]
    )
    return [x, a, h0], h


def tanh_values(n, d):
    return rng().normal(size=(n, d)), rng(1).normal(size=(d, d)) / d, rng(2).normal(size=d)


@pytest.mark.parametrize("rows", [slice(None), -1, slice(-3, None)])
def test_vector_carry(tanh, rows):
    inputs, h = tanh
    calls = [tanh_values(n, d) for n, d in ((0, 3), (1, 1), (5, 4), (3, 70))]
    check_same(inputs, h[rows], *(calls if isinstance(rows, slice) else calls[1:]))


def test_gradients_of_a_vector_carry(tanh):
    inputs, h = tanh
    calls = [tanh_values(n, d) for n, d in ((1, 1), (5, 4), (9, 5), (40, 70))]
    check_same(inputs, pt.grad((h**2).sum(), inputs), (*calls, tanh_values(0, 3))[0])
    check_same(inputs, pt.grad((h**2).sum(), inputs), *calls)
    check_same(inputs, pt.grad(h[-1].sum(), inputs), *calls)


def test_memory_layouts(tanh):
    inputs, h = tanh
    x, a, h0 = tanh_values(6, 4)
    transposed = np.asfortranarray(x), np.asfortranarray(a), h0
    strided = np.repeat(x, 2, 1)[:, ::2], a[::-1, ::-1], np.repeat(h0, 2)[::2]
    check_same(inputs, [h, h[-1], *pt.grad(h.sum(), inputs)], transposed, strided)


def test_products_of_every_shape():
    a, b, v = pt.matrix("a"), pt.matrix("b"), pt.matrix("v")

    def step(v, m, s, a, b):
        new = a @ m @ b / 10
        return new, v @ (m @ v) + s / 2, v @ a, pt.outer(v, m @ v), m.T @ m

    outputs = scan(
        step,
        sequences=[v],
        outputs_info=[a, pt.constant(0.0, dtype="float64"), None, None, None],
        non_sequences=[a, b],
    )
    calls = [
        (rng().normal(size=(d, d)), rng(1).normal(size=(d, d)), rng(2).normal(size=(4, d)))
        for d in (1, 2, 3, 20)
    ]
    check_same([a, b, v], outputs, *calls, rtol=1e-8)
    check_same([a, b, v], [o[-1] for o in outputs], *calls, rtol=1e-8)
    cost = outputs[1].sum() + outputs[3].sum()
    check_same([a, b, v], pt.grad(cost, [a, b, v]), *calls, rtol=1e-8)


def test_products_of_shapes_that_do_not_agree(tanh):
    inputs, h = tanh
    f = pytensor.function(inputs, h, mode="NUMBA")
    x, a, h0 = tanh_values(3, 4)
    with pytest.raises(ValueError, match="Incompatible array sizes"):
        f(x, a[:, :3], h0)


def test_lengths_that_do_not_broadcast():
    x, y = pt.matrix("x"), pt.vector("y")
    h = scan(lambda x, h, y: x + h * y, sequences=[x], outputs_info=[x[0]], non_sequences=[y])
    f = pytensor.function([x, y], h, mode="NUMBA")
    with pytest.raises(ValueError, match="Incompatible vectorized shapes"):
        f(np.ones((3, 4)), np.ones(3))


# Arrays of a few elements, whose shapes are known


def small_values():
    return rng().normal(size=(4, 3, 2)), rng(1).normal(size=(3, 2))


@pytest.fixture
def small():
    return [pt.tensor("x", shape=(None, 3, 2)), pt.matrix("h0", shape=(3, 2))]


VIEWS = {
    "row": lambda x: x[1],
    "last row": lambda x: x[-1],
    "number": lambda x: x[2, -1],
    "column": lambda x: x[:, 0],
    "slice": lambda x: x[1:, :1],
    "reversed": lambda x: x[::-1],
    "every other one from behind": lambda x: x[::-2, ::-1],
    "nothing": lambda x: x[3:],
    "view of a view": lambda x: x[::-1][:2, None][1:, 0, ::-1],
    "transposed": lambda x: x.T[1, ::-1],
    "slice of a transposed view": lambda x: x[1:].T,
    "axes of one": lambda x: x[:, :1].T[None],
    "known only when it runs": lambda x: x[: pt.switch(x[0, 0] > 0, 1, 2)],
}


def test_views(small):
    """Elements are read through a view, and an Op that is called gets it as an array."""

    def step(x, h):
        shown = [view(h * x) for view in VIEWS.values()]
        sums = [pt.cumsum(v).sum() + (v * 2).sum() for v in shown]
        sums.append((h * x[1:2] + h[:, 1:]).sum())
        return pt.tanh(h + x + sum(sums)), *shown[:-1], *sums

    outputs = scan(step, sequences=[small[0]], outputs_info=[small[1], *[None] * (2 * len(VIEWS))])
    check_same(small, outputs, small_values())
    cost = sum(o.sum() for o in outputs[: len(VIEWS)])
    check_same(small, pt.grad(cost, small), small_values(), rtol=1e-8)


UPDATES = {
    "row": lambda x, y: x[1].inc(y[0]),
    "number": lambda x, y: x[2, 0].set(y[0, 0]),
    "column": lambda x, y: x[:, -1].inc(y[:, 0]),
    "block": lambda x, y: x[1:, ::-1].set(y[:2]),
    "a number for many": lambda x, y: x[::2].inc(y[0, 1]),
    "one row for many": lambda x, y: x[:2].inc(y[0]),
    "some rows": lambda x, y: x[[2, 0]].inc(y[:2]),
    "one row for some": lambda x, y: x[[-1, 1]].set(y[:1]),
    "some columns": lambda x, y: x[:, [1]].inc(y[:, :1]),
    "one row twice": lambda x, y: x[[1, 1]].inc(y[:2]),
    "rows of a transposed view": lambda x, y: x.T[0].inc(y[:, 0]),
    "itself": lambda x, y: x[:2].inc(x[1:]),
    "known only when it runs": lambda x, y: x[pt.switch(y[0, 0] > 0, 1, 2)].inc(y[0]),
}


@pytest.mark.parametrize("in_place", [True, False])
def test_updates(small, in_place):
    def step(x, h):
        changed = [update(pt.exp(x) if in_place else h, h) for update in UPDATES.values()]
        weighted = [c * np.arange(6.0).reshape(c.type.shape) for c in changed]
        return pt.tanh(h * 0.5 + x), sum(w.sum() for w in weighted)

    outputs = scan(step, sequences=[small[0]], outputs_info=[small[1], None])
    check_same(small, outputs, small_values())


def test_a_step_on_small_arrays_calls_and_allocates_nothing(small, lowered):
    def step(x, h):
        gain = h @ h[0] / (1 + h[1, 1] ** 2)
        return pt.tanh(x + pt.outer(gain, x[:, 1] @ h)) + h[::-1, :1]

    h = scan(step, sequences=[small[0]], outputs_info=[small[1]])
    pytensor.function(small, h, mode="NUMBA")
    assert not re.search(r"np\.empty|\bf\d+\(", lowered[0])
    assert "stack_array" in lowered[0]


def test_a_product_that_is_one_number(small):
    def step(x, h):
        square = x[:1] @ h[:1].T
        return h + square, pt.cumsum(square), square

    outputs = scan(step, sequences=[small[0]], outputs_info=[small[1], None, None])
    check_same(small, outputs, small_values())


@pytest.mark.parametrize(("place", "wrong"), [(0, (4, 3, 3)), (1, (4, 2))])
def test_arrays_that_are_not_of_their_type(small, place, wrong):
    h = scan(lambda x, h: x + h, sequences=[small[0]], outputs_info=[small[1]])
    f = pytensor.function(small, h[-1], mode="NUMBA", trust_input=True)
    values = [*small_values()]
    values[place] = np.ones(wrong)
    with pytest.raises(ValueError, match="the static shape") as raised:
        f(*values)
    [text, *_] = str(raised.value).splitlines()  # PyTensor adds a hint
    assert text == "Scan: the shape of an array is not the static shape of its type"


# States that are handed on


@pytest.mark.parametrize("length", [2, 100])
def test_states_that_share_an_update(length):
    """One of them changes places with the scratch space of the update, the other is a copy."""
    x, a0, b0 = pt.matrix("x"), pt.vector("a0"), pt.vector("b0")

    def step(x, a, b, c):
        new = pt.tanh(pt.cumsum(a) - b + x)
        return new, new, new * c

    outputs = [o[-1] for o in scan(step, sequences=[x], outputs_info=[a0, b0, a0])]
    values = [
        (rng(n).normal(size=(n, length)), *rng(9).normal(size=(2, length))) for n in (1, 2, 5)
    ]
    check_same([x, a0, b0], outputs, *values)
    check_same([x, a0, b0], pt.grad(sum(o.sum() for o in outputs), [x, a0, b0]), *values)


def test_a_condition_that_the_carry_brings():
    """It stops the loop where the step reads it, not where it is written."""
    x = pt.vector("x")

    def step(x, total, stop):
        return (total + x, x > 1), until(stop)

    total, stop = scan(
        step,
        sequences=[x],
        outputs_info=[pt.constant(0.0, dtype="float64"), pt.constant(np.array(False))],
    )
    values = np.array([0.5, 2.0, 0.25, 4.0])
    check_same([x], [total, stop], (values,))
    check_same([x], [total[-1], stop[-1]], (values,))


def test_swapped_states_do_not_overwrite_each_other():
    a0, b0 = pt.vector("a0"), pt.vector("b0")
    a, b = scan(lambda a, b: (b, a + b), outputs_info=[a0, b0], n_steps=5)
    check_same([a0, b0], [a, b], (rng().normal(size=3), rng(1).normal(size=3)))
    check_same([a0, b0], [a[-1], b[-1]], (rng().normal(size=3), rng(1).normal(size=3)))


def test_swapped_numbers():
    a0, b0 = pt.scalar("a0"), pt.scalar("b0")
    a, b = scan(lambda a, b: (b, a), outputs_info=[a0, b0], n_steps=5)
    check_same([a0, b0], [a, b], (1.0, 2.0))
    check_same([a0, b0], [a[-1], b[-1]], (1.0, 2.0))
    check_same([a0, b0], pt.grad(a[-1] * 3 + b.sum(), [a0, b0]), (1.0, 2.0))


def test_a_state_read_again_after_its_update():
    x, h0 = pt.matrix("x"), pt.vector("h0")

    def step(x, h):
        new = h * 2 + x
        return new, new @ h, h.cumsum() + new

    outputs = scan(step, sequences=[x], outputs_info=[h0, None, None])
    values = rng().normal(size=(4, 3)), rng(1).normal(size=3)
    check_same([x, h0], outputs, values)
    check_same([x, h0], [o[-1] for o in outputs], values)


def test_a_state_that_echoes_a_row():
    x = pt.matrix("x")

    def step(x, total, before):
        return total + before, x

    total, _ = scan(step, sequences=[x], outputs_info=[pt.zeros(3), pt.zeros(3)])
    check_same([x], total, (rng().normal(size=(5, 3)),))


def test_one_result_kept_twice():
    x, h0 = pt.matrix("x"), pt.vector("h0")

    def step(x, h):
        new = h + x
        return new, new, new.sum()

    outputs = scan(step, sequences=[x], outputs_info=[h0, None, None])
    check_same([x, h0], outputs, (rng().normal(size=(4, 3)), rng(1).normal(size=3)))


def test_vectors_made_of_numbers():
    h0 = pt.vector("h0")
    h = scan(lambda h: pt.stack([h[1], h[0] + 0.5 * h[1]]) * 0.9, outputs_info=[h0], n_steps=6)
    check_same([h0], [h, h[-1], pt.grad(h.sum(), h0)], (rng().normal(size=2),))


# Lengths


def test_no_steps_and_an_unknown_row():
    x, n = pt.vector("x"), pt.lscalar("n")
    rows = scan(lambda x: x * pt.arange(3.0), non_sequences=[x], n_steps=n)
    check_same([x, n], rows, (np.ones(3), 4), (np.ones(3), 0))


def test_an_unknown_row_that_a_called_op_makes():
    x = pt.matrix("x")
    rows, last = scan(
        lambda x, h: (pt.sort(x), x.sum() + h), sequences=[x], outputs_info=[None, pt.zeros(())]
    )
    check_same([x], [rows, last[-1]], (rng().normal(size=(4, 3)),))


@pytest.mark.parametrize("rows", [slice(None), -1, slice(-3, None)])
def test_stop_condition(rows):
    x, bound = pt.vector("x"), pt.scalar("bound")

    def step(x, h, v, bound):
        new = h + x
        return (new, v * 0.5 + new, new**2), until(new > bound)

    outputs = scan(
        step,
        sequences=[x],
        outputs_info=[pt.constant(0.0, dtype="float64"), pt.ones(2), None],
        non_sequences=[bound],
    )
    calls = [(np.arange(8.0), b) for b in (-1.0, 5.0, 100.0)]
    check_same([x, bound], [o[rows] for o in outputs], *calls)
    check_same([x, bound], pt.grad(outputs[1][rows].sum(), x), *calls)


def test_truncated_gradients():
    x = pt.vector("x")
    h = scan(
        lambda x, h: 0.5 * h + x,
        sequences=[x],
        outputs_info=[pt.constant(0.0, dtype="float64")],
        truncate_gradient=3,
    )
    check_same([x], pt.grad(h[-1], x), (rng().normal(size=8),))


def test_a_sequence_that_is_too_short():
    x, n = pt.vector("x"), pt.lscalar("n")
    y = scan(lambda x, h: x + h, sequences=[x], outputs_info=[pt.zeros(())], n_steps=n)
    f = pytensor.function([x, n], y, mode="NUMBA")
    with pytest.raises(ValueError, match="fewer rows"):
        f(np.ones(3), 4)


# Values that are not tensors, and loops in loops


@pytest.mark.parametrize("trace", [True, False])
def test_random_generators(trace):
    generator = random_generator_type("rng")

    def step(x, h, rng):
        rng, draw = pt.random.normal(x, rng=rng, size=(2,)).owner.outputs
        return h + draw, rng

    h, final = scan(step, sequences=[pt.arange(5.0)], outputs_info=[pt.zeros(2), generator])
    ours, theirs = compile_both([generator], [h if trace else h[-1], final])
    given = rng(7)
    a, b = ours(given), theirs(rng(7))
    np.testing.assert_allclose(a[0], b[0])
    assert a[1].normal() == b[1].normal()
    assert given.normal() == rng(7).normal(), "the caller's generator was advanced"


def test_nested_loops_and_their_gradients():
    x, a = pt.matrix("x"), pt.scalar("a")

    def outer(row, total, a):
        h = scan(
            lambda x, h, a: a * h + x, sequences=[row], outputs_info=[total], non_sequences=[a]
        )
        return pt.sin(h[-1])

    h = scan(outer, sequences=[x], outputs_info=[pt.zeros(())], non_sequences=[a])
    calls = [(rng().normal(size=shape), 0.7) for shape in ((3, 4), (1, 1))]
    check_same([x, a], [h, *pt.grad(h.sum(), [x, a])], *calls)


def test_sparse_matrices_and_lists_as_invariants():
    import pytensor.sparse as ps
    import scipy.sparse

    matrix, h0 = ps.csr_matrix("matrix"), pt.vector("h0")
    h = scan(
        lambda h, m: ps.structured_dot(m, h[:, None])[:, 0] * 0.5,
        outputs_info=[h0],
        non_sequences=[matrix],
        n_steps=4,
    )
    ours, theirs = compile_both([matrix, h0], [h])
    values = scipy.sparse.csr_matrix(np.eye(3)[[1, 2, 0]]), rng().normal(size=3)
    np.testing.assert_allclose(ours(*values)[0], theirs(*values)[0])


def test_shared_state_is_updated():
    state = pytensor.shared(np.zeros(2))
    h = scan(lambda h: h + 1, outputs_info=[state], n_steps=3)
    f = pytensor.function([], h, updates={state: h[-1]}, mode="NUMBA")
    f()
    np.testing.assert_array_equal(state.get_value(), [3, 3])
    np.testing.assert_array_equal(f(), np.arange(4, 7)[:, None] * np.ones(2))


# The switch and the cache


def test_the_switch(ar1, lowered):
    inputs, h = ar1
    with use_lowering(False):
        pytensor.function(inputs, h, mode="NUMBA")
    assert lowered == []
    pytensor.function(inputs, h, mode="NUMBA")
    assert len(lowered) == 1


SCRIPT = """
import warnings; warnings.simplefilter("ignore")
import numpy as np, pytensor, pytensor.tensor as pt
import pytensor_loop.backends.numba
x, a = pt.vector("x"), pt.matrix("a")
h = pytensor.scan(lambda x, h, a: pt.tanh(a @ h) * x, sequences=[x], outputs_info=[pt.ones(2)],
                  non_sequences=[a], return_updates=False)
f = pytensor.function([x, a], h[-1].sum(), mode="NUMBA")
print(float(f(np.ones(3), np.eye(2))))
"""


def run_script(path, **env):
    import os

    flags = {"PYTENSOR_FLAGS": f"base_compiledir={path}"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        env=os.environ | flags | env,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return float(done.stdout.split()[0])


@pytest.mark.slow
def test_compiled_code_is_shared_between_processes(tmp_path):
    def files():
        return {f for f in tmp_path.rglob("*.nbc") if "scan" in f.name}

    first = run_script(tmp_path)
    kept = files()
    assert kept
    assert run_script(tmp_path) == first
    assert files() == kept
    theirs = run_script(tmp_path, PYTENSOR_LOOP_NUMBA="0")
    assert files() > kept
    assert theirs == pytest.approx(first, rel=1e-12)


def test_the_key_tells_loops_apart(ar1):
    def key(graph):
        [node] = [v.owner for v in ancestors(graph) if isinstance(v.owner_op, Scan)][:1]
        return loops.compile_loop(node.op, node, {})[1]

    (_, a, h0), h = ar1
    other = scan(lambda h, a: a + h, outputs_info=[h0], non_sequences=[a], n_steps=3)
    assert key([h]) == key([h])
    assert key([h]) != key([other])


# The fast functions


@pytest.mark.parametrize("name", ["exp", "expm1", "log", "tanh", "sigmoid"])
def test_fast_functions_are_accurate(name):
    exact = {"sigmoid": lambda x: 1 / (1 + np.exp(-x))}.get(name) or getattr(np, name)
    random = rng()
    x = {
        "log": np.exp(random.uniform(-744, 709, 2000)),
        "exp": random.uniform(-745, 709, 2000),
    }.get(name, np.concatenate([random.normal(size=1000) * 8, random.normal(size=1000) * 1e-3]))
    function = getattr(fast, name)

    @njit
    def apply(x):
        return np.array([function(v) for v in x])

    ours = apply(x)
    reference = exact(x.astype(np.longdouble))
    ulp = np.abs(ours - reference) / np.spacing(np.abs(reference.astype(float)))
    assert ulp.max() < 3
