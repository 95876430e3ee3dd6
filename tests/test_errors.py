"""Every error that `scan` raises when it builds a loop: the whole text."""

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_loop import scan, taps


S = namedtuple("S", "pos vel")
f8, v = pt.dscalar("f8"), pt.dvector("v")
rng = pytensor.shared(np.random.default_rng(0), name="noise")
two = {"h": taps([1.0, 2.0], [-2, -1]), "g": taps([1.0], [-1]), "s": f8}


def same(carry: Any, x: Any) -> Any:
    return carry, None


ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (
        lambda: scan(0.0, same, n_steps=2),
        TypeError,
        "step_fn must be a function of (carry, x), not 0.0 of type float. The "
        "order of the arguments is scan(step_fn, init, xs, n_steps)",
    ),
    (
        lambda: scan(lambda carry, _: ({"a": carry["a"], "b": 1.0}, None), {"a": f8}, n_steps=2),
        TypeError,
        "step_fn must return a new carry that is built like the carry it was "
        "given: carry has the extra key 'b'. Return the same tuples, dicts and "
        "other containers, with a new value in each leaf",
    ),
    (
        lambda: scan(
            lambda state, _: ({"p": [state["p"][0]], "q": {"y": 0.0}}, None),
            {"p": [f8, f8], "q": {"x": f8}},
            n_steps=2,
        ),
        TypeError,
        "step_fn must return a new carry that is built like the carry it was "
        "given:\n"
        "  * state['p'] should have 1 more entry.\n"
        "  * state['q'] lacks key 'x' and has the extra key 'y'.\n"
        "Return the same tuples, dicts and other containers, with a new value in "
        "each leaf",
    ),
    (
        lambda: scan(lambda c, _: ([c[0], c[1]], None), (f8, f8), n_steps=2),
        TypeError,
        "step_fn must return a new carry that is built like the carry it was "
        "given: c should be a tuple of length 2, not a list of length 2. Return "
        "the same tuples, dicts and other containers, with a new value in each leaf",
    ),
    (
        lambda: scan(lambda c, _: (None, None), (f8, f8), n_steps=2),
        TypeError,
        "step_fn must return a new carry that is built like the carry it was "
        "given: c should be a tuple of length 2, not None. Return the same tuples, "
        "dicts and other containers, with a new value in each leaf",
    ),
    (
        lambda: scan(lambda c, _: (f8, None), None, n_steps=2),
        TypeError,
        "step_fn must return a new carry that is built like the carry it was "
        "given: c should be None, not one leaf (TensorVariable). Return the same "
        "tuples, dicts and other containers, with a new value in each leaf",
    ),
    (
        lambda: scan(lambda c, _: (c[0], None), (f8, f8), n_steps=2),
        TypeError,
        "step_fn must return a new carry that is built like the carry it was "
        "given: c should be a tuple of length 2, not one leaf (TensorVariable). "
        "Return the same tuples, dicts and other containers, with a new value in "
        "each leaf",
    ),
    (
        lambda: scan(
            lambda carry, x: ({"h": carry["h"] + x, "n": carry["n"] + 1}, None),
            {"h": pt.zeros((), dtype="float32"), "n": pt.zeros((), dtype="int64")},
            v,
        ),
        TypeError,
        "step_fn must return a new carry of the types of the carry: carry['h'] "
        "goes in as float32 scalar but comes out as float64 scalar: cast the "
        "update, `x.astype('float32')`, or start from float64, "
        "`init['h'].astype('float64')`.",
    ),
    (
        lambda: scan(
            lambda carry, _: (
                {
                    "a": carry["a"].sum(),
                    "b": carry["b"] * 1.5,
                    "c": carry["c"][:1],
                    "ok": carry["ok"],
                },
                None,
            ),
            {"a": pt.zeros((2, 3)), "b": np.int64(1), "c": pt.zeros((4,)), "ok": f8},
            n_steps=3,
        ),
        TypeError,
        "step_fn must return a new carry of the types of the carry:\n"
        "  * carry['a'] goes in as float64 of shape (2, 3) but comes out as "
        "float64 scalar: keep the 2 dimensions that went in.\n"
        "  * carry['b'] goes in as int64 scalar but comes out as float64 scalar: "
        "cast the update, `x.astype('int64')`, or start from float64, "
        "`init['b'].astype('float64')`.\n"
        "  * carry['c'] goes in as float64 of shape (4,) but comes out as float64 "
        "of shape (1,): keep the shape (4,) that went in.",
    ),
    (
        lambda: scan(
            lambda c, _: (c.astype("float32"), None), pt.zeros((2,), dtype="int64"), n_steps=3
        ),
        TypeError,
        "step_fn must return a new carry of the types of the carry: c goes in as "
        "int64 of shape (2,) but comes out as float32 of shape (2,): cast the "
        "update, `x.astype('int64')`, or start from float64, "
        "`init.astype('float64')`.",
    ),
    (
        lambda: scan(lambda c, _: (1.5, None), np.int64(1), n_steps=3),
        TypeError,
        "step_fn must return a new carry of the types of the carry: c goes in as "
        "int64 scalar but comes out as the number 1.5: return a value that int64 "
        "can hold.",
    ),
    (
        lambda: scan(lambda c, _: (300, None), np.int8(1), n_steps=3),
        TypeError,
        "step_fn must return a new carry of the types of the carry: c goes in as "
        "int8 scalar but comes out as the number 300: return a value that int8 can "
        "hold.",
    ),
    (
        lambda: scan(lambda c, _: (c + v, None), 0.0, n_steps=3),
        TypeError,
        "step_fn must return a new carry of the types of the carry: c goes in as "
        "float64 scalar but comes out as float64 of shape (?,): start from an "
        "array with 1 dimension, such as np.zeros(shape).",
    ),
    (
        lambda: scan(lambda c, _: (f8, None), rng, n_steps=3),
        TypeError,
        "step_fn must return a new carry of the types of the carry: c goes in as "
        "RandomGeneratorType but comes out as float64 scalar: return a value of "
        "the type that went in.",
    ),
    (
        lambda: scan(lambda c, _: (rng, None), f8, n_steps=3),
        TypeError,
        "step_fn must return a new carry of the types of the carry: c goes in as "
        "float64 scalar but comes out as RandomGeneratorType: return a value of "
        "the type that went in.",
    ),
    (
        lambda: scan(lambda c, _: c, f8, n_steps=2),
        TypeError,
        "step_fn must return `(new_carry, y)` or `(new_carry, y, break_cond)`, but "
        "it returned float64 scalar named 'carry'. Return `new_carry, None` when "
        "there is nothing to stack",
    ),
    (
        lambda: scan(lambda c, _: None, f8, n_steps=2),
        TypeError,
        "step_fn must return `(new_carry, y)` or `(new_carry, y, break_cond)`, but "
        "it returned None. Return `new_carry, None` when there is nothing to stack",
    ),
    (
        lambda: scan(lambda c, _: (c, c, c > 1, c), f8, n_steps=2),
        TypeError,
        "step_fn must return `(new_carry, y)` or `(new_carry, y, break_cond)`, but "
        "it returned a tuple of 4. Return `new_carry, None` when there is nothing "
        "to stack",
    ),
    (
        lambda: scan(lambda c, _: (c,), f8, n_steps=2),
        TypeError,
        "step_fn must return `(new_carry, y)` or `(new_carry, y, break_cond)`, but "
        "it returned a tuple of 1. Return `new_carry, None` when there is nothing "
        "to stack",
    ),
    (
        lambda: scan(lambda c, _: [c, c], f8, n_steps=2),
        TypeError,
        "step_fn must return `(new_carry, y)` or `(new_carry, y, break_cond)`, but "
        "it returned [carry, carry] of type list. Return `new_carry, None` when "
        "there is nothing to stack",
    ),
    (
        lambda: scan(lambda c, _: S(c.pos, c.vel), S(f8, f8), n_steps=2),
        TypeError,
        "step_fn must return `(new_carry, y)` or `(new_carry, y, break_cond)`, but "
        "it returned S(pos=carry.pos, vel=carry.vel) of type S. Return `new_carry, "
        "None` when there is nothing to stack",
    ),
    (
        lambda: scan(lambda c, _: (c, c, c > 1), v, n_steps=2),
        TypeError,
        "break_cond, the third value that step_fn returns, must be a bool scalar, "
        "not bool of shape (?,): `.any()` or `.all()` make one of many",
    ),
    (
        lambda: scan(lambda c, _: (c, c, c - 1), f8, n_steps=2),
        TypeError,
        "break_cond, the third value that step_fn returns, must be a bool scalar, "
        "not float64 scalar: compare, `x > 0`",
    ),
    (
        lambda: scan(same, {"a": f8, "f": np.tanh}, n_steps=2),
        TypeError,
        "init['f'] is the function tanh: a leaf must be a symbolic variable, an "
        "array or a number. What does not change from step to step needs no place "
        "here: use it inside step_fn as it is (close over it)",
    ),
    (
        lambda: scan(same, {"a": f8, "f": "text"}, n_steps=2),
        TypeError,
        "init['f'] is 'text' of type str: a leaf must be a symbolic variable, an "
        "array or a number. What does not change from step to step needs no place "
        "here: use it inside step_fn as it is (close over it)",
    ),
    (
        lambda: scan(same, {"a": object}, n_steps=2),
        TypeError,
        "init['a'] is the function object: a leaf must be a symbolic variable, an "
        "array or a number. What does not change from step to step needs no place "
        "here: use it inside step_fn as it is (close over it)",
    ),
    (
        lambda: scan(same, np.random.default_rng(0), n_steps=2),
        TypeError,
        "init is a NumPy generator: make it a variable of the graph, `pytensor.shared(generator)`",
    ),
    (
        lambda: scan(same, None, {"x": [1, 2]}),
        TypeError,
        "xs['x'][0] must have rows to scan, one for each step, but it is 1 of type "
        "int. Pass an array (a list is a tree of its elements: np.asarray(list)), "
        "or use it inside step_fn as it is (close over it)",
    ),
    (
        lambda: scan(same, None, f8),
        TypeError,
        "xs must have rows to scan, one for each step, but it is float64 scalar "
        "named 'f8'. Pass an array (a list is a tree of its elements: "
        "np.asarray(list)), or use it inside step_fn as it is (close over it)",
    ),
    (
        lambda: scan(same, None, rng),
        TypeError,
        "xs is RandomGeneratorType named 'noise', which has no rows to scan: carry it, in init",
    ),
    (
        lambda: scan(same, None, "abc"),
        TypeError,
        "xs is 'abc' of type str: a leaf must be a symbolic variable, an array or "
        "a number. What does not change from step to step needs no place here: use "
        "it inside step_fn as it is (close over it)",
    ),
    (
        lambda: scan(lambda c, _: (c, {"r": c}), rng, n_steps=2),
        TypeError,
        "y['r'] is RandomGeneratorType named 'carry', which cannot be stacked into "
        "rows. Carry it instead: return it in the new carry, and its last value is "
        "in `final`",
    ),
    (
        lambda: scan(lambda c, _: (c, {"r": "a"}), f8, n_steps=2),
        TypeError,
        "y['r'] is 'a' of type str: a leaf must be a symbolic variable, an array or a number",
    ),
    (
        lambda: scan(lambda c, _: (c.push_tap(c[0]), c), taps(v, [-1]), n_steps=2),
        TypeError,
        "y is c with taps [-1]: return the value itself to stack it, x and not push_tap(x)",
    ),
    (
        lambda: scan(lambda c, _: ("x", None), f8, n_steps=2),
        TypeError,
        "the new c is 'x' of type str: a leaf must be a symbolic variable, an array or a number",
    ),
    (
        lambda: scan(same, f8),
        ValueError,
        "scan needs n_steps when there are no xs to tell how many steps to take: "
        "`scan(step_fn, init, n_steps=10)`",
    ),
    (
        lambda: scan(same, None, {"a": pt.zeros((4,)), "b": pt.zeros((3,)), "c": v}),
        ValueError,
        "the number of steps is not the same for all: xs['a'] 4, xs['b'] 3, "
        "xs['c'] unknown. Cut the longer ones, `x[:n]`, so that every step has a "
        "row of each",
    ),
    (
        lambda: scan(same, None, pt.zeros((4,)), n_steps=5),
        ValueError,
        "the number of steps is not the same for all: xs 4, n_steps 5. Cut the "
        "longer ones, `x[:n]`, so that every step has a row of each",
    ),
    (
        lambda: scan(same, None, (pt.zeros((4,)), taps(pt.zeros((4,)), [0, 2]))),
        ValueError,
        "the number of steps is not the same for all: xs[0] 4, xs[1] (rows less "
        "its furthest tap 2) 2. Cut the longer ones, `x[:n]`, so that every step "
        "has a row of each",
    ),
    (
        lambda: scan(same, None, taps(pt.zeros((1,)), [0, 2])),
        ValueError,
        "xs has 1 row, fewer than its furthest tap 2: a step would read past the end",
    ),
    (
        lambda: scan(same, f8, n_steps=3, truncate_gradient=False),
        ValueError,
        "truncate_gradient must be how many steps back gradients go, an int of one "
        "or more, or None for all of them, not False",
    ),
    (
        lambda: scan(same, f8, n_steps=3, truncate_gradient=0),
        ValueError,
        "truncate_gradient must be how many steps back gradients go, an int of one "
        "or more, or None for all of them, not 0",
    ),
    (
        lambda: scan(same, {"h": taps(np.zeros(3), [1])}, n_steps=3),
        ValueError,
        "init['h'] has taps=[1], but what is carried can only be looked back at: "
        "its taps are negative, `taps(a, taps=[-2, -1])`",
    ),
    (
        lambda: scan(same, None, {"x": taps(np.zeros(3), [-3, -1])}),
        ValueError,
        "xs['x'] has taps=[-3, -1], but a leaf of xs takes taps of zero and more: "
        "shift them all, `taps(x, taps=[0, 2])`",
    ),
    (
        lambda: scan(lambda carry, _: (carry, None), two, n_steps=3),
        TypeError,
        "step_fn must push every leaf with taps once and return it in its own "
        "place:\n"
        "  * carry['g'] has taps but was not pushed: return "
        "`carry['g'].push_tap(x)` there.\n"
        "  * carry['h'] has taps but was not pushed: return "
        "`carry['h'].push_tap(x)` there.",
    ),
    (
        lambda: scan(
            lambda carry, _: (
                {"h": carry["h"][0], "g": carry["g"].push_tap(0.0), "s": carry["s"]},
                None,
            ),
            two,
            n_steps=3,
        ),
        TypeError,
        "step_fn must push every leaf with taps once and return it in its own "
        "place: carry['h'] has taps but became float64 scalar named "
        "\"carry['h'].tap(-2)\": return `carry['h'].push_tap(x)` there.",
    ),
    (
        lambda: scan(
            lambda carry, _: (
                {"h": carry["g"].push_tap(0.0), "g": carry["h"].push_tap(1.0), "s": carry["s"]},
                None,
            ),
            two,
            n_steps=3,
        ),
        TypeError,
        "step_fn must push every leaf with taps once and return it in its own "
        "place:\n"
        "  * carry['g'] is in the place of carry['h']: return "
        "`carry['g'].push_tap(x)` there.\n"
        "  * carry['h'] is in the place of carry['g']: return "
        "`carry['h'].push_tap(x)` there.",
    ),
    (
        lambda: scan(
            lambda carry, _: (
                {"h": carry["h"].push_tap(0.0), "g": carry["g"].push_tap(0.0), "s": carry["h"]},
                None,
            ),
            two,
            n_steps=3,
        ),
        TypeError,
        "step_fn must push every leaf with taps once and return it in its own "
        "place: carry['s'] has no taps but became carry['h'] with taps [-2, -1]: "
        "return its new value there.",
    ),
    (
        lambda: scan(
            lambda carry, _: (carry.push_tap(0.0).push_tap(1.0), None),
            taps([1.0, 2.0], [-2, -1]),
            n_steps=3,
        ),
        TypeError,
        "carry.push_tap was called twice: push one value in each step",
    ),
    (
        lambda: scan(lambda c, x: (c, x.push_tap(1.0)), None, taps(v, [0, 1])),
        TypeError,
        "xs.push_tap: a leaf of xs is read, not written. What the step computes "
        "belongs in the carry, marked in init: `taps(a, taps=[-2, -1])`",
    ),
    (
        lambda: scan(
            lambda carry, _: (carry.push_tap(carry.tap(-3)), None),
            taps([1.0, 2.0], [-2, -1]),
            n_steps=3,
        ),
        ValueError,
        "carry has no tap -3: its taps are [-2, -1]",
    ),
    (
        lambda: taps([1.0, 2.0], [-2, -1]).push_tap(1.0),
        TypeError,
        "push_tap belongs inside step_fn: call it on the leaf of the carry that "
        "the step sees, `return carry.push_tap(x), y`",
    ),
    (
        lambda: taps(v, [0, 1])[0],
        TypeError,
        "taps=[0, 1] of xs have a value only inside step_fn: read `.values` for the rows",
    ),
    (
        lambda: taps(rng, [-1]),
        ValueError,
        "taps needs an array with rows, not RandomGeneratorType named 'noise'",
    ),
]


