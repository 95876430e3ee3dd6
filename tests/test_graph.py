"""The graph that is built: what PyTensor's rewrites, PyMC and memory depend on."""

import pickle
import resource
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode
from pytensor.gradient import grad
from pytensor.graph.traversal import ancestors
from pytensor.scan.op import Scan
from pytensor.tensor.basic import AllocEmpty
from pytensor.tensor.subtensor import IncSubtensor, Subtensor

from pytensor_loop import scan, taps
from pytensor_loop._tree import Tree
from tests.test_closure import loop_of


def nodes(*outputs: Any) -> list[Any]:
    return list({v.owner: None for v in ancestors(outputs) if v.owner is not None})


def test_a_recurrent_buffer() -> None:
    """It is `AllocEmpty(k + n)[:k].set(init)`, and rows are a slice of what the Op returns."""
    n = pt.iscalar("n")
    init = {"s": pt.dscalar("s"), "t": taps(pt.dmatrix("t"), [-3, -1])}

    def step(carry: Any, _: Any) -> Any:
        s, t = carry["s"] + 1, carry["t"][0] * 2
        return {"s": s, "t": carry["t"].push_tap(t)}, (s, t)

    _, ys = scan(step, init, n_steps=n)
    node = loop_of(ys[0])

    assert node.op.info.mit_sot_in_slices == ((-3, -1),)
    assert node.op.info.sit_sot_in_slices == ((-1,),)
    assert node.op.info.n_nit_sot == 0
    for buffer, depth in zip(node.inputs[1:3], (3, 1), strict=True):
        write = buffer.owner
        assert isinstance(write.op, IncSubtensor)
        assert write.op.set_instead_of_inc
        assert write.op.idx_list == (slice(None, 0),)
        assert isinstance(write.inputs[0].owner.op, AllocEmpty)
        assert int(write.inputs[-1].data) == depth
    for rows in ys:
        assert isinstance(rows.owner.op, Subtensor)
        assert rows.owner.inputs[0].owner is node


def test_a_value_of_the_carry_is_stacked_once() -> None:
    """What is returned as y and in the new carry has one buffer, also under a cast-free check."""
    known = pt.tensor("known", shape=(3,))

    def step(carry: Any, x: Any) -> Any:
        new = carry["a"] + x
        return {"a": new, "b": new}, {"first": new, "again": (new,), "other": new * 2}

    final, ys = scan(step, {"a": known, "b": known}, pt.dmatrix("x"))

    assert loop_of(ys["first"]).op.info.n_nit_sot == 1
    assert ys["first"].owner.inputs[0] is ys["again"][0].owner.inputs[0]
    assert final["a"].owner.inputs[0] is ys["first"].owner.inputs[0]


def test_the_size_of_the_graph_does_not_depend_on_the_number_of_steps() -> None:
    """Nor does building it compile anything."""

    def size(steps: int) -> int:
        final, ys, done = scan(lambda c, _: (c * 1.5, c, c > 9), np.ones(2)[0], n_steps=steps)
        return len(nodes(final, ys, done, grad(final + ys.sum(), final)))

    assert size(1) == size(1000)


def compiled_loop(outputs: list[Any], inputs: list[Any], mode: str = "NUMBA") -> Any:
    f = pytensor.function(inputs, outputs, mode=mode)
    [node] = [n for n in f.maker.fgraph.apply_nodes if isinstance(n.op, Scan)]
    return node


def traced_rows(node: Any) -> list[int | None]:
    """The rows that each buffer of a compiled loop keeps; None where it grows with the steps."""
    op = node.op
    buffers = [*op.outer_mitsot(node.inputs), *op.outer_sitsot(node.inputs)]
    return [buffer.type.shape[0] for buffer in buffers]


@pytest.mark.parametrize("stops", [False, True])
def test_final_alone_keeps_no_trace(stops: bool) -> None:
    """Rows that nobody uses cost nothing either, and so does `done`."""
    x0, n = pt.dvector("x0"), pt.lscalar("n")

    def step(c: Any, _: Any) -> Any:
        h2, h1 = c["h"]
        new = {"v": c["v"] * 0.9, "h": c["h"].push_tap(h1 + h2)}
        y = {"new": new["v"], "old": c["v"], "sum": c["v"].sum()}
        return (new, y, c["v"][0] < 0) if stops else (new, y)

    init = {"v": x0, "h": taps([1.0, 1.0], [-2, -1])}
    final, _, *done = scan(step, init, n_steps=n)
    node = compiled_loop([final["v"], final["h"].values, *done], [x0, n])

    assert node.op.info.n_nit_sot == 0
    assert all(rows is not None and rows <= 3 for rows in traced_rows(node))


def test_done_costs_nothing_when_it_is_not_used() -> None:
    """The compiled loop does not carry it."""
    x0 = pt.dscalar("x0")
    final, _, done = scan(lambda c, _: (c * 2, None, c > 50), x0, n_steps=100)

    without = compiled_loop([final], [x0])
    with_done = compiled_loop([final, done], [x0])
    assert with_done.op.info.n_untraced_sit_sot == without.op.info.n_untraced_sit_sot + 1


