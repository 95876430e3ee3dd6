# ruff: noqa: C408, RUF059, PLW0108 -- people write their loops like this
"""Loops over sequences: how many, how long, which taps, in which direction."""

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor import scan


def rows(*shape, seed=0):
    return pytensor.shared(np.random.default_rng(seed).normal(size=shape))


def case_one_sequence():
    x = rows(5, 2)
    out = scan(lambda x_t: x_t.sum() ** 2, sequences=[x], return_updates=False)
    return (out,)


def case_sequence_that_is_not_in_a_list():
    x = rows(5)
    out, _ = scan(fn=lambda v: pt.exp(v), sequences=x)
    return (out,)


def case_positional_arguments():
    x, w = rows(5), rows(3)
    out, updates = pytensor.scan(lambda x_t, s, w: s + x_t * w, [x], [pt.zeros(3)], [w])
    return (out,)


def case_equal_slices_are_not_cut():
    x = rows(6)

    def step(now, later, total):
        return total + later - now

    out = scan(
        step,
        sequences=[x[:-1], x[1:]],
        outputs_info=[pt.constant(0.0, dtype="float64")],
        return_updates=False,
    )
    return (out,)


def case_cut_to_the_shortest():
    x, y = rows(6), rows(4, seed=1)

    def step(a, b, total):
        return total + a * b

    out = scan(
        step,
        sequences=[x, y],
        outputs_info=[pt.constant(0.0, dtype="float64")],
        return_updates=False,
    )
    return (out,)


def case_cut_to_the_shortest_backwards():
    x, y, z = rows(6), rows(4, seed=1), rows(5, seed=2)

    def step(a, b, c, total):
        return total * c + a * b

    total = scan(
        step,
        sequences=[x, pt.exp(y), z],
        outputs_info=[pt.constant(0.0, dtype="float64")],
        go_backwards=True,
        return_updates=False,
    )
    return (total, total[-1])


def case_n_steps_and_a_longer_sequence():
    x = rows(7)
    n = pytensor.shared(np.int64(4))
    out = scan(
        lambda v, s: s + v,
        sequences=[x],
        outputs_info=pt.constant(1.0, dtype="float64"),
        n_steps=n + 1,
        return_updates=False,
    )
    return (out,)


def case_n_steps_and_a_longer_sequence_backwards():
    x = rows(7)
    out = scan(
        lambda v, s: s * 2 + v,
        sequences=[x],
        outputs_info=pt.constant(1.0, dtype="float64"),
        n_steps=4,
        go_backwards=True,
        return_updates=False,
    )
    return (out,)


def case_n_steps_that_is_visibly_the_length():
    x = rows(4)
    idx = pt.arange(x.shape[0])

    def step(i, x):
        return x[i] * 2

    out = scan(step, sequences=[idx], non_sequences=[x], n_steps=x.shape[0], return_updates=False)
    return (out,)


def case_past_taps_shift_the_origin():
    x = rows(7)
    out = scan(
        lambda x_tm2, x_t: x_t - 3 * x_tm2,
        sequences=[dict(input=x, taps=[-2, 0])],
        return_updates=False,
    )
    return (out,)


def case_taps_in_the_order_listed():
    x, y = rows(7), rows(7, seed=1)

    def step(x_tp2, x_tm1, y_t, x_tp1):
        return x_tp2 - 10 * x_tm1 + 100 * y_t + 1000 * x_tp1

    out = scan(
        step,
        sequences=[{"input": x, "taps": [2, -1]}, y, {"input": x, "taps": 1}],
        return_updates=False,
    )
    return (out,)


def case_taps_that_all_lie_in_the_past():
    x = rows(7)
    out = scan(
        lambda a, b: a - 2 * b,
        sequences=dict(input=x, taps=[-3, -1]),
        return_updates=False,
    )
    return (out, out.shape)


def case_taps_that_all_lie_ahead():
    x = rows(7)
    out = scan(lambda a, b: a - 2 * b, sequences={"input": x, "taps": [1, 3]}, return_updates=False)
    return (out, out.shape)


