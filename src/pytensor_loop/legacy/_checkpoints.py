"""The old `scan_checkpoints`: a loop of loops, so that gradients store one row in many."""

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any

import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from pytensor_loop.legacy._advice import advise_checkpoints
from pytensor_loop.legacy._arguments import OldArguments, as_list, read_arguments
from pytensor_loop.legacy._build import Built, OldCall, build, level
from pytensor_loop.legacy._names import names_of_caller
from pytensor_loop.legacy._scan import hand_back
from pytensor_loop.legacy._step import match_outputs


def scan_checkpoints(  # noqa: PLR0913, PLR0917 - the old signature
    fn: Callable[..., Any],
    sequences: Any = None,
    outputs_info: Any = None,
    non_sequences: Any = None,
    name: str = "checkpointscan_fn",
    n_steps: Any = None,
    save_every_N: int = 10,  # noqa: N803 - the old name
    padding: bool = True,
    return_updates: bool = True,
) -> Any:
    """Run a loop that keeps every so manieth row, as ``pytensor.scan.scan_checkpoints`` does.

    The steps between two kept rows are computed again in the gradient.

    Parameters
    ----------
    fn, sequences, outputs_info, non_sequences, n_steps, name, return_updates
        As for `scan`; no taps.
    save_every_N : int
        How many steps lie between two rows that are kept.
    padding : bool
        Whether the number of steps may be other than a multiple of `save_every_N`.

    Returns
    -------
    outputs : variable, list of variables or None
        Every `save_every_N`-th row of each output, and the last one.
    updates : dict
        Only if `return_updates`.

    Warns
    -----
    DeprecationWarning
        With the same loop by `pytensor_loop.scan`.

    Raises
    ------
    ValueError
        If `fn` returns a condition: ``pytensor.scan`` went on after the loop had stopped.
    RuntimeError
        If there are taps.
    """
    call = OldCall(
        fn=fn,
        sequences=sequences,
        outputs_info=outputs_info,
        non_sequences=non_sequences,
        n_steps=n_steps,
        name=name,
    )
    arguments = read_arguments(sequences, outputs_info, non_sequences)
    _refuse_taps(arguments, outputs_info)
    built = _build_nested(call, arguments, save_every_N, padding=padding)
    named = dataclasses.replace(call, name=None if name == "checkpointscan_fn" else name)
    advice = advise_checkpoints(named, built, names_of_caller(1), save_every_N)
    warnings.warn(advice, DeprecationWarning, stacklevel=2)
    return hand_back(built, return_list=False, return_updates=return_updates)


def _refuse_taps(arguments: OldArguments, outputs_info: Any) -> None:
    fed_back = any(isinstance(entry, dict) and "taps" in entry for entry in as_list(outputs_info))
    if fed_back or any(leaf.taps != (0,) for leaf in arguments.sequences):
        msg = "scan_checkpoints has no taps: write a loop in the step of another, by the new scan"
        raise RuntimeError(msg)


def _build_nested(call: OldCall, arguments: OldArguments, every: Any, *, padding: bool) -> Built:
    """Build a loop over chunks of `every` steps, each of them a loop."""
    length, series = level(arguments.sequences, call)
    n_chunks = pt.as_tensor(
        -(-(length.n_steps if length.static is None else length.static) // every)
    )
    sizes = pt.minimum(every, length.n_steps - every * pt.arange(n_chunks))
    inner: list[Built] = []

    def chunk(size: Variable, *given: Variable) -> Any:
        rows, past = given[: len(series)], iter(given[len(series) :])
        infos = [None if output.state is None else next(past) for output in arguments.outputs]
        n_steps, name = size, f"{call.name}_inner"
        steps = dataclasses.replace(
            call, sequences=rows, outputs_info=infos, n_steps=n_steps, name=name
        )
        built = build(steps)
        if built.returned.condition is not None:
            msg = (
                "scan_checkpoints cannot stop early: after a stop it would go on with the next "
                f"{every} steps. Use scan, which stops"
            )
            raise ValueError(msg)
        inner.append(built)
        return built.last, built.updates

    chunks = [_in_chunks(leaf.values, n_chunks, every, padding=padding) for leaf in series]
    outer = OldCall(
        fn=chunk,
        sequences=[sizes, *chunks],
        outputs_info=[output.initial for output in arguments.outputs],
        n_steps=n_chunks,
        name=f"{call.name}_outer",
        op_settings={"allow_gc": True},
    )
    built = build(outer)
    outputs = match_outputs(arguments.outputs, inner[-1].returned)
    arguments = dataclasses.replace(arguments, outputs=outputs)
    return dataclasses.replace(built, arguments=arguments, returned=inner[-1].returned)


def _in_chunks(rows: Any, n_chunks: Any, every: Any, *, padding: bool) -> Any:
    """Return rows with an axis of chunks; zeros that no step reads fill up the last one."""
    if padding:
        missing = n_chunks * every - rows.shape[0]
        rest = pt.zeros((missing, *rows.shape[1:]), dtype=rows.type.dtype)
        rows = pt.join(0, rows, rest)
    return rows.reshape((n_chunks, every, *rows.shape[1:]), ndim=rows.type.ndim + 1)
