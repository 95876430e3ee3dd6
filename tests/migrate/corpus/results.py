# ruff: noqa: RUF059, SIM108 -- people write their loops like this
"""What is done with the result, and with the updates; the relatives of scan; TODOs."""

import numpy as np
import pytensor as pyt
from pytensor.scan import map as pt_map
from pytensor.scan import scan_checkpoints, views
from pytensor.scan.basic import scan
from pytensor.scan.views import foldl, foldr, reduce
from pytensor.tensor.random.utils import RandomStream


def rows(*shape, seed=0):
    return pyt.shared(np.random.default_rng(seed).normal(size=shape))


def zero():
    return pyt.tensor.constant(0.0, dtype="float64")


def case_returned_at_once():
    def cumulate(x):
        return scan(lambda v, s: s + v, [x], [zero()], return_updates=False)

    return (cumulate(rows(4)),)


def case_last_row_returned_at_once():
    def total(x):
        return scan(lambda v, s: s + v, [x], [zero()], return_updates=False)[-1]

    return (total(rows(4)),)


def case_several_outputs_returned_at_once():
    def both(x):
        return scan(lambda v, s: [s + v, s], [x], [zero(), None], return_updates=False)

    a, b = both(rows(4))
    assert isinstance(both(rows(4)), list)
    return (a, b)


def case_outputs_out_of_the_pair():
    last = scan(lambda v, s: s + v, [rows(4)], [zero()])[0][-1]
    total = scan(lambda v, s: s + v, [rows(4)], [zero()])[0].sum()
    return (last, total)


def case_pair_passed_on():
    def both(x):
        return scan(lambda v, s: s + v, [x], [zero()])

    out, updates = both(rows(4))
    assert updates == {}
    return (out,)


def case_list_kept_whole():
    results = scan(lambda v, s: [s + v, s], [rows(4)], [zero(), None], return_updates=False)
    a, b = results
    return (a, b, results[0][-1])


def case_return_list():
    (only,) = scan(lambda v, s: s + v, [rows(4)], [zero()], return_list=True, return_updates=False)
    kept = scan(lambda v, s: s + v, [rows(4)], [zero()], return_list=True, return_updates=False)
    return (only, kept[0])


def case_starred_and_attribute_targets():
    class Box:
        pass

    first, *rest = scan(
        lambda v, s: [s + v, s, v], [rows(4)], [zero(), None, None], return_updates=False
    )
    Box.out = scan(lambda v, s: s + v, [rows(4)], [zero()], return_updates=False)
    return (first, *rest, Box.out)


def case_name_assigned_again():
    out = scan(lambda v, s: s + v, [rows(4)], [zero()], return_updates=False)
    out = out[-1]
    more = out * 2
    out = scan(lambda v, s: s * v, [rows(4)], [zero() + 1], return_updates=False)
    kept = out[0]
    out = out[-1]
    return (more, out, kept)


def case_name_with_two_sources():
    flag = True
    if flag:
        out = scan(lambda v, s: s + v, [rows(4)], [zero()], return_updates=False)
    else:
        out = rows(4)
    return (out[-1],)


def case_updates_that_are_read():
    out, updates = scan(lambda v, s: s + v**2, [rows(4)], [zero()])
    updates[rows(1)] = rows(1)
    return (out, len(updates) + zero())


def case_targets_in_brackets():
    [a, b], _ = scan(lambda v, s: (s + v, s), [rows(4)], [zero(), None])
    (c, d), updates = scan(lambda v, s: (s + v, s), [rows(4)], [zero(), None])
    return (a, b, c[-1], d)


def case_map():
    a = pt_map(lambda v, w: v * w, rows(4), [rows(2)[0]], return_updates=False)
    b, _ = pyt.map(lambda v: (v * 2, v + 1), [rows(4)], go_backwards=True)
    return (a, *b)


def case_reduce():
    a, _ = reduce(lambda v, s: s + v, rows(4), zero())
    b, c = reduce(
        lambda v, s, t: (s + v, s * t),
        [rows(4)],
        [zero(), zero() + 1],
        return_updates=False,
    )
    return (a, b, c)


def case_folds():
    a = foldl(lambda v, s: 2 * s + v, rows(4), zero(), return_updates=False)
    b = foldr(lambda v, s: 2 * s + v, rows(4), zero(), return_updates=False)
    both = views.reduce(lambda v, s: 2 * s + v, rows(4), zero(), return_updates=False) + b
    return (a, b, both)


def case_import_inside():
    from pytensor.scan import scan as inner_scan

    out = inner_scan(lambda v, s: s + v, [rows(4)], [zero()], return_updates=False)
    return (out,)


def case_comments_stay():
    # Before.
    out = scan(
        lambda v, s: s + v,
        [rows(4)],  # some rows
        # the start
        outputs_info=[zero()],
        return_updates=False,
    )  # after
    return (out,)


def mode_todo():
    out = scan(lambda v, s: s + v, [rows(4)], [zero()], mode="FAST_COMPILE", return_updates=False)
    return (out,)


def todo_updates_of_a_counter():
    counter = pyt.shared(np.float64(0))
    out, updates = scan(lambda v: (v + counter, {counter: counter + 1}), [rows(4)])
    return (out, updates[counter])


def todo_draws_from_a_stream():
    srng = RandomStream(3)
    out, updates = scan(lambda v: v + srng.normal(0, 1), [rows(4)])
    return (out,)


def todo_updates_that_cannot_be_seen():
    helpers = {"double": lambda v: v * 2}
    out, updates = scan(lambda v: helpers["double"](v).sum(), [rows(4)])
    return (out, len(updates) + zero())


def left_checkpoints():
    out, _ = scan_checkpoints(
        lambda v, s, w: s + v + w, [rows(4)], [zero()], [zero()], n_steps=4, save_every_N=2
    )
    return (out,)


def todo_updates_by_name():
    def compute(v):
        counter = pyt.shared(np.float64(0))
        return v + counter, {counter: counter + 1}

    def step(v):
        y, updates = compute(v)
        return y, updates

    out, updates = scan(step, [rows(4)])
    return (out,)
