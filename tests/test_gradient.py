"""Gradients: exact, to the third order, through a stop, with no steps, in both modes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.gradient import grad, hessian, jacobian, pushforward

from pytensor_loop import scan, taps
from pytensor_loop._tree import Tree


def differences(cost: Callable[..., float], values: list[np.ndarray], h: float = 1e-6) -> list[Any]:
    """Central differences of a cost, entry by entry."""
    gradients = []
    for k, value in enumerate(values):
        gradient = np.zeros_like(value)
        for index in np.ndindex(value.shape):
            shifted = []
            for sign in (1, -1):
                moved = [v.copy() for v in values]
                moved[k][index] += sign * h
                shifted.append(cost(*moved))
            gradient[index] = (shifted[0] - shifted[1]) / (2 * h)
        gradients.append(gradient)
    return gradients


def everything(reverse: bool, stops: bool) -> tuple[list[Any], Any]:
    """A cost that depends on init, taps, xs with taps, and captured variables, in every way."""
    init, past = pt.dvector("init"), pt.dmatrix("past")
    x, w, bias = pt.dvector("x"), pt.dmatrix("w"), pt.dscalar("bias")

    def step(carry: Any, row: Any) -> Any:
        h, count = carry["h"], carry["count"]
        last, deep = carry["past"]
        new = pt.tanh(w @ h + row[0] * row.tap(2) + bias**2)
        pushed = 0.5 * last * h.sum() - 0.3 * deep + pt.cast(count, "float64") * new
        y = {"new": new, "old": h, "deep": deep * row[0], "pushed": pushed}
        new_carry = {"h": new, "past": carry["past"].push_tap(pushed), "count": count + 1}
        return (new_carry, y, count > 2) if stops else (new_carry, y)

    state = {"h": init, "past": taps(past, [-1, -3]), "count": 0}
    final, ys, *_ = scan(step, state, taps(x, [0, 2]), reverse=reverse)
    weights = iter(range(1, 100))
    parts = [final["h"], final["past"].values, *Tree.of(ys).leaves]
    cost = sum((pt.sin(part) * next(weights)).sum() for part in parts)
    return [init, past, x, w, bias], cost


VALUES = [
    np.array([0.3, -0.2]),
    np.array([[0.1, 0.2], [0.3, -0.4], [0.5, 0.6]]),
    np.array([0.5, -0.1, 0.9, 0.3, 0.2, -0.7, 0.4]),
    np.array([[0.2, -0.5], [0.4, 0.1]]),
    np.array(0.7),
]


def assert_gradients_are_those_of_differences(reverse: bool, stops: bool, mode: str) -> None:
    inputs, cost = everything(reverse, stops)
    with pytensor.config.change_flags(cxx=""):
        value = pytensor.function(inputs, cost, mode="FAST_COMPILE")
    gradient = pytensor.function(inputs, grad(cost, inputs), mode=mode)

    got = gradient(*VALUES)
    for mine, expected in zip(got, differences(value, VALUES), strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-6, atol=1e-8)
    if stops and reverse:  # four of the five steps, from the last row: none of them reads xs[0]
        assert got[2][0] == 0


@pytest.mark.parametrize(("reverse", "stops"), [(False, False), (True, False), (False, True)])
def test_gradients_by_finite_differences(python_mode: str, reverse: bool, stops: bool) -> None:
    """With respect to init, taps, xs and what is captured."""
    assert_gradients_are_those_of_differences(reverse, stops, python_mode)


@pytest.mark.slow
def test_gradients_through_a_stop_in_reverse(native_mode: str) -> None:
    """A stop leaves zeros behind it."""
    assert_gradients_are_those_of_differences(True, True, native_mode)


def test_gradients_on_jax() -> None:
    """The same, where lengths are known when the function is called."""
    pytest.importorskip("jax")
    inputs, cost = everything(reverse=False, stops=False)
    gradient = pytensor.function(inputs, grad(cost, inputs), mode="JAX")
    with pytensor.config.change_flags(cxx=""):
        expected = pytensor.function(inputs, grad(cost, inputs), mode="FAST_COMPILE")

    for mine, theirs in zip(gradient(*VALUES), expected(*VALUES), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10)


def test_third_order(native_mode: str) -> None:
    """Five squarings: x**32 and its derivatives."""
    x = pt.dscalar("x")
    r, _ = scan(lambda c, _: (c**2, None), x, n_steps=5)
    g1 = grad(r, x)
    g2 = grad(g1, x)
    f = pytensor.function([x], [r, g1, g2, grad(g2, x)], mode=native_mode)

    v = 0.95
    powers = [v**32, 32 * v**31, 32 * 31 * v**30, 32 * 31 * 30 * v**29]
    np.testing.assert_allclose(f(v), powers, rtol=1e-12)


def test_a_complex_step_agrees(python_mode: str) -> None:
    """The derivative of a loop by evaluating it at a complex number."""
    z = pt.zscalar("z")
    x = pt.dscalar("x")

    def final(start: Any) -> Any:
        return scan(lambda c, t: (pt.sin(c) * start + c / t, None), start, np.arange(1.0, 6.0))[0]

    at_complex = pytensor.function([z], final(z), mode=python_mode)
    gradient = pytensor.function([x], grad(final(x), x), mode=python_mode)

    h = 1e-30
    np.testing.assert_allclose(gradient(0.8), at_complex(0.8 + 1j * h).imag / h, rtol=1e-13)


def test_jacobian_and_hessian(python_mode: str) -> None:
    """Of rows, and of a sum of them."""
    x = pt.dvector("x")
    _, ys = scan(lambda c, v: (c * v, c * v), 1.0, x)
    f = pytensor.function([x], [jacobian(ys, x), hessian(ys.sum(), x)], mode=python_mode)

    value = np.array([2.0, 3.0, 5.0])
    jac, hes = f(value)
    np.testing.assert_allclose(jac, [[1, 0, 0], [3, 2, 0], [15, 10, 6]])
    np.testing.assert_allclose(hes, [[0, 1 + 5, 3], [1 + 5, 0, 2], [3, 2, 0]])


@pytest.mark.parametrize("stops", [False, True])
def test_forward_mode(python_mode: str, stops: bool) -> None:
    """The tangent is the Jacobian times the direction."""
    inputs, cost = everything(reverse=False, stops=stops)
    directions = [value * 0 + 0.1 * (k + 1) for k, value in enumerate(VALUES)]
    tangent = pushforward(cost, inputs, [pt.constant(d) for d in directions])
    f = pytensor.function(inputs, [tangent, *grad(cost, inputs)], mode=python_mode)

    got, *gradients = f(*VALUES)
    dot = sum(np.vdot(g, d) for g, d in zip(gradients, directions, strict=True))
    np.testing.assert_allclose(got, dot, rtol=1e-10)


def test_second_order_and_forward_mode_of_the_old_carry(native_mode: str) -> None:
    """PyTensor's C and Python loops lose what the gradient of this gradient reads."""
    x = pt.dvector("x")
    final, ys = scan(lambda c, v: (c * v, c), 1.0, x)
    cost = final + (ys**2).sum()
    tangent = pushforward(cost, [x], [pt.constant([1.0, 1.0, 1.0])])
    f = pytensor.function([x], [hessian(cost, x), tangent, grad(cost, x)], mode=native_mode)

    # The cost is abc + 1 + a**2 + (ab)**2.
    a, b, c = 0.1, 0.2, 0.3
    second, forward, first = f(np.array([a, b, c]))
    expected = [[2 + 2 * b**2, c + 4 * a * b, b], [c + 4 * a * b, 2 * a**2, a], [b, a, 0.0]]
    np.testing.assert_allclose(second, expected, rtol=1e-12)
    np.testing.assert_allclose(forward, first.sum(), rtol=1e-12)


