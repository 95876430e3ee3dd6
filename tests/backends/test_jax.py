"""Loops on JAX: the results of plain Python loops, or an error that says why there are none."""

import subprocess
import sys

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor import function
from pytensor.graph.basic import Variable

from pytensor_loop import scan, taps


jax = pytest.importorskip("jax")

N_STEPS_UNKNOWN = (
    "the number of steps must be known when compiling to JAX, because an array of as many rows is "
    "needed, for `ys` or a gradient; fix n_steps or use another backend. "
    "`final` alone can have n_steps as an input"
)
LENGTHS = [0, 1, 2, 7]


def same_as_by_default(inputs, outputs, arguments):
    on_jax = function(inputs, outputs, mode="JAX")
    by_default = function(inputs, outputs)
    for values in arguments:
        for got, expected in zip(on_jax(*values), by_default(*values), strict=True):
            assert got.shape == expected.shape
            assert got.dtype == expected.dtype
            np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-12)


def message_of(error):
    """Return what was raised, without the hints that PyTensor adds to errors of a call."""
    return str(error.value).split("\nApply node that caused the error")[0].strip()


def zero(dtype="float64"):
    return pt.constant(np.zeros((), dtype))


def test_importing_the_package_does_not_import_jax():
    code = "import sys, pytensor_loop; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_values_are_those_of_a_python_loop():
    x, a = pt.dvector("x"), pt.dscalar("a")
    final, ys = scan(lambda c, v: (a * c + v, (c, a * c * v)), zero(), x)
    f = function([a, x], [final, *ys], mode="JAX")
    for n in LENGTHS:
        rows = np.random.default_rng(n).normal(size=n)
        level, levels, products = 0.0, [], []
        for v in rows:
            levels.append(level)
            products.append(0.5 * level * v)
            level = 0.5 * level + v
        got = f(0.5, rows)
        np.testing.assert_allclose(got[0], level)
        np.testing.assert_allclose(got[1], levels)
        np.testing.assert_allclose(got[2], products)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("truncate_gradient", [None, 3])
def test_gradients_with_lengths_known_at_the_call(reverse, truncate_gradient):
    x, a = pt.dvector("x"), pt.dscalar("a")
    final, ys = scan(
        lambda c, v: (a * c**2 + v, a * c + v),
        zero(),
        x,
        reverse=reverse,
        truncate_gradient=truncate_gradient,
    )
    grads = [*pt.grad((ys**2).sum(), [a, x]), *pt.grad(final, [a, x])]
    arguments = [(0.5, np.linspace(-1, 1, n)) for n in LENGTHS if n or not truncate_gradient]
    same_as_by_default([a, x], grads, arguments)


def test_higher_derivatives_with_lengths_known_at_the_call():
    x, a = pt.dvector("x"), pt.dscalar("a")
    final, ys = scan(lambda c, v: (a * c**2 + v, a * c + v), zero(), x)
    cost = (ys**2).sum() + final
    second = pt.grad(pt.grad(cost, a), [a, x])
    outputs = [*second, pt.grad(second[0], x), pytensor.gradient.jacobian(ys, x)]
    same_as_by_default([a, x], outputs, [(0.5, np.linspace(-1, 1, n)) for n in (1, 3)])


@pytest.mark.parametrize("offsets", [[-3, -1], [-2, -1], [-12, -1]])
def test_taps_and_their_gradients(offsets):
    past, x, a = pt.dvector("past"), pt.dvector("x"), pt.dscalar("a")

    def step(carry, v):
        new = a * carry.tap(offsets[0]) + 0.5 * carry.tap(-1) ** 2 + v
        return carry.push_tap(new), new

    final, ys = scan(step, taps(past, taps=offsets), x)
    cost = (ys**2).sum() + final.values.sum()
    outputs = [final.values, ys, *pt.grad(cost, [past, a, x])]
    before = np.linspace(0.1, 0.3, -offsets[0])
    same_as_by_default(
        [past, a, x], outputs, [(before, 0.5, np.linspace(-0.1, 0.1, n)) for n in LENGTHS]
    )