@pytest.mark.parametrize(("call", "kind", "message"), ERRORS)
def test_the_whole_text(call: Callable[[], Any], kind: type[Exception], message: str) -> None:
    """What, where, got and expected, the fix; and the exact kind of exception."""
    with pytest.raises(kind) as error:
        call()

    assert (type(error.value), str(error.value)) == (kind, message)


@pytest.mark.parametrize(
    ("n_steps", "shown"),
    [
        (-1, "-1"),
        (2.5, "2.5"),
        (True, "True"),
        ("3", "'3'"),
        (np.array([3]), "array([3])"),
        (v, "float64 of shape (?,) named 'v'"),
        (f8, "float64 scalar named 'f8'"),
    ],
)
def test_n_steps_that_is_no_count(n_steps: Any, shown: str) -> None:
    """The message shows what was passed."""
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the whole text is compared below
        scan(same, f8, n_steps=n_steps)

    assert str(error.value) == (
        f"n_steps must be an int of zero or more, or an integer scalar variable, not {shown}"
    )


@pytest.mark.parametrize(
    ("a", "offsets", "message"),
    [
        (
            np.zeros(3),
            [0, -1],
            "taps=[0, -1] look back and ahead: a leaf of init takes negative taps, "
            "a leaf of xs takes taps of zero and more",
        ),
        (np.zeros(3), [-1, -1], "taps=[-1, -1] lists -1 more than once: list each tap once"),
        (
            np.zeros(3),
            [],
            "taps is empty: list the steps to look back, taps=[-2, -1], or ahead, taps=[0, 1]",
        ),
        (
            np.zeros(3),
            [-5, -3],
            "taps=[-5, -3] look back 5 steps, so `a` must have exactly 5 rows (row 0 is the "
            "oldest), but it has 3: give the 5 values before the first step",
        ),
        (
            np.zeros(5),
            [-2, -1],
            "taps=[-2, -1] look back 2 steps, so `a` must have exactly 2 rows (row 0 is the "
            "oldest), but it has 5: pass the last 2, a[-2:]",
        ),
        (
            v,
            None,
            "taps=None means every row of `a`, but how many rows it has is not known when the "
            "loop is built: list the taps, `taps(a, taps=[-2, -1])`",
        ),
        (
            [],
            None,
            "taps=None means every row of `a`, but it has none: "
            "give the values before the first step",
        ),
        (
            f8,
            [-1],
            "taps needs rows, one for each step that it looks back, but `a` is a scalar: "
            "write `taps([a], taps=[-1])`",
        ),
        (np.zeros(2), [-1.5], "taps must be integers, but -1.5 is of type float"),
        (rng, [-1], "taps needs an array with rows, not RandomGeneratorType named 'noise'"),
    ],
)
def test_taps_that_cannot_be_marked(a: Any, offsets: Any, message: str) -> None:
    """They are refused where they are written, before any loop is built."""
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the whole text is compared below
        taps(a, offsets)

    assert str(error.value) == message