def test_no_steps_is_the_identity(native_mode: str) -> None:
    """Also for a symbolic number of steps; what the steps would have read gets zeros."""
    x0, w, x, n = pt.dvector("x0"), pt.dmatrix("w"), pt.dmatrix("x"), pt.iscalar("n")
    counted, _ = scan(lambda c, _: (w @ c, None), x0, n_steps=n)
    final, ys = scan(lambda c, row: (w @ c + row, {"old": c, "x": row * 2}), x0, x)
    cost = (counted * final).sum() + ys["old"].sum() + ys["x"].sum()
    f = pytensor.function([x0, w, x, n], [cost, *grad(cost, [x0, w, x])], mode=native_mode)

    value, dx0, dw, dx = f([1.0, 2.0], np.eye(2), np.zeros((0, 2)), 0)
    assert value == 5.0
    np.testing.assert_array_equal(dx0, [2.0, 4.0])
    np.testing.assert_array_equal(dw, np.zeros((2, 2)))
    assert dx.shape == (0, 2)


def test_truncated_gradient(python_mode: str) -> None:
    """Gradients go back so many steps and no further."""
    x = pt.dvector("x")

    def gradient(steps: int | None) -> Any:
        final, _ = scan(lambda c, v: (c * 0.5 + v, None), 0.0, x, truncate_gradient=steps)
        return pytensor.function([x], grad(final, x), mode=python_mode)(np.ones(5))

    np.testing.assert_allclose(gradient(None), [0.0625, 0.125, 0.25, 0.5, 1.0])
    np.testing.assert_allclose(gradient(2), [0.0, 0.0, 0.0, 0.5, 1.0])


