"""Read one call site into a `Site`."""

import dataclasses
import re

import libcst as cst

from pytensor_loop.migrate._calls import OldCall, bind_arguments, find_calls
from pytensor_loop.migrate._entries import (
    listed,
)
from pytensor_loop.migrate._groups import n_past, read_others, read_outputs, read_sequences
from pytensor_loop.migrate._notes import notes_on, skeleton, todo
from pytensor_loop.migrate._record import (
    Form,
    Output,
    Result,
    Sequences,
    Site,
    Step,
    UnconvertibleError,
    UnfinishedError,
)
from pytensor_loop.migrate._source import Source
from pytensor_loop.migrate._steps import draws_implicitly, passed_as_generator, read_step
from pytensor_loop.migrate._uses import read_result
from pytensor_loop.migrate._values import literal_int, steps_length


_GENERATOR = re.compile(r"(.*[._])?rngs?(_\w*)?|.*shared_rng\(.*", re.DOTALL)


def read_site(source: Source, call: cst.Call, *, equal_lengths: bool) -> Site:
    """Understand `call`.

    Parameters
    ----------
    source, call
        The file and the call in it.
    equal_lengths
        Trust that all sequences of a call are equally long.

    Raises
    ------
    UnconvertibleError
        If the call must be left alone.
    UnfinishedError
        If a person must rewrite it.
    """
    old = bind_arguments(source, call)
    statement = source.statement(call)
    if not isinstance(statement, cst.SimpleStatementLine):
        msg = "the call does not stand in a statement of its own"
        raise UnconvertibleError(msg)
    _check_alone(source, old, statement)
    step = read_step(source, call, old.arguments["fn"])
    outputs = read_outputs(source, old, step)
    others, prelude, notes = read_others(source, old, step, outputs)
    sequences, more, more_notes = read_sequences(source, old, step, outputs, others)
    outputs = _name_outputs(source, step, outputs, sequences, others)
    result = _read_result(source, old, statement, step, outputs)
    n_steps, cut = _read_length(source, old, sequences, equal_lengths)
    site = Site(
        call=call,
        statement=statement,
        sequences=sequences,
        outputs=outputs,
        non_sequences=others,
        n_steps=n_steps,
        backwards=_backwards(old, sequences),
        cut=cut,
        truncate_gradient=_truncation(source, old),
        name=_code(source, old.given("name")),
        as_list=_as_list(old, outputs),
        reduced=old.function in {"reduce", "foldl", "foldr"},
        step=step,
        result=result,
        prelude=(*prelude, *more),
        dropped=_dropped(source, old),
        todo=todo(source, old),
    )
    notes += more_notes
    return dataclasses.replace(site, notes=(*notes, *notes_on(source, old, site)))


def _dropped(source: Source, old: OldCall) -> tuple[cst.CSTNode, ...]:
    """Return the statements that listed the arguments, of no use afterwards."""
    sequences = listed(source, old, old.given("sequences"))[1]
    outputs = listed(source, old, old.given("outputs_info"))[1]
    return (*sequences, *outputs, *listed(source, old, old.given("non_sequences"), stars=True)[1])


def _code(source: Source, node: cst.CSTNode | None) -> str | None:
    return None if node is None else source.code(node)


def _check_alone(source: Source, old: OldCall, statement: cst.SimpleStatementLine) -> None:
    inside = source.walk(statement)
    if len(set(find_calls(source)) & set(inside)) > 1:
        msg = "another old loop stands in the same statement"
        raise UnconvertibleError(msg)
    strings = (node for node in inside if isinstance(node, cst.SimpleString | cst.FormattedString))
    if any("\n" in source.code(node) for node in strings):
        msg = "a string of several lines stands in the same statement"
        raise UnconvertibleError(msg)


def _name_outputs(
    source: Source,
    step: Step,
    outputs: tuple[Output, ...] | None,
    sequences: Sequences,
    others: tuple[str, ...],
) -> tuple[Output, ...] | None:
    """Add the step's own names for its past, and tell the generators."""
    if outputs is None:
        return None
    rngs = passed_as_generator(source, step)
    known = step.params is not None and sequences.spread is None and n_past(outputs) is not None
    at = sum(len(seq.taps) for seq in sequences.entries)
    named = []
    for output in outputs:
        count = 0 if not output.recurrent else len(output.taps or (0,))
        names = (step.params or ())[at : at + count] if known else ()
        at += count
        generator = (
            output.recurrent
            and output.taps is None
            and (bool(_GENERATOR.fullmatch(output.init or "")) or bool(rngs & set(names)))
        )
        named.append(dataclasses.replace(output, names=names, generator=generator))
    return tuple(named)


def _as_list(old: OldCall, outputs: tuple[Output, ...] | None) -> bool:
    return old.flag("return_list", False) or (outputs is not None and len(outputs) > 1)


def _read_result(
    source: Source,
    old: OldCall,
    statement: cst.SimpleStatementLine,
    step: Step,
    outputs: tuple[Output, ...] | None,
) -> Result:
    pair = old.flag("return_updates", True)
    explicit = any(ret.has_updates for ret in step.returns)
    if pair and (explicit or draws_implicitly(source, step)):
        what = (
            "updates shared variables" if explicit else "draws from generators that nobody passes"
        )
        msg = f"the step {what}: they must be carried"
        raise UnfinishedError(msg, skeleton(source, old, explicit))
    result = read_result(
        source,
        old.node,
        statement,
        0 if outputs is None else len(outputs),
        as_list=_as_list(old, outputs),
        pair=pair,
    )
    if result.updates is not None and not step.pure:
        msg = f"the updates are read (`{result.updates}`), and that there are none cannot be seen"
        raise UnfinishedError(msg, skeleton(source, old, explicit=False))
    if result.pair and not step.pure:
        msg = (
            "the pair (outputs, updates) is passed on, and that there are no updates cannot be seen"
        )
        raise UnconvertibleError(msg)
    if outputs is None and result.form is not Form.NAMES and old.flag("return_list", False):
        msg = "with return_list=True the number of outputs must be visible"
        raise UnconvertibleError(msg)
    return result


def _backwards(old: OldCall, sequences: Sequences) -> bool:
    asked = old.function == "foldr" or old.flag("go_backwards", False)
    # Old scan did not turn the sequences around when it was asked for exactly one step.
    single = literal_int(old.given("n_steps")) == 1
    return asked and not single and bool(sequences.entries or sequences.spread)


def _read_length(
    source: Source, old: OldCall, sequences: Sequences, equal_lengths: bool
) -> tuple[str | None, bool]:
    """Return the number of steps to ask for, and whether the sequences must be cut."""
    node = old.given("n_steps")
    if node is None:
        different = len({seq.length for seq in sequences.entries}) > 1
        return None, different and not equal_lengths
    known = steps_length(source, node)
    if sequences.entries and {seq.length for seq in sequences.entries} == {known}:
        return None, False
    return source.code(node), bool(sequences.entries or sequences.spread)


def _truncation(source: Source, old: OldCall) -> str | None:
    node = old.given("truncate_gradient")
    if node is None or literal_int(node) == -1:
        return None
    code = source.code(node)
    return code if literal_int(node) is not None else f"None if {code} == -1 else {code}"
