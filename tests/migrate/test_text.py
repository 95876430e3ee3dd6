"""What converted text looks like, and what is left alone."""

from textwrap import dedent

import pytest


pytest.importorskip("libcst")

from pytensor_loop.migrate._convert import convert


HEAD = "import pytensor\nimport pytensor.tensor as pt\n\n\n"
NEW_HEAD = "import pytensor.tensor as pt\nfrom pytensor_loop import scan\n\n\n"


def converted(text):
    conversion = convert(HEAD + dedent(text))
    assert [outcome.verdict for outcome in conversion.outcomes] == ["converted"]
    return conversion.text.removeprefix(NEW_HEAD)


def reason(text):
    (outcome,) = convert(HEAD + dedent(text)).outcomes
    assert outcome.verdict == "left alone"
    (remark,) = outcome.remarks
    return remark


def test_a_local_step_is_rewritten_in_place():
    before = """\
        def f(x, y, w):
            def step(a, b, s, t, w):
                '''Add and multiply.'''
                s = s + a * w
                return s, t * b

            ss, ts = pytensor.scan(
                step,
                sequences=[x[1:], x[:-1]],
                outputs_info=[pt.zeros(()), y],
                non_sequences=[w],
                strict=True,
                return_updates=False,
            )
            return ss[-1] + ts.sum()
        """
    after = """\
        def f(x, y, w):
            def step(carry, x):
                '''Add and multiply.'''
                s, t = carry
                a, b = x
                s = s + a * w
                new_t = t * b
                return (s, new_t), new_t

            (ss, _), ts = scan(step, (pt.zeros(()), y), (x[1:], x[:-1]))
            return ss + ts.sum()
        """
    assert converted(before) == dedent(after)


def test_a_step_with_any_number_of_arguments_gets_a_wrapper():
    before = """\
        def f(x, ws):
            def step(*args):
                x_t, s, *ws = args
                return s + x_t * sum(ws)

            return pytensor.scan(step, [x], [pt.zeros(())], [*ws], return_updates=False)
        """
    after = """\
        def f(x, ws):
            def step(*args):
                x_t, s, *ws = args
                return s + x_t * sum(ws)

            def step_fn(state, x_t):
                new_state = step(x_t, state, *ws)
                return new_state, new_state

            _, ys = scan(step_fn, pt.zeros(()), x)
            return ys
        """
    assert converted(before) == dedent(after)


def test_a_name_that_is_taken_is_not_used():
    text = convert(
        HEAD + "scan = 1\nout = pytensor.scan(lambda s: s + scan, outputs_info=[pt.zeros(())], "
        "n_steps=3, return_updates=False)\n"
    ).text
    assert "import pytensor_loop\n" in text
    assert "_, out = pytensor_loop.scan(step, pt.zeros(()), n_steps=3)\n" in text


def test_an_underscore_that_is_read_keeps_its_meaning():
    text = convert(
        HEAD + "from gettext import gettext as _\n"
        "out = pytensor.scan(lambda s: s + 1, outputs_info=[pt.zeros(())], n_steps=3, "
        "return_updates=False)\nprint(_('done'))\n"
    ).text
    assert "unused, out = scan(step, pt.zeros(()), n_steps=3)\n" in text


def test_other_functions_of_these_names_are_left_alone():
    text = "from jax.lax import scan\nimport pytensor\nscan(f, 0, xs)\nmap(f, xs)\n"
    assert convert(text).outcomes == ()
    assert convert(text).text == text


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (
            "y = lambda: pytensor.scan(f, [x], return_updates=False)",
            "the call stands inside a Lambda, where no statement can go",
        ),
        (
            "y = pytensor.scan(f, [dict(input=x, taps=t)], return_updates=False)",
            "the taps of a sequence are not written out as different integers",
        ),
        (
            "y = pytensor.scan(f, [x], [dict(initial=x, taps=t)], return_updates=False)",
            "the taps of an output are `t`, which cannot be read",
        ),
        (
            "y = pytensor.scan(f, [x], go_backwards=b, return_updates=False)",
            "`go_backwards` is not written as True or False",
        ),
        (
            "y = pytensor.scan(f, [x], infos, return_updates=False)",
            "outputs_info is `infos`, and how many entries it has cannot be seen",
        ),
        (
            "y = pytensor.scan(f, [x])",
            "the pair (outputs, updates) is passed on, "
            "and that there are no updates cannot be seen",
        ),
        (
            "y, z = 1, 2; pytensor.scan(f, [x], return_updates=False)",
            "the call shares its line with other statements",
        ),
        (
            "if pytensor.scan(f, [x], return_updates=False): pass",
            "the call does not stand in a statement of its own",
        ),
    ],
)
def test_the_reason_for_leaving_a_call_alone_is_given(call, why):
    assert reason(f"{call}\n") == why
