"""Loops to measure, each written for PyTensor, for ``jax.lax.scan`` and by hand for Numba.

A problem has variants: ``trace`` (every row), ``final`` (the last state), ``grad`` (of a number
that the loop computes). A variant that makes no sense for a problem is absent.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numba
import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.scan.utils import until
from pytensor.tensor.random.type import random_generator_type


jax.config.update("jax_enable_x64", True)
jit = numba.njit(fastmath=True, error_model="numpy")


def old_scan(step, **kwargs):
    """Return ``pytensor.scan`` in its new calling convention."""
    return pytensor.scan(step, return_updates=False, **kwargs)


@dataclass(frozen=True)
class Problem:
    """One loop.

    Parameters
    ----------
    name
        Its name in tables.
    values
        The arguments of every implementation, as NumPy arrays.
    graph
        Returns symbolic inputs, and a list of symbolic outputs for each variant.
    by_jax, by_hand
        A function of ``values`` for each variant.
    random
        Whether the results are draws, which implementations need not share.
    """

    name: str
    values: list
    graph: Callable
    by_jax: dict = field(default_factory=dict)
    by_hand: dict = field(default_factory=dict)
    random: bool = False


# A scalar that decays


@jit
def _ar1_trace(x, a, h):
    out = np.empty(x.shape[0])
    state = h.item()
    slope = a.item()
    for t in range(x.shape[0]):
        state = slope * state + x[t]
        out[t] = state
    return out


@jit
def _ar1_final(x, a, h):
    state = h.item()
    slope = a.item()
    for t in range(x.shape[0]):
        state = slope * state + x[t]
    return state


@jit
def _ar1_grad(x, a, h):
    states = _ar1_trace(x, a, h)
    slope = a.item()
    back, grad = 1.0, 0.0
    for t in range(x.shape[0] - 1, 0, -1):
        grad += back * states[t - 1]
        back *= slope
    return grad + back * h.item(), back * slope


def ar1(n=100_000):
    """Return ``h = a h + x``."""

    def graph():
        x, a, h0 = pt.vector("x"), pt.scalar("a"), pt.scalar("h0")
        h = old_scan(lambda x, h, a: a * h + x, sequences=[x], outputs_info=[h0], non_sequences=[a])
        return [x, a, h0], {"trace": [h], "final": [h[-1]], "grad": pt.grad(h[-1], [a, h0])}

    def run(x, a, h):
        return jax.lax.scan(lambda h, x: (a * h + x,) * 2, h, x)

    rng = np.random.default_rng(1)
    return Problem(
        "AR(1)",
        [rng.normal(size=n), np.array(0.9), np.array(0.1)],
        graph,
        {
            "trace": jax.jit(lambda *v: run(*v)[1]),
            "final": jax.jit(lambda *v: run(*v)[0]),
            "grad": jax.jit(jax.grad(lambda *v: run(*v)[0], (1, 2))),
        },
        {"trace": _ar1_trace, "final": _ar1_final, "grad": _ar1_grad},
    )


# A vector through a matrix


@jit
def _tanh_trace(x, a, h):
    out = np.empty_like(x)
    state = h
    for t in range(x.shape[0]):
        np.dot(a, state, out[t])
        for j in range(h.shape[0]):
            out[t, j] = np.tanh(out[t, j] + x[t, j])
        state = out[t]
    return out


@jit
def _tanh_final(x, a, h):
    state, new = h.copy(), np.empty_like(h)
    for t in range(x.shape[0]):
        np.dot(a, state, new)
        for j in range(h.shape[0]):
            state[j] = np.tanh(new[j] + x[t, j])
    return state


@jit
def _tanh_grad(x, a, h):
    states = _tanh_trace(x, a, h)
    n, d = x.shape
    back, inner = np.ones(d), np.empty((n, d))
    columns = np.ascontiguousarray(a.T)
    for t in range(n - 1, -1, -1):
        for j in range(d):
            inner[t, j] = back[j] * (1 - states[t, j] ** 2)
        np.dot(columns, inner[t], back)
    grad = np.dot(inner[1:].T, states[:-1]) + np.outer(inner[0], h)
    return grad, back


def tanh(d, n=10_000):
    """Return ``h = tanh(A h + x)``."""

    def graph():
        x, a, h0 = pt.matrix("x"), pt.matrix("a"), pt.vector("h0")
        h = old_scan(
            lambda x, h, a: pt.tanh(a @ h + x), sequences=[x], outputs_info=[h0], non_sequences=[a]
        )
        cost = h[-1].sum()
        return [x, a, h0], {"trace": [h], "final": [h[-1]], "grad": pt.grad(cost, [a, h0])}

    def run(x, a, h):
        return jax.lax.scan(lambda h, x: (jnp.tanh(a @ h + x),) * 2, h, x)

    rng = np.random.default_rng(2)
    # A rotation and small inputs: gradients that vanish would measure subnormal arithmetic.
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    return Problem(
        f"tanh d={d}",
        [rng.normal(size=(n, d)) * 1e-3, rotation, rng.normal(size=d) * 1e-3],
        graph,
        {
            "trace": jax.jit(lambda *v: run(*v)[1]),
            "final": jax.jit(lambda *v: run(*v)[0]),
            "grad": jax.jit(jax.grad(lambda *v: run(*v)[0].sum(), (1, 2))),
        },
        {"trace": _tanh_trace, "final": _tanh_final, "grad": _tanh_grad},
    )


# GARCH(1, 1)


@jit
def _garch_value(e, omega, alpha, beta):
    s, total = 1.0, 0.0
    w, a, b = omega.item(), alpha.item(), beta.item()
    for t in range(e.shape[0]):
        total -= 0.5 * (np.log(s) + e[t] ** 2 / s)
        s = w + a * e[t] ** 2 + b * s
    return total


@jit
def _garch_grad(e, omega, alpha, beta):
    n = e.shape[0]
    s = np.empty(n)
    w, a, b = omega.item(), alpha.item(), beta.item()
    s[0], total = 1.0, 0.0
    for t in range(n):
        total -= 0.5 * (np.log(s[t]) + e[t] ** 2 / s[t])
        if t + 1 < n:
            s[t + 1] = w + a * e[t] ** 2 + b * s[t]
    back, gw, ga, gb = 0.0, 0.0, 0.0, 0.0
    for t in range(n - 1, -1, -1):
        if t + 1 < n:
            gw += back
            ga += back * e[t] ** 2
            gb += back * s[t]
        back = b * back - 0.5 * (1 / s[t] - e[t] ** 2 / s[t] ** 2)
    return total, gw, ga, gb


def garch(n=1974):
    """Return the log-likelihood of GARCH(1, 1)."""

    def graph():
        e = pt.vector("e")
        parameters = [pt.scalar(name) for name in ("omega", "alpha", "beta")]

        def step(e, s, total, omega, alpha, beta):
            return omega + alpha * e**2 + beta * s, total - 0.5 * (pt.log(s) + e**2 / s)

        _, total = old_scan(
            step,
            sequences=[e],
            outputs_info=[pt.constant(1.0, dtype="float64"), pt.constant(0.0, dtype="float64")],
            non_sequences=parameters,
        )
        value = total[-1]
        return [e, *parameters], {
            "final": [value],
            "grad": [value, *pt.grad(value, parameters)],
        }

    def value(e, omega, alpha, beta):
        def step(carry, e):
            s, total = carry
            return (
                omega + alpha * e**2 + beta * s,
                total - 0.5 * (jnp.log(s) + e**2 / s),
            ), None

        return jax.lax.scan(step, (1.0, 0.0), e)[0][1]

    rng = np.random.default_rng(3)
    return Problem(
        "GARCH(1,1)",
        [rng.normal(size=n), np.array(0.1), np.array(0.1), np.array(0.8)],
        graph,
        {"final": jax.jit(value), "grad": jax.jit(jax.value_and_grad(value, (1, 2, 3)))},
        {"final": _garch_value, "grad": _garch_grad},
    )


# The logistic map


@jit
def _logistic_trace(r, x):
    out = np.empty(100_000)
    state, rate = x.item(), r.item()
    for t in range(out.shape[0]):
        state = rate * state * (1.0 - state)
        out[t] = state
    return out


@jit
def _logistic_final(r, x):
    state, rate = x.item(), r.item()
    for _ in range(100_000):
        state = rate * state * (1.0 - state)
    return state


def logistic():
    """Return ``x = r x (1 - x)``, in a regime without chaos."""

    def graph():
        r, x0 = pt.scalar("r"), pt.scalar("x0")
        x = old_scan(
            lambda x, r: r * x * (1 - x), outputs_info=[x0], non_sequences=[r], n_steps=100_000
        )
        return [r, x0], {"trace": [x], "final": [x[-1]]}

    def run(r, x):
        return jax.lax.scan(lambda x, _: (r * x * (1 - x),) * 2, x, length=100_000)

    return Problem(
        "logistic map",
        [np.array(3.2), np.array(0.4)],
        graph,
        {"trace": jax.jit(lambda *v: run(*v)[1]), "final": jax.jit(lambda *v: run(*v)[0])},
        {"trace": _logistic_trace, "final": _logistic_final},
    )


# A Kalman filter of a level and a slope


@jit
def _kalman_value(y, variances):
    a0, a1 = 0.0, 0.0
    p00, p01, p11 = 10.0, 0.0, 10.0
    q0, q1, r = variances
    total = 0.0
    for t in range(y.shape[0]):
        a0 += a1
        p00, p01, p11 = p00 + 2 * p01 + p11 + q0, p01 + p11, p11 + q1
        f = p00 + r
        v = y[t] - a0
        k0, k1 = p00 / f, p01 / f
        total -= 0.5 * (np.log(f) + v * v / f)
        a0 += k0 * v
        a1 += k1 * v
        p00, p01, p11 = p00 - k0 * p00, p01 - k0 * p01, p11 - k1 * p01
    return total


def _kalman_step(  # noqa: PLR0913, PLR0917  (the symbols of the textbook)
    xp, outer, transition, noise, observe, r, y, a, p, total
):
    """Return the new state and covariance, and the log-likelihood so far."""
    a = transition @ a
    p = transition @ p @ transition.T + noise
    v = y - observe @ a
    pz = p @ observe
    f = observe @ pz + r
    gain = pz / f
    return a + gain * v, p - outer(gain, pz), total - 0.5 * (xp.log(f) + v**2 / f)


def kalman(n=1000):
    """Return the log-likelihood of a local linear trend."""
    transition = np.array([[1.0, 1.0], [0.0, 1.0]])
    observe = np.array([1.0, 0.0])

    def graph():
        y, variances = pt.vector("y"), pt.vector("variances", shape=(3,))
        noise = pt.diag(variances[:2])
        r = variances[2]
        f, z = pt.constant(transition), pt.constant(observe)

        def step(y, a, p, total, noise, r):
            return _kalman_step(pt, pt.outer, f, noise, z, r, y, a, p, total)

        _, _, total = old_scan(
            step,
            sequences=[y],
            outputs_info=[
                pt.zeros(2),
                pt.constant(np.eye(2) * 10),
                pt.constant(0.0, dtype="float64"),
            ],
            non_sequences=[noise, r],
        )
        value = total[-1]
        return [y, variances], {"final": [value], "grad": [value, pt.grad(value, variances)]}

    def value(y, variances):
        def step(carry, y):
            new = _kalman_step(
                jnp,
                jnp.outer,
                transition,
                jnp.diag(variances[:2]),
                observe,
                variances[2],
                y,
                *carry,
            )
            return new, None

        return jax.lax.scan(step, (jnp.zeros(2), jnp.eye(2) * 10, 0.0), y)[0][2]

    rng = np.random.default_rng(4)
    return Problem(
        "Kalman 2",
        [rng.normal(size=n).cumsum(), np.array([0.5, 0.1, 1.0])],
        graph,
        {"final": jax.jit(value), "grad": jax.jit(jax.value_and_grad(value, 1))},
        {"final": _kalman_value},
    )


# Newton's method, many roots in turn, each until it converges


@jit
def _newton_final(a):
    target = a.item()
    x = 1.0
    for _ in range(100_000):
        new = x - 1e-3 * (x - target / x)
        done = abs(new - x) < 1e-12
        x = new
        if done:
            break
    return x


def newton():
    """Return a square root by damped Newton steps; stops after some thousands."""

    def graph():
        a = pt.scalar("a")

        def step(x, a):
            new = x - 1e-3 * (x - a / x)
            return new, until(pt.abs(new - x) < 1e-12)

        x = old_scan(
            step,
            outputs_info=[pt.constant(1.0, dtype="float64")],
            non_sequences=[a],
            n_steps=100_000,
        )
        return [a], {"trace": [x], "final": [x[-1]]}

    def final(a):
        def body(carry):
            i, x, _ = carry
            new = x - 1e-3 * (x - a / x)
            return i + 1, new, jnp.abs(new - x) < 1e-12

        return jax.lax.while_loop(
            lambda carry: (carry[0] < 100_000) & ~carry[2], body, (0, 1.0, False)
        )[1]

    return Problem(
        "Newton, stopped",
        [np.array(2.0)],
        graph,
        {"final": jax.jit(final)},
        {"final": _newton_final},
    )


# A random walk that carries its generator


@jit
def _walk_trace(rng):
    out = np.empty(10_000)
    x = 0.0
    for t in range(out.shape[0]):
        x += rng.normal()
        out[t] = x
    return out


def random_walk():
    """Return a Gaussian random walk."""

    def graph():
        rng = random_generator_type("rng")

        def step(x, rng):
            rng, draw = pt.random.normal(rng=rng).owner.outputs
            return x + draw, rng

        x, _ = old_scan(step, outputs_info=[pt.constant(0.0, dtype="float64"), rng], n_steps=10_000)
        return [rng], {"trace": [x], "final": [x[-1]]}

    return Problem(
        "random walk",
        [np.random.default_rng(5)],
        graph,
        by_hand={"trace": _walk_trace},
        random=True,
    )


# A loop in a loop


@jit
def _nested_final(x, a):
    total, slope = 0.0, a.item()
    for i in range(x.shape[0]):
        h = total
        for j in range(x.shape[1]):
            h = slope * h + x[i, j]
        total = np.sin(h)
    return total


def nested(n=1000, m=20):
    """Return a loop each of whose steps is a short loop."""

    def graph():
        x, a = pt.matrix("x"), pt.scalar("a")

        def outer(row, total, a):
            h = old_scan(
                lambda x, h, a: a * h + x, sequences=[row], outputs_info=[total], non_sequences=[a]
            )
            return pt.sin(h[-1])

        total = old_scan(
            outer,
            sequences=[x],
            outputs_info=[pt.constant(0.0, dtype="float64")],
            non_sequences=[a],
        )
        return [x, a], {"final": [total[-1]]}

    def final(x, a):
        def outer(total, row):
            h, _ = jax.lax.scan(lambda h, x: (a * h + x, None), total, row)
            return jnp.sin(h), None

        return jax.lax.scan(outer, 0.0, x)[0]

    rng = np.random.default_rng(6)
    return Problem(
        "nested",
        [rng.normal(size=(n, m)), np.array(0.9)],
        graph,
        {"final": jax.jit(final)},
        {"final": _nested_final},
    )


PROBLEMS = {
    p.name: p
    for p in (
        ar1(),
        *(tanh(d) for d in (1, 4, 32, 128)),
        garch(),
        logistic(),
        kalman(),
        newton(),
        random_walk(),
        nested(),
    )
}