def test_nested_loops_and_their_gradients():
    x, a = pt.dmatrix("x"), pt.dscalar("a")

    def row_step(carry, row):
        last, products = scan(lambda d, v: (a * d + v, a * d * v), carry, row)
        return last, products.sum()

    final, ys = scan(row_step, zero(), x)
    outputs = [final, ys, *pt.grad(ys.sum() + final, [a, x])]
    arguments = [(0.5, np.ones(shape)) for shape in ((2, 3), (1, 1), (4, 1), (2, 0))]
    same_as_by_default([a, x], outputs, arguments)


def test_some_of_the_last_rows():
    x, a = pt.dmatrix("x"), pt.dscalar("a")
    _, (levels, products) = scan(lambda c, v: (a * c + v, (a * c + v, c * v)), pt.zeros(2), x)
    outputs = [
        *(rows[-3:] for rows in (levels, products)),
        *(rows[-12:] for rows in (levels, products)),
        levels[-2],
        products[-1],
        products[2],
        levels[:2],
    ]
    same_as_by_default(
        [a, x], outputs, [(0.5, np.random.default_rng(n).normal(size=(n, 2))) for n in (12, 13, 30)]
    )


def test_final_alone_takes_no_memory_for_the_rows():
    x0 = pt.dvector("x0")
    final, _ = scan(lambda c, _: (c * 0.5, c[::-1] + 1), x0, n_steps=1_234_567)
    f = function([x0], final, mode="JAX")
    assert "1234567," not in str(jax.make_jaxpr(f.vm.jit_fn)(np.ones(3)))


def test_n_steps_as_an_input():
    n, a = pt.iscalar("n"), pt.dvector("a")
    power, _ = scan(lambda c, _: (c * a, None), pt.ones_like(a), n_steps=n)
    f = function([a, n], power, mode="JAX")
    for value in (0, 1, 2, 4):
        np.testing.assert_allclose(f(np.arange(4.0), value), np.arange(4.0) ** value)


def test_n_steps_as_an_input_with_taps():
    n = pt.lscalar("n")
    start = pt.constant(np.array([0, 1]))
    final, _ = scan(lambda c, _: (c.push_tap(c[0] + c[1]), None), taps(start, [-2, -1]), n_steps=n)
    f = function([n], final.values, mode="JAX")
    for value, expected in ((0, [0, 1]), (1, [1, 1]), (10, [55, 89])):
        np.testing.assert_array_equal(f(value), expected)


@pytest.mark.parametrize("asks_for", ["carry in ys", "other ys", "gradient"])
def test_n_steps_as_an_input_is_refused_where_rows_are_needed(asks_for):
    n, a = pt.iscalar("n"), pt.dvector("a")
    final, (levels, others) = scan(lambda c, _: (c * a, (c * a, c + 1)), pt.ones_like(a), n_steps=n)
    output = {
        "carry in ys": levels,
        "other ys": others,
        "gradient": pt.grad(final.sum(), a),
    }[asks_for]
    f = function([a, n], output, mode="JAX")
    with pytest.raises(NotImplementedError) as error:
        f(np.ones(2), 3)
    assert message_of(error) == N_STEPS_UNKNOWN


def test_stop_condition():
    x0, x = pt.dscalar("x0"), pt.dvector("x")
    final, _, done = scan(lambda c, v: (c * 2 + v, None, c > 50), x0, x)
    f = function([x0, x], [final, done], mode="JAX")
    for start, n in ((1.0, 100), (1.0, 3), (60.0, 3), (1.0, 0)):
        level, stopped = start, False
        for _ in range(n):
            level, stopped = level * 2 + 1, level > 50
            if stopped:
                break
        got, done_ = f(start, np.ones(n))
        assert got == level
        assert done_ == stopped


def test_stop_condition_and_n_steps_as_an_input():
    n = pt.lscalar("n")
    final, _, done = scan(lambda c, _: (c + 1, None, c >= 4), zero("int64"), n_steps=n)
    f = function([n], [final, done], mode="JAX")
    assert [tuple(map(int, f(value))) for value in (0, 3, 5, 9)] == [(0, 0), (3, 0), (5, 1), (5, 1)]


