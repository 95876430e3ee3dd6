# ruff: noqa: C408, RUF059 -- people write their loops like this
"""Loops with a state: taps on it, several of them, generators, the initial value again."""

import numpy as np
import pytensor
import pytensor.tensor as pt


def rows(*shape, seed=0):
    return pytensor.shared(np.random.default_rng(seed).normal(size=shape))


def case_one_state():
    out = pytensor.scan(lambda s: s * 2, outputs_info=pt.ones(2), n_steps=4, return_updates=False)
    return (out,)


def case_only_the_last_row():
    result, updates = pytensor.scan(
        fn=lambda prior, a: prior * a,
        outputs_info=pt.ones(3),
        non_sequences=rows(3),
        n_steps=3,
    )
    final = result[-1]
    return (final, result[-1] + 1)


def case_python_number_as_state():
    x = rows(4)
    out = pytensor.scan(
        lambda v, s: s + v, sequences=[x], outputs_info=[np.float64(0)], return_updates=False
    )
    return (out,)


def case_list_as_state():
    out = pytensor.scan(
        lambda s: s * 2.0, outputs_info=[[1.0, 2.0, 3.0]], n_steps=3, return_updates=False
    )
    return (out,)


def case_state_and_other_output():
    x = rows(4)
    total, square = pytensor.scan(
        lambda v, s: [s + v, v**2],
        sequences=[x],
        outputs_info=[pt.constant(0.0, dtype="float64"), None],
        return_updates=False,
    )
    return (total, square)


def case_other_output_before_the_state():
    x = rows(4)

    def step(v, a, b, w):
        c = a + w
        return v * a, c, a - b, b * 0.5

    p, q, r, s = pytensor.scan(
        step,
        sequences=[x],
        outputs_info=[
            None,
            pt.constant(0.0, dtype="float64"),
            dict(),
            {"initial": pt.constant(1.0, dtype="float64")},
        ],
        non_sequences=[pt.exp(1.0)],
        return_updates=False,
    )
    return (p, q[-1], r)


def case_two_taps():
    fib = pytensor.scan(
        lambda a, b: a + b,
        outputs_info=[dict(initial=pt.as_tensor([1.0, 1.0]), taps=[-2, -1])],
        n_steps=6,
        return_updates=False,
    )
    return (fib,)


def case_taps_in_another_order_with_a_gap():
    x = rows(4)

    def step(v, y_tm1, y_tm3, s, c):
        y = v + c * y_tm1 - y_tm3
        return y, s + y

    ys, ss = pytensor.scan(
        step,
        sequences=x,
        outputs_info=[
            {"initial": rows(3, seed=1), "taps": [-1, -3]},
            pt.constant(0.0, dtype="float64"),
        ],
        non_sequences=[0.5],
        return_updates=False,
    )
    return (ys, ss)


def case_last_row_of_a_tapped_state():
    fib = pytensor.scan(
        lambda a, b: a + b,
        outputs_info=[dict(initial=rows(2), taps=[-2, -1])],
        n_steps=6,
        return_updates=False,
    )
    return (fib[-1],)


def case_taps_as_a_range():
    order = 3
    rho = rows(3, seed=2)

    def step(*args):
        *past, rho = args
        return pt.sum(pt.stack(past) * rho)

    out = pytensor.scan(
        fn=step,
        outputs_info=[{"initial": rows(3), "taps": range(-order, 0)}],
        non_sequences=[rho],
        n_steps=5,
        strict=True,
        return_updates=False,
    )
    return (out,)


def case_a_generator_as_state():
    rng = pt.random.shared_rng(np.random.default_rng(7))

    def step(mu, x, rng):
        next_rng, y = pt.random.normal(mu + 0.5 * x, 1, rng=rng, return_next_rng=True)
        return y, next_rng

    ys, next_rng = pytensor.scan(
        step,
        sequences=[rows(4)],
        outputs_info=[pt.constant(0.0, dtype="float64"), rng],
        return_updates=False,
    )
    _, after = pt.random.normal(rng=next_rng, return_next_rng=True)
    return (ys, after)