def test_peak_memory_of_final_alone(native_mode: str) -> None:
    """A trace of this loop would take 1.6 GB; an init that is broadcast needs none either."""
    if native_mode == "FAST_COMPILE":
        pytest.skip("this mode leaves out the rewrites that save memory")
    n = pt.lscalar("n")
    plain, _ = scan(lambda c, _: (c * 0.999, c.sum()), pt.constant(np.ones(2000)), n_steps=n)
    broadcast, _ = scan(lambda c, _: (c * 0.999, None), pt.ones(2000), n_steps=n)
    f = pytensor.function([n], [plain, broadcast], mode=native_mode)
    f(10)

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    f(100_000 if native_mode == "NUMBA" else 20_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kB


IN_PYTHON = Mode("py", "fast_run")  # all rewrites, and nothing to compile


def loops_back(cost: Any, wrt: list[Any], mode: Any) -> tuple[Any, list[int]]:
    """The compiled gradient, and how many arrays of rows each of its loops writes backwards."""
    f = pytensor.function(wrt, grad(cost, wrt), mode=mode, on_unused_input="ignore")
    loops = [node for node in f.maker.fgraph.toposort() if isinstance(node.op, Scan)]
    return f, [node.op.info.n_mit_mot for node in loops]


def test_the_gradient_of_the_last_state_keeps_no_rows(mode: str) -> None:
    """It is handed from step to step, and is what the whole trace gives, also with no steps."""
    x, v, a = pt.dmatrix("x"), pt.dvector("v"), pt.dscalar("a")
    final, ys = scan(
        lambda c, x: ({"v": pt.tanh(c["v"] * a + x), "s": c["s"] + c["v"].sum()}, c["v"]),
        {"v": v, "s": a},
        x,
    )
    cost = (final["v"] ** 2).sum() + final["s"]
    f, back = loops_back(cost, [x, v, a], mode)
    assert sum(back) == (2 if mode == "FAST_COMPILE" else 0)

    plain = pytensor.function([x, v, a], grad(cost + 0 * ys.sum(), [x, v, a]), mode="FAST_COMPILE")
    for n in (0, 1, 5):
        values = np.linspace(-1, 1, 3 * n).reshape(n, 3), np.array([0.5, -0.2, 0.1]), np.array(0.8)
        for got, expected in zip(f(*values), plain(*values), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize(
    "cost",
    [
        lambda final, ys: (ys**2).sum(),
        lambda final, ys: final + ys[0],
        lambda final, ys: ys[-2],
        lambda final, ys: final * ys.sum(),
    ],
)
def test_a_gradient_that_other_states_bring_in_keeps_its_rows(cost: Any) -> None:
    x, s = pt.dvector("x"), pt.dscalar("s")
    final, ys = scan(lambda c, x: (c * x + c**2,) * 2, s, x)
    f, back = loops_back(cost(final, ys), [x, s], IN_PYTHON)
    assert sum(back) == 1

    values = np.array([0.3, 0.9, 0.4, 0.2]), np.array(0.5)
    plain = pytensor.function([x, s], grad(cost(final, ys), [x, s]), mode="FAST_COMPILE")
    for got, expected in zip(f(*values), plain(*values), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-10)


def test_a_truncated_gradient_keeps_its_rows() -> None:
    """The first state is out of its reach."""
    x, s = pt.dvector("x"), pt.dscalar("s")
    h = pytensor.scan(
        lambda x, h: h * x,
        sequences=[x],
        outputs_info=[s],
        truncate_gradient=2,
        return_updates=False,
    )
    f, _ = loops_back(h[-1], [x, s], IN_PYTHON)
    dx, ds = f(np.array([2.0, 3.0, 5.0]), np.array(1.0))
    np.testing.assert_array_equal(dx, [0, 10, 6])
    assert ds == 0


def test_variables_and_functions_can_be_pickled(native_mode: str) -> None:
    """With a check of lengths, a generator, taps and a stop."""
    x, n = pt.dvector("x"), pt.iscalar("n")
    rng = pytensor.shared(np.random.default_rng(2))

    def step(carry: Any, row: Any) -> Any:
        next_rng, noise = pt.random.normal(rng=carry["rng"], return_next_rng=True)
        new = carry["h"][0] + row[1] - row[0]
        return {"rng": next_rng, "h": carry["h"].push_tap(new)}, (new, noise), new > 90

    init = {"rng": rng, "h": taps([1.0, 2.0], [-2, -1])}
    final, ys, done = scan(step, init, taps(x, [0, 1]), n_steps=n)
    outputs = [final["h"].values, *ys, done]
    f = pytensor.function([x, n], outputs, mode=native_mode)
    expected = f([1.0, 3.0, 7.0], 2)

    again = pickle.loads(pickle.dumps(f))
    for a, b in zip(again([1.0, 3.0, 7.0], 2), expected, strict=True):
        np.testing.assert_array_equal(a, b)
    x2, n2, *copies = pickle.loads(pickle.dumps([x, n, *outputs]))
    with pytensor.config.change_flags(cxx=""):
        g = pytensor.function([x2, n2], copies, mode="FAST_COMPILE")
    np.testing.assert_array_equal(g([1.0, 3.0, 7.0], 2)[0], expected[0])


def test_the_old_carry_as_y_puts_the_initial_value_in_front(python_mode: str) -> None:
    """Aligned values without a concatenate; the other spelling has one row more."""
    x = np.arange(4.0)
    final, before = scan(lambda c, v: (c + v, c), 10.0, x)
    _, after = scan(lambda c, v: (c + v, c + v), 10.0, x)
    joined = pt.concatenate([[10.0], after])
    values = pytensor.function([], [final, before, joined], mode=python_mode)()

    np.testing.assert_array_equal(values[1], [10.0, 10.0, 11.0, 13.0])
    np.testing.assert_array_equal(values[2], [*values[1], values[0]])


def test_trees_of_nothing() -> None:
    """`()` and None are empty: there is nothing to build but the loop."""
    final, ys = scan(lambda c, _: (c, {}), (), n_steps=3)

    assert (final, ys) == ((), {})
    assert Tree.of(None).leaves == ()