def test_stop_condition_with_taps():
    start = pt.constant(np.array([0, 1]))
    final, _, done = scan(
        lambda c, _: (c.push_tap(c[0] + c[1]), None, c[1] > 50), taps(start, [-2, -1]), n_steps=99
    )
    rows, stopped = function([], [final.values, done], mode="JAX")()
    np.testing.assert_array_equal(rows, [55, 89])
    assert stopped


LENGTH_DEPENDS_ON_STOP = (
    "the loop 'growth' has a stop condition, so the length of `ys` is known only at run time, "
    "which JAX cannot express; ask for `final`, `done` and the gradient of `final` only, or use "
    "another backend"
)


def test_gradient_of_final_with_a_stop_condition():
    x0, a, x = pt.dscalar("x0"), pt.dscalar("a"), pt.dvector("x")
    final, _, done = scan(lambda c, v: (c**2 * a + v, None, c > 50), x0, x)
    f = function([x0, a, x], [final, done, *pt.grad(final, [x0, a, x])], mode="JAX")
    for start, n in ((2.0, 10), (2.0, 2), (60.0, 3), (2.0, 0)):
        rows = np.ones(n)
        # A step that is not run must not matter, not even as 0 * inf.
        rows[7:] = np.inf
        n_run, level, stop = 0, start, False
        while n_run < len(rows) and not stop:
            stop, level, n_run = level > 50, level**2 * 0.9 + rows[n_run], n_run + 1

        def run(x0, a, x, n_run=n_run):
            for t in range(n_run):
                x0 = x0**2 * a + x[t]
            return x0

        got = f(start, 0.9, rows)
        assert got[1] == stop
        expected = [level, *jax.grad(run, (0, 1, 2))(start, 0.9, rows)]
        for value, by_hand in zip([got[0], *got[2:]], expected, strict=True):
            np.testing.assert_allclose(value, by_hand)


def test_gradient_of_final_taps_with_a_stop_condition():
    past, a, x = pt.dvector("past"), pt.dscalar("a"), pt.dmatrix("x")

    def step(carry, v):
        new = a * carry[0] * carry[1] + v
        return carry.push_tap(new), None, carry[1].sum() > 50

    final, _, _ = scan(step, taps(past[:, None] * np.array([1.0, 2.0]), [-2, -1]), x)
    cost = (final.values * np.array([[1.0], [3.0]])).sum()
    f = function([past, a, x], [cost, *pt.grad(cost, [past, a, x])], mode="JAX")

    def run(past, a, x, n_run):
        older, newer = jax.numpy.outer(past, np.array([1.0, 2.0]))
        for t in range(n_run):
            older, newer = newer, a * older * newer + x[t]
        return (older + 3 * newer).sum()

    arguments = np.array([2.0, 3.0]), 0.9, np.ones((9, 2))
    got = f(*arguments)
    np.testing.assert_allclose(got[0], run(*arguments, 3))
    for value, expected in zip(got[1:], jax.grad(run, (0, 1, 2))(*arguments, 3), strict=True):
        np.testing.assert_allclose(value, expected)


@pytest.mark.parametrize(
    "ask_for",
    [
        lambda ys, x0: ys,
        lambda ys, x0: ys.sum(),
        lambda ys, x0: ys.shape[0],
        lambda ys, x0: pt.grad(ys.sum(), x0),
        lambda ys, x0: pt.grad(scan(lambda c, y: (c + y, None), zero(), ys)[0], x0),
        lambda ys, x0: pt.grad(ys[-1], x0) + ys.shape[0],
        lambda ys, x0: pt.grad(ys[-1], x0) * pt.ones(ys.shape[0]).sum(),
    ],
)
def test_ys_of_a_loop_with_a_stop_condition_are_refused(ask_for):
    x0 = pt.dscalar("x0")
    _, ys, _ = scan(lambda c, _: (c**2, c * 3, c > 50), x0, n_steps=100, name="growth")
    f = function([x0], ask_for(ys, x0), mode="JAX")
    with pytest.raises(NotImplementedError) as error:
        f(2.0)
    assert message_of(error) == LENGTH_DEPENDS_ON_STOP