def test_integer_and_boolean_leaves_are_not_differentiated(python_mode: str) -> None:
    """Nor is a generator; the float leaf beside them is."""
    x = pt.dscalar("x")
    rng = pytensor.shared(np.random.default_rng(0))

    def step(carry: Any, t: Any) -> Any:
        i, flag, v, generator = carry
        next_rng, noise = pt.random.normal(rng=generator, return_next_rng=True)
        new = v * 1.1 + t * pt.cast(i, "float64") + pt.switch(flag, 0.0, 0.0 * noise)
        return (i + 1, ~flag, new, next_rng), v

    _, ys = scan(step, (0, False, x, rng), np.arange(10.0))
    gradient = pytensor.function([x], grad(ys.sum(), x), mode=python_mode)(1.0)

    np.testing.assert_allclose(gradient, (1.1**10 - 1) / 0.1)


def test_the_condition_carries_no_gradient(python_mode: str) -> None:
    """What only decides when to stop has gradient zero."""
    x, limit = pt.dscalar("x"), pt.dscalar("limit")
    final, _, done = scan(lambda c, _: (c * 2, None, c > limit), x, n_steps=20)
    gradients = grad(final, [x, limit], disconnected_inputs="ignore")
    f = pytensor.function([x, limit], [final, done, *gradients], mode=python_mode)

    assert [float(v) for v in f(1.0, 10.0)] == [32.0, 1.0, 32.0, 0.0]


def test_gradient_of_a_nested_loop(python_mode: str) -> None:
    """With inner loops of no steps too."""
    x, w = pt.dmatrix("x"), pt.dscalar("w")

    def outer(carry: Any, row: Any) -> Any:
        h, _ = scan(lambda h, v: (h * w + v, None), row[0], row[1:])
        return carry, h

    _, features = scan(outer, None, x)
    f = pytensor.function([x, w], [features, grad(features.sum(), w)], mode=python_mode)

    values, gradient = f([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], 2.0)
    np.testing.assert_allclose(values, [11.0, 32.0])
    np.testing.assert_allclose(gradient, 27.0)
    values, gradient = f([[1.0], [4.0]], 2.0)
    np.testing.assert_allclose(values, [1.0, 4.0])
    assert gradient == 0.0
