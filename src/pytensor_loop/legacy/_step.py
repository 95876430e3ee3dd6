"""One old step as the record that the loop is built from."""

import dataclasses
import itertools
import operator
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pytensor.compile.sharedvalue import SharedVariable, collect_new_shareds
from pytensor.graph.basic import Variable
from pytensor.graph.replace import graph_replace
from pytensor.graph.traversal import graph_inputs
from pytensor.graph.utils import MissingInputError

from pytensor_loop._check import Update, fit_dtype, fit_shapes, settle_types
from pytensor_loop._closure import close_over, mark_now
from pytensor_loop._inputs import State, as_variable, row_type
from pytensor_loop._trace import Row, Step
from pytensor_loop._tree import Tree
from pytensor_loop.legacy._arguments import OldArguments, OldOutput, OldState, flat
from pytensor_loop.legacy._returned import Returned, read_returned


@dataclasses.dataclass(frozen=True)
class OldStep:
    """One step, and where each of its results is found."""

    step: Step
    outputs: tuple[OldOutput, ...]
    """One for each output of ``fn``, also where ``outputs_info`` said nothing."""
    shared: tuple[SharedVariable, ...]
    """What the step updates; each is carried, after what ``outputs_info`` feeds back."""
    returned: Returned


@dataclasses.dataclass(frozen=True)
class _Run:
    """One run of ``fn`` on placeholders."""

    past: tuple[dict[int, Variable], ...]
    rows: tuple[dict[int, Variable], ...]
    returned: Returned
    outputs: tuple[OldOutput, ...]
    updates: dict[Any, Variable]
    mark: int


def trace_old_step(fn: Callable[..., Any], arguments: OldArguments, *, strict: bool) -> OldStep:
    """Run ``fn`` on placeholders.

    It runs once; once more only where a Python number in ``outputs_info`` takes another dtype.
    """
    while True:
        run = _run(fn, arguments)
        updates = [Update(value, None) for value in _fed_back(run)]
        settled = settle_types(arguments.states, updates)
        # Only dtypes have to settle: static shapes were never compared.
        states = [
            new if old.weak else old for old, new in zip(arguments.states, settled, strict=True)
        ]
        if all(map(operator.is_, states, arguments.states)):
            break
        arguments = _with_states(arguments, states)
    if strict:
        _check_shared_are_passed(run, arguments)
    return _close(run, arguments)


def _run(fn: Callable[..., Any], arguments: OldArguments) -> _Run:
    mark = mark_now()
    past = tuple(
        {tap: output.state.step_type(name=output.name_at(tap)) for tap in output.taps}
        for output in arguments.outputs
        if output.state is not None
    )
    rows = tuple(
        {tap: row_type(leaf.values.type)(name=leaf.name_at(tap)) for tap in leaf.taps}
        for leaf in arguments.sequences
    )
    given = flat([list(leaf.values()) for leaf in (*rows, *past)])
    with collect_new_shareds() as created:
        returned = read_returned(fn(*given, *arguments.non_sequences))
    outputs = match_outputs(arguments.outputs, returned)
    return _Run(past, rows, returned, outputs, _all_updates(returned, created), mark)


def match_outputs(outputs: tuple[OldOutput, ...], returned: Returned) -> tuple[OldOutput, ...]:
    """Return one entry for each output of ``fn``, also where ``outputs_info`` was empty."""
    if outputs and len(outputs) != len(returned.outputs):
        msg = (
            f"outputs_info has {len(outputs)} entries but fn returned {len(returned.outputs)} "
            "outputs: give one entry for each output, None for one that is not fed back"
        )
        raise ValueError(msg)
    return outputs or (OldOutput(),) * len(returned.outputs)


def _all_updates(returned: Returned, created: Iterable[SharedVariable]) -> dict[Any, Variable]:
    """Return the updates that ``fn`` returned, and those that come with what it created.

    A stream of random numbers creates its generators when it draws, and the next state of each is
    its default update. It is taken off: inside the loop, it is no update of the outer function.
    """
    updates = {shared: _as_update(shared, value) for shared, value in returned.updates.items()}
    used = set(graph_inputs([*returned.outputs, *updates.values()]))
    for shared in created:
        default = shared.default_update
        if default is not None and shared not in updates and shared in used:
            updates[shared] = default
        shared.default_update = None
    return updates


