"""What the step captures: lifted out whole, connected, and told from draws made inside."""

from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.gradient import grad
from pytensor.graph.traversal import ancestors
from pytensor.scan.op import Scan

from pytensor_loop import scan


def loop_of(variable: Any) -> Any:
    """The node of the loop that a variable was read from."""
    [node] = {v.owner for v in ancestors([variable]) if v.owner and isinstance(v.owner.op, Scan)}
    return node


def test_every_kind_of_outer_variable(mode: str) -> None:
    """Inputs, constants, shared variables, intermediate results, and indices."""
    x, w, k = pt.dvector("x"), pt.dscalar("w"), pt.iscalar("k")
    shared = pytensor.shared(np.array([1.0, 2.0, 3.0]), name="shared")
    scaled = pt.exp(w) * shared

    def step(carry: Any, v: Any) -> Any:
        return carry + scaled[k] * v + np.array([0.5, 1.5])[1] + shared.sum(), carry

    final, _ = scan(step, 0.0, x)
    f = pytensor.function([x, w, k], final, mode=mode)

    expected = (np.exp(0.1) * 3.0 * np.array([1.0, 2.0]) + 1.5 + 6.0).sum()
    np.testing.assert_allclose(f([1.0, 2.0], 0.1, 2), expected)


def test_the_largest_part_that_does_not_change_is_lifted() -> None:
    """The loop reads the caller's own variables, and nothing of how they were made."""
    a, b = pt.dscalars("a", "b")
    outside = pt.exp(a)

    def step(carry: Any, _: Any) -> Any:
        made_inside = pt.log(outside + b)
        return carry * made_inside + a, None

    final, _ = scan(step, 1.0, n_steps=3)
    node = loop_of(final)
    captured = node.op.outer_non_seqs(node.inputs)

    assert a in captured
    assert len(captured) == 2
    [log] = [v for v in captured if v is not a]
    assert outside in ancestors([log])
    inner = {type(getattr(n.op, "scalar_op", n.op)).__name__ for n in node.op.fgraph.apply_nodes}
    assert inner == {"Mul", "Add"}


def test_gradients_reach_what_is_captured(python_mode: str) -> None:
    """Also through a variable made inside the step of captured ones only."""
    w = pt.dscalar("w")
    square = w**2
    final, _ = scan(lambda c, _: (c * square + pt.exp(w), None), 1.0, n_steps=3)
    f = pytensor.function([w], [grad(final, w), grad(final, square)], mode=python_mode)

    def value(v: complex, s: complex) -> complex:
        c: complex = 1.0
        for _ in range(3):
            c = c * s + np.exp(v)
        return c

    h = 1e-30
    by_w, by_square = f(0.3)
    np.testing.assert_allclose(by_w, value(0.3 + 1j * h, (0.3 + 1j * h) ** 2).imag / h)
    np.testing.assert_allclose(by_square, value(0.3, 0.09 + 1j * h).imag / h)


def test_a_draw_made_outside_is_one_number(native_mode: str) -> None:
    """It is drawn once, whatever the steps make of it."""
    rng = pytensor.shared(np.random.default_rng(3))
    outside = pt.random.normal(rng=rng, return_next_rng=True)[1]
    _, ys = scan(lambda c, x: (c, outside * 2 + x), None, np.zeros(4))
    got = pytensor.function([], ys, mode=native_mode)()

    np.testing.assert_allclose(got, np.full(4, 2 * np.random.default_rng(3).normal()))


def test_a_generator_of_the_outer_carry_is_no_generator_of_the_inner_loop() -> None:
    """Every inner step would draw the same: the error names its place in the outer carry."""
    rng = pytensor.shared(np.random.default_rng(3))

    def outer(carry: Any, _: Any) -> Any:
        def inner(c: Any, _: Any) -> Any:
            return c + pt.random.normal(rng=carry["rng"], return_next_rng=True)[1], None

        return carry, scan(inner, 0.0, n_steps=3)[0]

    with pytest.raises(TypeError, match=r"step_fn uses generator \"carry\['rng'\]\""):
        scan(outer, {"rng": rng}, n_steps=2)


def test_a_generator_used_by_an_inner_loop_alone() -> None:
    """It has to be carried by every loop around."""
    rng = pytensor.shared(np.random.default_rng(3), name="noise")

    def outer(carry: Any, _: Any) -> Any:
        def inner(r: Any, _: Any) -> Any:
            return pt.random.normal(rng=r, return_next_rng=True)

        return carry, scan(inner, rng, n_steps=3)[1]

    with pytest.raises(TypeError, match="step_fn uses generator 'noise'"):
        scan(outer, None, n_steps=2)


@pytest.mark.parametrize("steps", [0, 3])
def test_a_body_that_ignores_its_carry(native_mode: str, steps: int) -> None:
    """It returns an indexed constant: as many rows as steps, and the init when there are none."""
    n = pt.iscalar("n")
    table = pt.constant(np.array([[1.0, 2.0], [3.0, 4.0]]))
    final, ys = scan(lambda c, _: (table[1], table[1]), np.zeros(2), n_steps=n)
    last, rows = pytensor.function([n], [final, ys], mode=native_mode)(steps)

    np.testing.assert_array_equal(last, [3.0, 4.0] if steps else [0.0, 0.0])
    np.testing.assert_array_equal(rows, np.tile([3.0, 4.0], (steps, 1)))


def test_placeholders_are_named_after_their_places() -> None:
    """Graphs, profiles and errors can be read; one used outside says where it is from."""
    seen = []

    def step(state: Any, x: Any) -> Any:
        seen.extend([state["level"][0], x["y"]])
        return state, None

    final, _ = scan(step, {"level": [pt.dscalar("start")]}, {"y": pt.dvector("y")}, name="walk")

    assert [v.name for v in seen] == ["carry['level'][0]", "xs['y']"]
    assert loop_of(final["level"][0]).op.name == "walk"
    with pytest.raises(Exception, match=r"carry\['level'\]\[0\]"):
        pytensor.function([], seen[0])
