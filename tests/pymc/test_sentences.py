"""What the user is told about a loop whose log-probability cannot be derived."""

import re

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pytensor_loop import scan, taps


NO = "PyMC cannot derive the log-probability of this loop: "
STOPS = NO + (
    "it stops by a condition, so how many rows there are is random too. "
    "Take a fixed number of steps, or give the distribution a `logp` of its own"
)
RANDOM_CARRY = NO + (
    "a leaf of the carry is drawn at random, but it is neither what has the values nor computed "
    "from it, and would have to be integrated out. Return as y the very value that is carried, "
    "`return x, x`; compute the rest of the new carry from it, `return (x, x - mu), x`; or make "
    "that leaf a variable of the model and read it by `xs`"
)
START_IS_GIVEN = NO + (
    "its first row is the start of the carry, which is another random variable of the model, so "
    "it has no density of its own. Leave that row out and return the new value as y, "
    "`return x, x`; or draw the start in the same `dist` function as the loop"
)
START_IS_PARTLY_SEEN = NO + (
    "its rows begin with a part of the start, and the rest of the start is drawn at random too. "
    "Return as y the value at the deepest tap, or the new value"
)
NOT_ALL_ROWS = NO + (
    "a part of the rows has no density without the rows before it. Give values to `ys`, one leaf "
    "of it as it is, and not to `final` or to a part of it"
)
ANOTHER_DRAW = NO + (
    "a step draws more than y, and what it draws besides is given by nothing. Draw y by one "
    "distribution whose parameters are known when the rows before are, or make the other draws a "
    "variable of the model and read it by `xs`"
)
NO_RULE = NO + (
    "it has no rule for these rows. It has one when they are `ys` itself, one leaf of it, and y "
    "is one draw of a distribution, or that draw shifted and scaled. When y is carried too, "
    "return the new value, `return x, x`. What you make of `ys`, `pt.exp(ys)`, belongs inside "
    "the step"
)


def new_rng():
    return pt.random.shared_rng(seed=None)


def normal(rng, mu, sigma=1.0):
    return pm.Normal.dist(mu, sigma, rng=rng, return_next_rng=True)


def ar1(carry, _):
    rng, x = carry
    rng, x = normal(rng, 0.5 * x)
    return (rng, x), x


def assert_refused(rows, sentence):
    value = rows.type()
    with pytest.raises(NotImplementedError, match=f"^{re.escape(sentence)}$"):
        pm.logp(rows, value)


def test_a_loop_that_stops():
    def step(carry, _):
        carry, x = ar1(carry, None)
        return carry, x, x > 3

    _, rows, _ = scan(step, (new_rng(), 0.0), n_steps=5)
    assert_refused(rows, STOPS)


def test_a_state_that_is_observed_with_noise():
    def step(carry, _):
        (rng, x), _ = ar1(carry, None)
        rng, y = normal(rng, x)
        return (rng, x), y

    _, rows = scan(step, (new_rng(), 0.0), n_steps=5)
    assert_refused(rows, RANDOM_CARRY)


def test_a_random_regime():
    def step(carry, _):
        rng, regime = carry
        rng, regime = pm.Bernoulli.dist(0.3 + 0.4 * regime, rng=rng, return_next_rng=True)
        rng, x = normal(rng, 1.0 * regime)
        return (rng, regime), x

    _, rows = scan(step, (new_rng(), 0), n_steps=5)
    assert_refused(rows, RANDOM_CARRY)


def test_a_function_of_the_carried_value():
    def step(carry, _):
        carry, x = ar1(carry, None)
        return carry, pt.exp(x)

    _, rows = scan(step, (new_rng(), 0.0), n_steps=5)
    assert_refused(rows, RANDOM_CARRY)


def test_an_ma1_that_carries_what_it_drew():
    def step(carry, _):
        rng, last = carry
        rng, innovation = normal(rng, 0.0)
        return (rng, innovation), innovation + 0.4 * last

    _, rows = scan(step, (new_rng(), 0.0), n_steps=5)
    assert_refused(rows, RANDOM_CARRY)


@pytest.mark.parametrize("spelling", ["old carry", "joined"])
def test_a_start_that_is_another_variable_of_the_model(spelling):
    def rows_from(start, size):
        def old(carry, _):
            return ar1(carry, None)[0], carry[1]

        if spelling == "old carry":
            return scan(old, (new_rng(), start), n_steps=5)[1]
        return pt.concatenate([[start], scan(ar1, (new_rng(), start), n_steps=4)[1]])

    with pm.Model() as model:
        start = pm.Normal("start")
        pm.CustomDist("x", start, dist=rows_from, observed=np.zeros(5), signature="()->(t)")
    with pytest.raises(NotImplementedError, match=f"^{re.escape(START_IS_GIVEN)}$"):
        model.logp()


def test_a_start_that_is_seen_in_part():
    rng, start = pm.Normal.dist(shape=2, rng=new_rng(), return_next_rng=True)

    def step(carry, _):
        rng, past = carry
        rng, x = normal(rng, 0.5 * past[1] - 0.2 * past[0])
        return (rng, past.push_tap(x)), past[1]

    _, rows = scan(step, (rng, taps(start, [-2, -1])), n_steps=5)
    assert_refused(rows, START_IS_PARTLY_SEEN)


@pytest.mark.parametrize("what", ["final", "one row", "the later rows", "final of taps"])
def test_a_part_of_the_rows(what):
    def by_taps(carry, _):
        rng, past = carry
        rng, x = normal(rng, 0.5 * past[1] - 0.2 * past[0])
        return (rng, past.push_tap(x)), x

    (_, last), rows = scan(ar1, (new_rng(), 0.0), n_steps=5)
    (_, past), _ = scan(by_taps, (new_rng(), taps([0.0, 0.0], [-2, -1])), n_steps=5)
    parts = {
        "final": last,
        "one row": rows[2],
        "the later rows": rows[2:],
        "final of taps": past.values,
    }
    assert_refused(parts[what], NOT_ALL_ROWS)


def test_a_second_draw_in_the_step():
    def step(rng, _):
        rng, scale = pm.Gamma.dist(1.0, 1.0, rng=rng, return_next_rng=True)
        return normal(rng, 0.0, scale)

    _, rows = scan(step, new_rng(), n_steps=5)
    assert_refused(rows, ANOTHER_DRAW)


@pytest.mark.parametrize("function", [pt.exp, pt.cumsum, lambda rows: rows**2])
def test_a_function_of_the_rows(function):
    _, rows = scan(ar1, (new_rng(), 0.0), n_steps=5)
    assert_refused(function(rows), NO_RULE)
