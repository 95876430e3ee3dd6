"""Loops whose steps may change nothing: after a stop, and in gradients before it."""

from collections.abc import Iterable

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.scan.utils import ScanArgs
from pytensor.tensor.variable import TensorVariable

from pytensor_loop._remade import remade


def masked_loop(loop: Apply) -> tuple[list[Variable], TensorVariable]:
    """Return the outputs of a loop that stops changing when another one stops, and which steps ran.

    Parameters
    ----------
    loop
        A loop with a stop condition.
    """
    parts = ScanArgs.from_node(loop, clone=True)
    running = pt.scalar("running", dtype="bool")
    n_steps = pt.as_tensor(loop.inputs[0])
    [stop] = parts.cond
    parts.as_while, parts.cond = False, []
    at_first = pt.set_subtensor(pt.empty((1 + n_steps,), dtype="bool")[:1], np.ones(1, bool))
    parts.outer_in_sit_sot.append(at_first)
    parts.inner_in_sit_sot.append(running)
    parts.inner_out_sit_sot.append(running & ~pt.cast(stop, "bool"))
    past = [taps[-1] for taps in parts.inner_in_mit_sot]
    parts.inner_out_mit_sot = _either(running, parts.inner_out_mit_sot, past)
    parts.inner_out_sit_sot = _either(running, parts.inner_out_sit_sot, parts.inner_in_sit_sot)
    parts.inner_out_shared = _either(running, parts.inner_out_shared, parts.inner_in_shared)
    masked = remade(loop.op, parts)
    ran = masked.pop(loop.op.info.n_mit_sot + loop.op.info.n_sit_sot)
    return masked, ran[:-1]


def masked_gradient(gradient: Apply, running: TensorVariable) -> list[Variable]:
    """Return the outputs of a loop that goes back over all steps, and skips those never run.

    Parameters
    ----------
    gradient
        The gradient of the loop.
    running
        Which steps ran, as a bool vector.
    """
    parts = ScanArgs.from_node(gradient, clone=True)
    was_run = pt.scalar("was_run", dtype="bool")
    parts.outer_in_seqs.append(running[::-1])
    parts.inner_in_seqs.append(was_run)
    reads = zip(parts.mit_mot_in_slices, parts.inner_in_mit_mot, strict=True)
    by_tap = [dict(zip(taps, olds, strict=True)) for taps, olds in reads]
    parts.inner_out_mit_mot = tuple(
        _either(was_run, news, [old[tap] for tap in written])
        for news, written, old in zip(
            parts.inner_out_mit_mot, parts.mit_mot_out_slices, by_tap, strict=True
        )
    )
    nothing = [pt.zeros_like(row) for row in parts.inner_out_nit_sot]
    parts.inner_out_nit_sot = _either(was_run, parts.inner_out_nit_sot, nothing)
    parts.inner_out_sit_sot = _either(was_run, parts.inner_out_sit_sot, parts.inner_in_sit_sot)
    return remade(gradient.op, parts)


def _either(
    condition: TensorVariable, news: Iterable[Variable], olds: Iterable[Variable]
) -> list[Variable]:
    return [pt.switch(condition, new, old) for new, old in zip(news, olds, strict=True)]
