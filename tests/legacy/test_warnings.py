"""What the old functions warn about: the same call in the new API, as it stands in the warning."""

import textwrap
import warnings
from functools import partial

import numpy as np
import pytensor
import pytensor.tensor as pt

from pytensor_loop import legacy


def step(*args):
    return sum(args[1:], args[0])


def warning_of(call, opening, category=DeprecationWarning):
    """Return the text of the one warning that begins like this; it must point at this file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    (warning,) = [w for w in caught if str(w.message).startswith(opening)]
    assert (warning.filename, warning.category) == (__file__, category)
    return str(warning.message)


def advice_of(call):
    return warning_of(call, "pytensor_loop.legacy.")


def expected(function, code):
    body = textwrap.indent(textwrap.dedent(code).strip("\n"), "    ")
    return (
        f"pytensor_loop.legacy.{function} is for old code. In the new API this call is\n\n{body}\n"
    )


X, Y, A = pt.vector("x"), pt.vector("y"), pt.scalar("a")


def test_scan_is_rewritten_with_its_own_names():
    text = advice_of(lambda: legacy.scan(step, X, A, return_updates=False))
    assert text == expected(
        "scan",
        """
        from pytensor_loop import scan
        def step_fn(carry, x):
            out = step(x, carry)
            return out, out
        final, out = scan(step_fn, A, xs=X)
        """,
    )


def test_everything_at_once_is_rewritten():
    rng = pytensor.shared(np.random.default_rng(0), name="rng")
    history = pt.vector("history")

    def simulate(p, q, r, before, last, level, generator, scale):
        next_rng, draw = pt.random.normal(rng=generator, return_next_rng=True)
        outputs = [before + last + p, level * q + draw, next_rng, r * scale]
        return outputs, legacy.until(level > 10)

    text = advice_of(
        lambda: legacy.scan(
            simulate,
            sequences=[{"input": X, "taps": [-1, 1]}, Y],
            outputs_info=[{"initial": history, "taps": [-2, -1]}, A, rng, None],
            non_sequences=[2.5],
            n_steps=4,
            go_backwards=True,
            truncate_gradient=3,
            name="simulation",
            return_updates=False,
        )
    )
    assert text == expected(
        "scan",
        """
        from pytensor_loop import scan, taps
        def step_fn(carry, x):
            [out_0, out_1, out_2, out_3], stop = simulate(*x[0], x[1], *carry[0], carry[1], carry[2], 2.5)
            return (carry[0].push_tap(out_0), out_1, out_2), (out_0, out_1, out_3), stop.condition
        final, (out_0, out_1, out_3), done = scan(step_fn, (taps(history[:2], taps=[-2, -1]), A, rng), xs=(taps(X[X.shape[0] - 6:], taps=[0, 2]), Y[Y.shape[0] - 4:]), n_steps=4, reverse=True, truncate_gradient=3, name='simulation')
        out_2 = final[2]
        out_0 = out_0[::-1]  # or drop this: the rows line up with xs
        out_1 = out_1[::-1]  # or drop this: the rows line up with xs
        out_3 = out_3[::-1]  # or drop this: the rows line up with xs
        """,  # noqa: E501
    )


def test_sequences_are_cut_to_the_shortest():
    text = advice_of(lambda: legacy.scan(step, [X, Y], return_updates=False))
    assert text == expected(
        "scan",
        """
        import pytensor.tensor as pt
        from pytensor_loop import scan
        n = pt.minimum(X.shape[0], Y.shape[0])  # or drop this and the cuts, if the lengths agree
        def step_fn(_, x):
            out = step(x[0], x[1])
            return None, out
        final, out = scan(step_fn, None, xs=(X[:n], Y[:n]))
        """,
    )


def test_updates_need_a_hand():
    total = pytensor.shared(0.0, name="total")
    text = advice_of(lambda: legacy.scan(lambda row: {total: total + row}, X))
    assert text == expected(
        "scan",
        """
        # fn: the function of this call
        from pytensor_loop import scan
        # fn has to change: let it take total as its last arguments,
        # and return the next values in the place of the updates
        def step_fn(carry, x):
            next_total = fn(x, carry)
            return next_total, None
        final, _ = scan(step_fn, total, xs=X)
        updates = {total: final}
        """,
    )


def test_map_reduce_and_folds_become_helpers():
    text = advice_of(lambda: legacy.map(step, X, [A], return_updates=False))
    assert text == expected(
        "map", "import pytensor_loop\nout = pytensor_loop.map(lambda x: step(x, A), X)"
    )
    for name, reverse in [("reduce", ""), ("foldl", ""), ("foldr", ", reverse=True")]:
        old = getattr(legacy, name)
        text = advice_of(lambda old=old: old(step, X, A, return_updates=False))
        assert text == expected(
            name,
            "from pytensor_loop import fold\n"
            f"out = fold(lambda acc, x: step(x, acc), A, X{reverse})",
        )


def test_scan_checkpoints_becomes_a_loop_in_a_loop():
    text = advice_of(
        lambda: legacy.scan_checkpoints(step, X, A, save_every_N=5, return_updates=False)
    )
    assert text == expected(
        "scan_checkpoints",
        """
        from pytensor_loop import scan
        def step_fn(carry, x):
            out = step(x, carry)
            return out, out
        # in chunks of 5 steps, which the gradient computes again; the number of steps must
        # be a multiple of 5
        def steps(carry, chunk):
            last, ys = scan(step_fn, carry, xs=chunk)
            return last, last
        final, out = scan(steps, A, xs=X.reshape((-1, 5, *X.shape[1:])))
        """,
    )


def test_until_says_where_the_condition_goes():
    assert warning_of(lambda: legacy.until(A > 1), "`until") == (
        "`until(condition)` marks the condition for the old scan. In the new one it is the third "
        "value that step_fn returns: `return new_carry, y, condition`"
    )


def test_returned_updates_have_a_warning_of_their_own():
    text = (
        "the updates that are returned next to the outputs go away: pass return_updates=False, and "
        "feed back by outputs_info what changes from step to step"
    )
    assert warning_of(lambda: legacy.scan(step, X), "the updates") == text
    assert warning_of(lambda: legacy.map(step, X), "the updates") == text
    assert warning_of(lambda: legacy.foldl(step, X, A), "the updates") == text
    assert warning_of(lambda: legacy.scan_checkpoints(step, X, A), "the updates") == text


def test_mode_has_a_warning_of_its_own():
    call = partial(legacy.map, step, X, return_updates=False)
    assert warning_of(lambda: call(mode="FAST_COMPILE"), "the `mode`", FutureWarning) == (
        "the `mode` argument is honoured for now, but the step is compiled with the mode of the "
        "function around it: drop it"
    )


def test_draws_that_repeat_have_a_warning():
    rng = pytensor.shared(np.random.default_rng(0), name="rng")

    def draw(row):
        return row + pt.random.normal(rng=rng, return_next_rng=True)[1]

    assert warning_of(lambda: legacy.scan(draw, X), "fn draws", UserWarning) == (
        "fn draws from rng, which is neither updated nor fed back, so every step draws the same "
        "numbers. Put it in outputs_info and return its next state"
    )


def test_taps_of_none_have_a_warning():
    call = partial(legacy.scan, step, outputs_info={"initial": A, "taps": None}, n_steps=3)
    assert warning_of(call, "outputs_info[0]", UserWarning) == (
        "outputs_info[0] has an initial value, so its taps are [-1] although they were None"
    )
