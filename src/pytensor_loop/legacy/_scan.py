"""The old `scan`, built on the new one."""

import warnings
from collections.abc import Callable
from typing import Any

from pytensor_loop.legacy._advice import advise_scan
from pytensor_loop.legacy._build import Built, OldCall, build, op_settings
from pytensor_loop.legacy._names import names_of_caller


def scan(  # noqa: PLR0913, PLR0917 - the old signature
    fn: Callable[..., Any],
    sequences: Any = None,
    outputs_info: Any = None,
    non_sequences: Any = None,
    n_steps: Any = None,
    truncate_gradient: int = -1,
    go_backwards: bool = False,
    mode: Any = None,
    name: str | None = None,
    profile: Any = False,
    allow_gc: bool | None = None,
    strict: bool = False,
    return_list: bool = False,
    return_updates: bool = True,
) -> Any:
    """Run a loop by the signature of ``pytensor.scan``, and say how to write it by the new one.

    Parameters
    ----------
    fn : callable
        One step. It is given the rows of `sequences` at their taps, what is fed back at its taps,
        and `non_sequences`, each as an argument of its own. It returns outputs, updates of shared
        variables, and ``until(condition)``, in this order, where all but one may be missing.
    sequences : variable, dict or list of them, optional
        What is read row by row; ``dict(input=x, taps=[-1, 0])`` reads several rows in one step.
        All are cut to the shortest, or to `n_steps`.
    outputs_info : variable, dict, None or list of them, optional
        One entry for each output: its value before the first step, if it is fed back;
        ``dict(initial=x, taps=[-2, -1])`` feeds back older values; None is not fed back.
    non_sequences : variable or list of variables, optional
        More arguments of `fn`.
    n_steps : int or integer scalar variable, optional
        The number of steps; by default, as many as the shortest sequence has rows for.

    Other Parameters
    ----------------
    truncate_gradient : int
        How many steps back from the last one gradients go; all of them by -1.
    go_backwards : bool
        Whether to read the sequences from their ends. Rows come out in the order of the steps.
    mode, profile, allow_gc
        How the step is compiled.
    name : str, optional
        Shown in printed graphs, profiles and errors.
    strict : bool
        Whether every shared variable that `fn` uses must be in `non_sequences`.
    return_list : bool
        Whether a single output comes in a list too.
    return_updates : bool
        Whether the updates of shared variables are returned. They are not by the new one.

    Returns
    -------
    outputs : variable, list of variables or None
        For each output its rows; of what has no rows, such as a random generator, the last value.
    updates : dict
        Only if `return_updates`: the value of each shared variable after the last step.

    Warns
    -----
    DeprecationWarning
        With the same loop by `pytensor_loop.scan`, to be pasted in the place of the call.

    Raises
    ------
    ValueError
        Where ``pytensor.scan`` went on with wrong numbers: if `n_steps` is more than a sequence
        has rows for, or if there are fewer initial rows than taps look back.
    """
    call = OldCall(
        fn=fn,
        sequences=sequences,
        outputs_info=outputs_info,
        non_sequences=non_sequences,
        n_steps=n_steps,
        truncate_gradient=truncate_gradient,
        go_backwards=go_backwards,
        name=name,
        strict=strict,
        op_settings=op_settings(mode, profile, allow_gc),
    )
    built = build(call)
    warnings.warn(advise_scan(call, built, names_of_caller(1)), DeprecationWarning, stacklevel=2)
    return hand_back(built, return_list=return_list, return_updates=return_updates)


def hand_back(built: Built, *, return_list: bool, return_updates: bool, stacklevel: int = 3) -> Any:
    """Return the results in the old forms, and warn about the one with updates."""
    outputs: Any = built.outputs
    if len(outputs) == 1 and not return_list:
        outputs = outputs[0]
    elif not outputs and not built.one_step:
        outputs = None
    if not return_updates:
        if built.updates:
            names = ", ".join(map(str, built.updates))
            msg = (
                f"return_updates=False, but fn updates shared variables: {names}. Feed back by "
                "outputs_info what changes from step to step"
            )
            raise ValueError(msg)
        return outputs
    msg = (
        "the updates that are returned next to the outputs go away: pass return_updates=False, "
        "and feed back by outputs_info what changes from step to step"
    )
    warnings.warn(msg, DeprecationWarning, stacklevel=stacklevel)
    return outputs, built.updates