def _as_update(shared: Any, value: Any) -> Variable:
    if not isinstance(shared, SharedVariable):
        msg = f"fn returned an update for {shared!r}, which is not a shared variable"
        raise TypeError(msg)
    return shared.type.filter_variable(as_variable(value, f"the update of {shared.name}"))


def _fed_back(run: _Run) -> list[Variable]:
    """Return the new value of each output that is fed back."""
    return [
        value
        for value, output in zip(run.returned.outputs, run.outputs, strict=True)
        if output.state is not None
    ]


def _with_states(arguments: OldArguments, states: Iterable[State]) -> OldArguments:
    remaining = iter(states)
    outputs = tuple(
        dataclasses.replace(output, state=next(remaining)) if output.state is not None else output
        for output in arguments.outputs
    )
    return dataclasses.replace(arguments, outputs=outputs)


def _check_shared_are_passed(run: _Run, arguments: OldArguments) -> None:
    blockers = [*arguments.non_sequences]
    reached = graph_inputs([*run.returned.outputs, *run.updates.values()], blockers)
    for used in reached:
        if isinstance(used, SharedVariable) and used not in {*run.updates, *blockers}:
            msg = (
                f"strict=True, but fn uses the shared variable {used} which is not in "
                "non_sequences: pass it there"
            )
            raise MissingInputError(msg)


def _close(run: _Run, arguments: OldArguments) -> OldStep:
    """Put the parts of the step together, closed over what it captured."""
    returned = run.returned
    shared = tuple(run.updates)
    states = (*arguments.states, *map(_shared_state, shared))
    placeholders: dict[Variable, Variable] = {
        variable: variable.type(name=variable.name) for variable in shared
    }
    values = [
        *returned.outputs,
        *run.updates.values(),
        *([] if returned.condition is None else [returned.condition]),
    ]
    past = (*run.past, *({-1: placeholder} for placeholder in placeholders.values()))
    inner = flat([list(leaf.values()) for leaf in (*run.rows, *past)])
    values = graph_replace(values, placeholders, strict=False)
    closed = close_over(values, inner, run.mark, _warn_of_repeated_draws)
    parts = iter(closed.outputs)
    outputs = list(itertools.islice(parts, len(returned.outputs)))
    new_values = [*_pick_fed_back(run.outputs, outputs), *itertools.islice(parts, len(shared))]
    cast = [fit_dtype(Update(v, None), state) for v, state in zip(new_values, states, strict=True)]
    fitted = iter(fit_shapes([*cast, *outputs, *parts], states))
    updates = tuple(itertools.islice(fitted, len(cast)))
    outputs = list(itertools.islice(fitted, len(outputs)))
    step = Step(
        states=states,
        past=past,
        rows=run.rows,
        updates=updates,
        y=Tree.of(outputs),
        ys=tuple(_stacked(run.outputs, outputs)),
        stop=next(fitted, None),
        captured=closed.captured,
        captured_placeholders=closed.placeholders,
    )
    return OldStep(step, run.outputs, shared, returned)


def _warn_of_repeated_draws(generator: Variable) -> None:
    msg = (
        f"fn draws from {generator}, which is neither updated nor fed back, so every step draws "
        "the same numbers. Put it in outputs_info and return its next state"
    )
    warnings.warn(msg, UserWarning, stacklevel=7)


def _shared_state(variable: SharedVariable) -> State:
    place = f"the shared variable {variable}"
    return OldState(place, place, variable, None, weak=False)


def _pick_fed_back(outputs: Sequence[OldOutput], values: Sequence[Variable]) -> list[Variable]:
    return [
        value for output, value in zip(outputs, values, strict=True) if output.state is not None
    ]


def _stacked(outputs: Sequence[OldOutput], values: Sequence[Variable]) -> Iterable[Row]:
    """Yield what is stacked: what is fed back is the trace of its state."""
    position = itertools.count()
    for output, value in zip(outputs, values, strict=True):
        state = None if output.state is None else next(position)
        if output.state is None or output.state.traced:
            yield Row(value, state)
