"""Where the old functions gave wrong numbers, and what the old ones kept that is kept too."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.utils import MissingInputError
from pytensor.tensor.random.utils import RandomStream

from pytensor_loop import legacy
from tests.helpers import found_lengths


pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:RandomStream is deprecated"),
]

X = pt.vector("x")


def scan(*args, **kwargs):
    return legacy.scan(*args, return_updates=False, **kwargs)


def test_n_steps_beyond_a_sequence_is_an_error_when_it_runs(native_mode):
    n = pt.lscalar("n")
    out = scan(lambda p, q: p + q, [X, {"input": X, "taps": [1]}], n_steps=n)
    function = pytensor.function([X, n], out, mode=native_mode)
    np.testing.assert_array_equal(function(np.arange(5.0), 4), [1, 3, 5, 7])
    with pytest.raises(ValueError, match="n_steps is more than") as error:
        function(np.arange(5.0), 5)
    found = found_lengths(native_mode, ("n_steps", 5), ("sequences[1]", 4))
    assert str(error.value).splitlines()[0] == (
        f"n_steps is more than a sequence has rows for: {found}. "
        "Ask for fewer steps or pass more rows"
    )


def test_n_steps_known_to_be_beyond_a_sequence_is_an_error_at_once():
    with pytest.raises(ValueError, match="n_steps") as error:
        scan(lambda p: p, [np.arange(3.0)], n_steps=4)
    assert str(error.value) == (
        "n_steps is 4, but sequences[0] has rows for 3 steps: ask for fewer steps or pass more rows"
    )


def test_too_few_initial_rows_are_an_error(native_mode):
    out = scan(lambda p: p, outputs_info=[{"initial": X, "taps": [-3]}], n_steps=4)
    function = pytensor.function([X], out, mode=native_mode)
    np.testing.assert_array_equal(function(np.arange(4.0)), [0, 1, 2, 0])
    with pytest.raises(ValueError, match="fewer initial rows") as error:
        function(np.arange(2.0))
    found = found_lengths(
        native_mode, ("rows of 'initial'", 2), ("steps that the taps look back", 3)
    )
    assert str(error.value).splitlines()[0] == (
        f"outputs_info[0] has fewer initial rows than its taps look back: {found}. "
        "Pass one row for each step that they look back, the oldest first"
    )


def test_one_step_backwards_reads_the_last_row():
    out = scan(lambda p: p, X, n_steps=1, go_backwards=True)
    np.testing.assert_array_equal(out.eval({X: [1.0, 2.0, 3.0]}), [3.0])


def test_python_numbers_do_not_overflow():
    out = scan(lambda p: p + 1, outputs_info=[0], n_steps=200)
    assert out[-1].eval() == 200
    assert scan(lambda p: p + 0.5, outputs_info=[0], n_steps=3).dtype == "float64"


def test_reduce_over_no_rows_is_the_initial_value():
    out = legacy.reduce(lambda p, acc: p + acc, X, pt.constant(np.array(7.0)), return_updates=False)
    assert out.eval({X: []}) == 7.0


def test_checkpoints_refuse_to_stop():
    with pytest.raises(ValueError, match="cannot stop early") as error:
        legacy.scan_checkpoints(
            lambda row, acc: (row + acc, legacy.until(acc > 3)),
            X,
            pt.constant(np.array(0.0)),
            save_every_N=4,
        )
    assert str(error.value) == (
        "scan_checkpoints cannot stop early: after a stop it would go on with the next 4 steps. "
        "Use scan, which stops"
    )


@pytest.mark.parametrize("length", [1, 7, 8])
def test_checkpoints_keep_every_so_manieth_row_and_the_last(length):
    rows = np.random.default_rng(0).normal(size=length)
    out = legacy.scan_checkpoints(
        lambda row, acc: row + acc,
        X,
        pt.constant(np.array(0.0)),
        save_every_N=4,
        return_updates=False,
    )
    gradient = pytensor.grad(out[-1] ** 2, X)
    kept, slope = pytensor.function([X], [out, gradient], mode="FAST_COMPILE")(rows)
    sums = np.cumsum(rows)
    np.testing.assert_allclose(kept, sums[[*range(3, length, 4), *([-1] if length % 4 else [])]])
    np.testing.assert_allclose(slope, np.full(length, 2 * sums[-1]))


def test_checkpoints_refuse_taps():
    with pytest.raises(RuntimeError) as error:
        legacy.scan_checkpoints(lambda p: p, X, {"initial": X, "taps": [-2]})
    assert str(error.value) == (
        "scan_checkpoints has no taps: write a loop in the step of another, by the new scan"
    )


def test_shared_variables_are_updated(native_mode):
    total, count = pytensor.shared(1.0, name="total"), pytensor.shared(0, name="count")
    doubled = 2 * total
    outputs, updates = legacy.scan(
        lambda row: (row + doubled, {total: total + row, count: count + 1}), X
    )
    function = pytensor.function([X], outputs, updates=updates, mode=native_mode)
    np.testing.assert_allclose(function([1.0, 2.0, 3.0]), [3.0, 6.0, 11.0])
    assert (total.get_value(), count.get_value()) == (7.0, 3)


def test_streams_move_on_from_step_to_step_and_from_call_to_call():
    stream = RandomStream(5)
    outputs, updates = legacy.scan(stream.normal, n_steps=3)
    function = pytensor.function([], outputs, updates=updates, mode="FAST_COMPILE")
    draws = np.concatenate([function(), function()])
    (seed,) = np.random.SeedSequence(5).spawn(1)
    np.testing.assert_array_equal(draws, np.random.default_rng(seed).normal(size=6))


def test_updates_that_would_be_lost_are_an_error():
    total = pytensor.shared(1.0, name="total")
    with pytest.raises(ValueError, match="return_updates=False") as error:
        scan(lambda row: {total: total + row}, X)
    assert str(error.value) == (
        "return_updates=False, but fn updates shared variables: total. Feed back by outputs_info "
        "what changes from step to step"
    )


def test_strict_wants_shared_variables_to_be_passed():
    total = pytensor.shared(1.0, name="total")
    with pytest.raises(MissingInputError) as error:
        scan(lambda row: row + total, X, strict=True)
    assert str(error.value).splitlines()[0] == (
        "strict=True, but fn uses the shared variable total which is not in non_sequences: "
        "pass it there"
    )
    scan(lambda row, shared: row + shared, X, non_sequences=[total], strict=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"fn": lambda: X},
            "scan needs n_steps when there are no sequences to tell how many steps to take",
        ),
        (
            {"fn": lambda p: [p, p], "sequences": X, "outputs_info": [None]},
            "outputs_info has 1 entries but fn returned 2 outputs: give one entry for each output, "
            "None for one that is not fed back",
        ),
        (
            {"fn": lambda p: p, "outputs_info": [{"taps": [-1]}], "n_steps": 3},
            "outputs_info[0] has taps, so it needs the values before the first step: 'initial'",
        ),
        (
            {"fn": lambda p: p, "outputs_info": [{"initial": X, "taps": [-1, -1]}], "n_steps": 3},
            "outputs_info[0] has taps=[-1, -1]: list each tap once",
        ),
        (
            {"fn": lambda p: p, "outputs_info": [{"initial": X, "taps": [0]}], "n_steps": 3},
            "outputs_info[0] has taps=[0]: an output is fed back, so its taps are negative",
        ),
        (
            {"fn": lambda p: p, "outputs_info": [{"initial": X, "tap": [0]}], "n_steps": 3},
            "outputs_info[0] has keys that mean nothing: ['tap']. It takes 'initial' and 'taps'",
        ),
        (
            {"fn": lambda p: 1.0, "sequences": X},
            "fn must return outputs (a variable or a list of variables), then updates (a dict or "
            "pairs of a shared variable and its new value), then `until(condition)`; all but one "
            "may be missing. It returned 1.0. Numbers and arrays are made variables by "
            "`pt.constant`",
        ),
    ],
)
def test_wrong_calls_are_errors_that_say_what_to_do(arguments, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the whole text is compared
        scan(**arguments)
    assert str(error.value) == message


def test_profile_and_garbage_collection_reach_the_node():
    out = scan(lambda p: p + 1, X, allow_gc=True, profile=False, name="rows")
    op = out.owner.op
    assert (op.allow_gc, op.profile, op.name) == (True, False, "rows")


def test_the_callers_own_dicts_are_left_alone():
    entry = {"input": X}
    scan(lambda p: p, [entry])
    assert entry == {"input": X}