def test_a_generator_in_the_carry_advances_at_every_step_and_call():
    rng, sigma = pytensor.shared(np.random.default_rng(0)), pt.dscalar("sigma")

    def step(carry, _):
        rng_, level = carry
        rng_, noise = pt.random.normal(scale=sigma, rng=rng_, return_next_rng=True)
        return (rng_, level + noise), level + noise

    (last_rng, _), walk = scan(step, (rng, zero()), n_steps=50)
    with pytest.warns(UserWarning, match="will not be used in the compiled JAX graph"):
        f = function([sigma], walk, updates={rng: last_rng}, mode="JAX")
    first, second = f(1.0), f(1.0)
    assert len(np.unique(np.diff(first))) == 49
    assert not np.allclose(first, second)
    np.testing.assert_array_equal(f(0.0), np.zeros(50))


def test_xs_of_different_lengths_are_refused():
    x, y = pt.dvector("x"), pt.dvector("y")
    final, _ = scan(lambda c, row: (c * row["a"] + row["b"], None), zero(), {"a": x, "b": y})
    f = function([x, y], final, mode="JAX")
    assert f(np.ones(3), np.ones(3)) == 3.0
    with pytest.raises(ValueError, match=r"xs\['a'\] 3, xs\['b'\] 2"):
        f(np.ones(3), np.ones(2))


def test_a_range_up_to_a_length():
    x = pt.dvector("x")
    _, ys = scan(lambda c, i: (c, x[i] * x[i + 1]), (), pt.arange(x.shape[0] - 1))
    same_as_by_default([x], [ys, pt.grad(ys.sum(), x)], [(np.arange(n) + 1.0,) for n in (1, 2, 9)])


@pytest.mark.parametrize(
    "write",
    [
        lambda x, y: x[1:3].set(y[:2]),
        lambda x, y: x[1:3].inc(y[:2]),
        lambda x, y: x[-1].inc(y[0]),
        lambda x, y: x[0, np.uint8(1) :].set(y[0, 1:]),
        lambda x, y: x[:, 1:].set(y[:, :1]),
        lambda x, y: x[2, ::2].inc(y[0, ::2]),
        lambda x, y: x[::-1].set(y),
        lambda x, y: x[3:].set(y[3:]),
        lambda x, y: x[1:].inc(y[0, 0]),
        lambda x, y: x[y.shape[0] // 2 :].inc(y[y.shape[0] // 2 :])[::-1],
    ],
)
def test_writing_to_a_part_of_an_array(write):
    x, y = pt.dmatrix("x"), pt.dmatrix("y")
    rng = np.random.default_rng(0)
    same_as_by_default([x, y], [write(x, y)], [(rng.normal(size=(3, 4)), rng.normal(size=(3, 4)))])


def test_scalars_computed_from_shapes_have_their_dtype():
    x = pt.dvector("x")
    n = x.shape[0]
    scalars = [
        n + 1,
        n // 2,
        n / 2,
        pt.minimum(n, 3),
        pt.switch(n > 2, n, -n),
        n.astype("int8") * 2,
    ]
    same_as_by_default([x], list(map(_as_variable, scalars)), [(np.ones(5),), (np.ones(0),)])


def _as_variable(value) -> Variable:
    return pt.as_tensor(value)


def test_n_steps_as_an_input_that_disagrees_with_xs():
    """JAX cannot see it when it compiles; the error comes when the result is read."""
    x, n = pt.dvector("x"), pt.iscalar("n")
    final, _ = scan(lambda c, v: (c + v, None), 0.0, x, n_steps=n)
    f = function([x, n], final, mode="JAX")

    assert f(np.ones(3), 3) == 3.0
    message = "the number of steps is not the same for all: xs 3, n_steps 2"

    def run():
        np.asarray(f(np.ones(3), 2))
        jax.effects_barrier()

    with pytest.raises(jax.errors.JaxRuntimeError, match=message):
        run()