@pytest.mark.parametrize(
    ("generator", "name"),
    [
        (rng, "generator 'noise'"),
        (pytensor.shared(np.random.default_rng(0)), "a generator without a name"),
    ],
)
def test_a_draw_from_a_generator_that_is_not_carried(generator: Any, name: str) -> None:
    """Every step would draw the same numbers."""

    def draw(carry: Any, _: Any) -> Any:
        return carry, pt.random.normal(rng=generator, return_next_rng=True)[1]

    with pytest.raises(TypeError) as error:
        scan(draw, None, n_steps=2)

    assert str(error.value) == (
        f"step_fn uses {name}, which is not in the carry, so every step would draw the same "
        "numbers. Put it in the carry: `init={'rng': rng, ...}`, draw with `next_rng, draw = "
        "pt.random.normal(rng=carry['rng'], return_next_rng=True)` and return `next_rng` in the "
        "new carry. (A draw made outside step_fn may be used: it is one number.)"
    )


def test_a_view_that_has_left_its_step() -> None:
    """What the step sees of a leaf with taps is no start for another loop."""
    seen = []

    def leak(carry: Any, _: Any) -> Any:
        seen.append(carry)
        return carry.push_tap(carry[0]), None

    scan(leak, taps([1.0, 2.0], [-2, -1]), n_steps=3)

    with pytest.raises(TypeError) as error:
        scan(leak, {"h": seen[0]}, n_steps=3)

    assert str(error.value) == (
        "init['h'] is carry with taps [-2, -1], which lives inside one step: "
        "pass the rows before the first step, `taps(rows, taps=[-2, -1])`"
    )


def test_a_failure_inside_the_step_is_left_alone() -> None:
    """It keeps its own type, text and traceback."""

    def fails(carry: Any, _: Any) -> Any:
        return carry["no such key"], None

    with pytest.raises(KeyError, match="no such key") as error:
        scan(fails, {"a": 1.0}, n_steps=2)

    assert error.traceback[-1].name == "fails"


def test_errors_speak_in_the_words_of_the_step() -> None:
    """The path starts with the name that the step gives to its carry."""

    class Model:
        def step(self, state: Any, obs: Any) -> Any:
            return {"level": state["level"].astype("float32") + obs}, None

    with pytest.raises(TypeError, match=r"state\['level'\] goes in as float32 scalar"):
        scan(Model().step, {"level": pt.fscalar()}, v)