def case_taps_backwards():
    x, y = rows(7), rows(7, seed=1)
    out = scan(
        lambda a, b, c, d, s: s / 2 + a - 2 * b + 3 * c - 5 * d,
        sequences=[dict(input=x, taps=[-2, 1]), dict(input=y, taps=[1, 2])],
        outputs_info=[pt.constant(0.0, dtype="float64")],
        go_backwards=True,
        return_updates=False,
    )
    return (out, out.shape)


def case_taps_and_n_steps():
    x = rows(9)
    out = scan(
        lambda a, b: a - 2 * b,
        sequences=dict(input=x, taps=[-1, 1]),
        n_steps=3,
        return_updates=False,
    )
    return (out,)


def case_single_tap_in_the_past():
    x = rows(5)
    out = scan(lambda a: a * 2, sequences=dict(input=x, taps=[-1]), return_updates=False)
    return (out,)


def case_backwards_gives_rows_in_the_order_of_iteration():
    x = rows(5)
    out = scan(
        lambda v, s: s * 2 + v,
        sequences=x,
        outputs_info=[pt.constant(0.0, dtype="float64")],
        go_backwards=True,
        return_updates=False,
    )
    return (out,)


def case_backwards_and_flipped():
    x = rows(5)
    smoothed, square = scan(
        lambda v, s: (s * 2 + v, v**2),
        sequences=[x],
        outputs_info=[pt.constant(0.0, dtype="float64"), None],
        go_backwards=True,
        return_updates=False,
    )
    smoothed = smoothed[::-1]
    return (smoothed, square[::-1])


def case_backwards_last_row_of_a_map():
    x = rows(5)
    out = scan(lambda v: v**2, sequences=[x], go_backwards=True, return_updates=False)
    return (out[-1],)


def case_backwards_without_sequences():
    out = scan(
        lambda s: s * 2,
        outputs_info=[pt.constant(1.0, dtype="float64")],
        n_steps=3,
        go_backwards=True,
        return_updates=False,
    )
    return (out,)


def case_one_step_backwards_takes_row_0():
    x = rows(5)
    out = scan(
        lambda v, s: s * 2 + v,
        sequences=[x],
        outputs_info=[pt.constant(1.0, dtype="float64")],
        n_steps=1,
        go_backwards=True,
        return_updates=False,
    )
    return (out, out.shape)


def case_list_of_sequences_made_elsewhere():
    sequences = [rows(5), rows(5, seed=1)]
    sequences.append(rows(5, seed=2))
    out = scan(lambda *xs: sum(xs), sequences=sequences, return_updates=False)
    return (out,)


def case_list_written_out_just_above():
    x, w = rows(5), rows(1)[0]
    sequences = [x]
    outputs_info = [pt.constant(0.0, dtype="float64")]
    others = [w]
    out = scan(
        lambda v, s, w: s + v * w,
        sequences=sequences,
        outputs_info=outputs_info,
        non_sequences=others,
        return_updates=False,
    )
    return (out,)


def case_some_sequences_made_elsewhere_backwards():
    more = [rows(5, seed=1), rows(5, seed=2)]

    def step(*args):
        a, b, c, s = args
        return s * a + b - c

    out = scan(
        step,
        sequences=[rows(5), *more],
        outputs_info=[pt.constant(0.5, dtype="float64")],
        go_backwards=True,
        return_updates=False,
    )
    return (out,)


def case_maybe_a_list_of_sequences():
    def total(xs):
        return scan(lambda *args: sum(args), sequences=xs, return_updates=False)

    return (total(rows(5)), total([rows(5), rows(5, seed=1)]))


def case_truncated_gradient():
    x = rows(5)
    k = -1
    s0 = pt.constant(1.0, dtype="float64")
    out = scan(
        lambda v, s: s * v, [x], [s0], truncate_gradient=2, name="short", return_updates=False
    )
    more = scan(
        lambda v, s: s * v, [x], [s0], truncate_gradient=-1, name="full", return_updates=False
    )
    other = scan(lambda v, s: s * v, [x], [s0], truncate_gradient=k, return_updates=False)
    return tuple(pt.grad(o[-1], x) for o in (out, more, other))
