# ruff: noqa: C408, RET504, C409, C410 -- people write their loops like this
"""Kinds of step functions, and stopping."""

import functools

import numpy as np
import pytensor.tensor as pt
from pytensor import scan as loop
from pytensor import shared
from pytensor.scan.utils import until


def rows(*shape, seed=0):
    return shared(np.random.default_rng(seed).normal(size=shape))


def double(s):
    """Double it."""
    return s * 2


def case_function_of_the_module():
    out = loop(double, outputs_info=[pt.ones(2)], n_steps=3, return_updates=False)
    return (out,)


def case_function_used_twice():
    def step(v, s):
        return s + v

    a = loop(step, [rows(3)], [pt.constant(0.0, dtype="float64")], return_updates=False)
    b = loop(step, [rows(4)], [pt.constant(1.0, dtype="float64")], return_updates=False)
    return (a, b[-1], step(1, 2) + pt.constant(0, dtype="float64"))


def case_any_number_of_arguments():
    def step(*args):
        x, s, *weights = args
        return s + x * sum(weights)

    weights = [rows(1, seed=i)[0] for i in range(3)]
    out = loop(
        step,
        sequences=[rows(4)],
        outputs_info=[pt.constant(0.0, dtype="float64")],
        non_sequences=weights,
        return_updates=False,
    )
    return (out,)


class Filter:
    def __init__(self, gain):
        self.gain = gain

    def step(self, y, level, w):
        error = y - level
        return level + self.gain * error * w, error

    def run(self, y):
        return loop(
            self.step,
            sequences=[y],
            outputs_info=[pt.constant(0.0, dtype="float64"), None],
            non_sequences=[rows(1, seed=4)[0]],
            name="filter",
            return_updates=False,
        )


def case_method():
    levels, errors = Filter(0.3).run(rows(5))
    return (levels, errors)


def case_partial():
    def step(k, v, s):
        return s + k * v

    out = loop(
        functools.partial(step, 3.0),
        [rows(4)],
        [pt.constant(0.0, dtype="float64")],
        return_updates=False,
    )
    return (out,)


def case_default_argument():
    w = rows(2)

    def step(v, s, w=w):
        return s + v * w

    out = loop(step, [rows(3)], [pt.zeros(2)], return_updates=False)
    return (out,)


def case_names_that_get_in_the_way():
    x, carry, taps = rows(3), rows(3, seed=1), pt.constant(2.0, dtype="float64")
    scan = 1.5

    def step(a, b, s, p):
        past = a * carry[0]
        new_s = past + b * x[0] * scan
        return s + new_s * p

    out = loop(
        step,
        sequences=[dict(input=x, taps=[-1, 0])],
        outputs_info=[dict(initial=pt.constant(1.0, dtype="float64"), taps=[-1])],
        non_sequences=[taps],
        return_updates=False,
    )
    return (out,)


def case_parameter_that_is_assigned():
    w = pt.constant(2.0, dtype="float64")

    def step(v, s, w):
        w = w + 1
        return s + v * w

    out = loop(step, [rows(3)], [pt.constant(0.0, dtype="float64")], [w], return_updates=False)
    return (out,)


def case_parameters_and_arguments_that_swap_names():
    a, b = pt.constant(2.0, dtype="float64"), pt.constant(5.0, dtype="float64")

    def step(s, b, a):
        return s * a - b

    out = loop(
        step,
        outputs_info=[pt.constant(1.0, dtype="float64")],
        non_sequences=[a, b],
        n_steps=3,
        return_updates=False,
    )
    return (out,)


def case_numpy_array_as_argument():
    w = np.arange(6.0).reshape(2, 3)

    def step(v, w):
        return w.dot(v)

    out = loop(step, sequences=[rows(4, 3)], non_sequences=[w], return_updates=False)
    return (out,)


def case_two_returns():
    squared = True

    def step(v, s):
        if squared:
            total = s + v**2
            return total
        return s + v

    out = loop(
        step,
        sequences=[rows(4)],
        outputs_info=[pt.constant(0.0, dtype="float64")],
        return_updates=False,
    )
    return (out,)