def case_a_generator_and_everything_kept_in_a_list():
    generator = pt.random.shared_rng(np.random.default_rng(7))

    def step(g, x):
        g, y = pt.random.normal(x, 1, rng=g, return_next_rng=True)
        return g, y

    results = pytensor.scan(
        step,
        outputs_info=[generator, pt.constant(0.0, dtype="float64")],
        n_steps=3,
        return_updates=False,
    )
    _, after = pt.random.normal(rng=results[0], return_next_rng=True)
    return (results[1], after)


def case_the_buffer_with_the_initial_state():
    walk = pytensor.scan(
        lambda v, s: s + v,
        sequences=[rows(4)],
        outputs_info=[pt.constant(3.0, dtype="float64")],
        return_updates=False,
    )
    with_start = walk.owner.inputs[0]
    return (with_start, walk)


def case_the_buffer_of_a_tapped_state():
    walk = pytensor.scan(
        lambda a, b: a - b,
        outputs_info=[dict(initial=rows(2), taps=[-2, -1])],
        n_steps=4,
        return_updates=False,
    )
    return (walk.owner.inputs[0],)


def case_the_last_row_of_the_buffer():
    walk = pytensor.scan(
        lambda v, s: s + v,
        sequences=[rows(4)],
        outputs_info=[pt.constant(3.0, dtype="float64")],
        return_updates=False,
    )
    return (walk.owner.inputs[0][-1],)


def case_the_initial_state_put_in_front():
    init = pt.constant(3.0, dtype="float64")
    walk = pytensor.scan(
        lambda v, s: s + v, sequences=[rows(4)], outputs_info=[init], return_updates=False
    )
    return (pt.concatenate([init[None], walk]),)


def case_one_step():
    init = rows(2)
    a, b = pytensor.scan(
        lambda s: (s * 2, s.sum()), outputs_info=[init, None], n_steps=1, return_updates=False
    )
    return (a, b, a.shape)


def case_no_steps():
    n = pytensor.shared(np.int64(0))
    out = pytensor.scan(lambda s: s * 2, outputs_info=[rows(2)], n_steps=n, return_updates=False)
    return (out, out.shape)


def case_a_draw_made_outside():
    def draw():
        rng = pt.random.shared_rng(np.random.default_rng(11))
        return pt.random.normal(rng=rng, return_next_rng=True)[1]

    def step(s, noise):
        return s + noise

    out = pytensor.scan(
        step,
        outputs_info=[pt.constant(0.0, dtype="float64")],
        non_sequences=[draw()],
        n_steps=3,
        return_updates=False,
    )
    return (out,)


def case_one_tap_further_back():
    def step(v, y_tm2):
        return v + y_tm2 / 2

    ys = pytensor.scan(
        step,
        sequences=[rows(5)],
        outputs_info=[dict(initial=rows(2, seed=1), taps=[-2])],
        return_updates=False,
    )
    return (ys,)


def case_two_tapped_states_in_one_step():
    def step(a2, a1, b3, s):
        a = a1 + a2 * s
        return a, b3 - a, s * 0.5

    a, b, s = pytensor.scan(
        step,
        outputs_info=[
            dict(initial=rows(2, seed=1), taps=[-2, -1]),
            dict(initial=rows(3, seed=2), taps=[-3]),
            pt.constant(1.0, dtype="float64"),
        ],
        n_steps=5,
        return_updates=False,
    )
    return (a, b[-1], s[-1])


def case_taps_written_as_a_tuple_add_a_dimension():
    ys = pytensor.scan(
        lambda y: y * 2,
        outputs_info=[dict(initial=rows(1, 3), taps=(-1,))],
        n_steps=3,
        return_updates=False,
    )
    return (ys, ys.shape)
