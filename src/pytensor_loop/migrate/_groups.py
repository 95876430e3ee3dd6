"""Read the groups of old arguments: outputs, non-sequences, sequences."""

import libcst as cst

from pytensor_loop.migrate._calls import OldCall
from pytensor_loop.migrate._entries import (
    as_list_code,
    is_one_entry,
    listed,
    read_non_sequences,
    read_output,
    read_sequence,
)
from pytensor_loop.migrate._record import Output, Sequences, Step, UnconvertibleError
from pytensor_loop.migrate._source import Source
from pytensor_loop.migrate._values import Kind, kind_of


def read_outputs(source: Source, old: OldCall, step: Step) -> tuple[Output, ...] | None:
    """Return the outputs; None if they are as many as the step returns, and that is unseen."""
    node = old.given("outputs_info")
    entries, _ = listed(source, old, node)
    if node is not None and entries is None:
        entries = [node]
        _check_single_output(source, step, node)
    if not entries:
        return _mapped_outputs(step)
    outputs = tuple(read_output(source, entry) for entry in entries)
    counts = {len(ret.outputs) for ret in step.returns if ret.outputs is not None}
    if counts and counts != {len(outputs)}:
        msg = f"outputs_info has {len(outputs)} entries, but the step returns {max(counts)} outputs"
        raise UnconvertibleError(msg)
    return outputs


def _check_single_output(source: Source, step: Step, node: cst.BaseExpression) -> None:
    kind = kind_of(source, node)
    returned = {1 if ret.outputs is None else len(ret.outputs) for ret in step.returns}
    if is_one_entry(source, node):
        return
    if kind is Kind.LIST or (kind is Kind.UNKNOWN and (returned != {1} or step.params is None)):
        msg = f"outputs_info is `{source.code(node)}`, and how many entries it has cannot be seen"
        raise UnconvertibleError(msg)


def _mapped_outputs(step: Step) -> tuple[Output, ...] | None:
    counts = {len(ret.outputs) for ret in step.returns if ret.outputs is not None}
    if counts:
        return (Output(),) * max(counts)
    if step.returns and all(ret.single for ret in step.returns):
        return (Output(),)
    return None


def n_past(outputs: tuple[Output, ...] | None) -> int | None:
    """Return how many past values the step gets; None if taps hide it."""
    total = 0
    for output in outputs or ():
        if isinstance(output.taps, str):
            return None
        if output.recurrent:
            total += 1 if output.taps is None else len(output.taps)
    return total


def read_others(
    source: Source, old: OldCall, step: Step, outputs: tuple[Output, ...] | None
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the non-sequences as arguments, statements to go in front, and notes."""
    node = old.given("non_sequences")
    entries, _ = listed(source, old, node, stars=True)
    if node is None or entries is not None:
        wishes = (step.params or ())[-len(entries or ()) :]
        return *read_non_sequences(source, old.node, entries or [], wishes), ()
    kind = kind_of(source, node)
    if kind not in {Kind.UNKNOWN, Kind.LIST}:
        return *read_non_sequences(source, old.node, [node], (step.params or ())[-1:]), ()
    (code,), prelude = read_non_sequences(source, old.node, [node], ("others",))
    if kind is Kind.LIST:
        return (f"*{source.code(node) if not prelude else code}",), prelude, ()
    past = n_past(outputs)
    asked = old.given("sequences")
    given = [] if asked is None else listed(source, old, asked)[0]
    if step.params is not None and past is not None and given is not None:
        rest = len(step.params) - past - sum(len(read_sequence(source, seq).taps) for seq in given)
        if rest == 1:
            return (code,), prelude, (f"took non_sequences `{code}` for one variable",)
        return (f"*{code}",), prelude, ()
    name, lines = as_list_code(source, node, "others", old.node)
    return (f"*{name}",), lines, ()


def read_sequences(
    source: Source,
    old: OldCall,
    step: Step,
    outputs: tuple[Output, ...] | None,
    others: tuple[str, ...],
) -> tuple[Sequences, tuple[str, ...], tuple[str, ...]]:
    """Return the sequences, statements to go in front, and notes."""
    node = old.given("sequences")
    # `xs or None` is a list that may be empty.
    if isinstance(node, cst.BooleanOperation) and source.code(node.right) == "None":
        node = node.left
    entries, _ = listed(source, old, node)
    if node is None or entries is not None:
        return Sequences(tuple(read_sequence(source, entry) for entry in entries or ())), (), ()
    kind = kind_of(source, node)
    code = source.code(node)
    if kind is Kind.LIST:
        return Sequences(spread=code), (), ()
    past = n_past(outputs)
    starred = any(other.startswith("*") for other in others)
    if kind is not Kind.UNKNOWN or is_one_entry(source, node):
        return Sequences((read_sequence(source, node),)), (), ()
    if step.params is not None and past is not None and not starred:
        if len(step.params) - past - len(others) == 1:
            return (
                Sequences((read_sequence(source, node),)),
                (),
                (f"took sequences `{code}` for one variable",),
            )
        return Sequences(spread=code), (), ()
    name, lines = as_list_code(source, node, "xs", old.node)
    return Sequences(spread=name), lines, ()