def case_outputs_from_a_helper():
    def both(v, s):
        return s + v, s - v

    def step(v, s):
        return both(v, s)

    a, b = loop(
        step,
        sequences=[rows(4)],
        outputs_info=[pt.constant(0.0, dtype="float64"), None],
        return_updates=False,
    )
    return (a, b)


def case_list_of_one():
    def step(v, s):
        return [s + v]

    def other(v):
        return [v * 2]

    a = loop(
        step,
        sequences=[rows(4)],
        outputs_info=[pt.constant(0.0, dtype="float64")],
        return_updates=False,
    )
    b = loop(other, sequences=[rows(4)], return_updates=False)
    return (a, b)


def case_map_of_a_function_that_may_return_a_list():
    def one(v):
        return list((v * 2,))

    def two(v):
        return tuple([v * 2, v + 1])

    a = loop(one, sequences=[rows(4)], return_updates=False)
    b = loop(two, sequences=[rows(4)], return_updates=False)
    assert isinstance(b, list)
    return (a, *b)


def case_stop():
    def step(s, limit):
        s = s * 2
        return s, until(s > limit)

    out = loop(
        step,
        outputs_info=pt.constant(1.0, dtype="float64"),
        non_sequences=pt.constant(20.0, dtype="float64"),
        n_steps=100,
        return_updates=False,
    )
    return (out, out.shape)


def case_stop_with_two_outputs():
    def step(v, s):
        new = s + v**2
        return (new, v), {}, until(new > 1.5)

    total, v = loop(
        step,
        sequences=[rows(20)],
        outputs_info=[pt.constant(0.0, dtype="float64"), None],
        return_updates=False,
    )
    return (total[-1], v, v.shape)


def case_stop_in_a_step_that_stays():
    def step(*args):
        (s,) = args
        return [s * 3], until(s > 10)

    out, _ = loop(step, outputs_info=[pt.constant(1.0, dtype="float64")], n_steps=10)
    return (out,)


def case_stop_with_a_name():
    def step(total, i):
        new_total = total + i
        condition = until(new_total > 20)
        return [new_total, i + 1], condition

    total, i = loop(
        step,
        outputs_info=[
            pt.constant(0.0, dtype="float64"),
            {"initial": pt.constant(1.0, dtype="float64")},
        ],
        n_steps=50,
        return_updates=False,
    )
    return (total, i)


def case_dictionary_with_a_name():
    info = {"initial": rows(2), "taps": [-2, -1]}
    seq = dict(input=rows(6), taps=[-1])
    out = loop(lambda v, a, b: v + a - b, [seq], [info], return_updates=False)
    return (out,)


def case_stop_in_a_lambda():
    out = loop(
        lambda s: (s + 1, until(s > 3)),
        outputs_info=[pt.constant(0.0, dtype="float64")],
        n_steps=10,
        return_updates=False,
    )
    return (out[-1],)


def case_loop_in_a_loop():
    def outer(row, s):
        def inner(v, t):
            return t + v * s

        total = loop(
            inner,
            sequences=[row],
            outputs_info=[pt.constant(0.0, dtype="float64")],
            return_updates=False,
        )
        return s + total[-1]

    out = loop(outer, [rows(3, 4)], [pt.constant(1.0, dtype="float64")], return_updates=False)
    return (out,)


def left_stop_on_some_returns():
    early = True

    def step(s):
        if early:
            return s + 1, until(s > 3)
        return s + 1

    out = loop(
        step, outputs_info=[pt.constant(0.0, dtype="float64")], n_steps=10, return_updates=False
    )
    return (out,)


def left_number_of_outputs_unknown():
    infos = [pt.constant(0.0, dtype="float64") for _ in range(2)]
    a, b = loop(
        lambda *s: [s[0] + 1, s[1] + s[0]], outputs_info=infos, n_steps=3, return_updates=False
    )
    return (a, b)


def left_keywords_from_elsewhere():
    options = {"n_steps": 3}
    out = loop(
        lambda s: s + 1,
        outputs_info=[pt.constant(0.0, dtype="float64")],
        return_updates=False,
        **options,
    )
    return (out,)


def left_no_statement_of_its_own():
    outs = [
        loop(
            lambda s: s + 1,
            outputs_info=[pt.constant(0.0, dtype="float64")],
            n_steps=n,
            return_updates=False,
        )
        for n in (2, 3)
    ]
    return tuple(outs)
