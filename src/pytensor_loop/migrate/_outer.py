"""Plan the outside of the loop: where each output comes from, and who reads it how."""

import dataclasses
import re

import libcst as cst

from pytensor_loop.migrate._feed import (
    init_code,
    init_entry,
    rows_code,
    with_named_sequences,
    xs_code,
)
from pytensor_loop.migrate._names import Names, grouped, is_identifier
from pytensor_loop.migrate._record import Form, Output, Reads, Site, Use
from pytensor_loop.migrate._source import Source


@dataclasses.dataclass(frozen=True)
class Outer:
    """The outside of the loop."""

    carried: tuple[int, ...]  # positions of the outputs that are carried
    stacked: tuple[int, ...]  # positions of the outputs whose rows are returned
    stacked_as_list: bool
    init: str
    xs: str | None
    n_steps: str | None
    reverse: bool
    target: str  # what the new call is assigned to
    prelude: tuple[str, ...]
    epilogue: tuple[str, ...]
    replaced: tuple[tuple[cst.CSTNode, str], ...]  # expressions that change, with their new code


@dataclasses.dataclass(frozen=True)
class _Targets:
    """Names for what the loop returns, and what else hangs on them."""

    final: str
    ys: str
    replaced: tuple[tuple[cst.CSTNode, str], ...] = ()
    epilogue: tuple[str, ...] = ()


def plan_outer(source: Source, site: Site) -> Outer:
    """Settle everything outside the step."""
    names = Names(source.identifiers(source.home(site.call)) | {"_"})
    outputs = site.outputs or ()
    places = [_place(site, i) for i in range(len(outputs))]
    carried = tuple(i for i, output in enumerate(outputs) if output.recurrent)
    stacked = tuple(i for i, place in enumerate(places) if place == "ys")
    reverse = site.backwards and not site.cut and _all_flipped(site, stacked)
    prelude = list(site.prelude)
    site = with_named_sequences(site, names, prelude)
    inits = {i: init_code(source, site, i, names, prelude) for i in carried}
    rows = rows_code(source, site, names, prelude)
    if site.result.form is Form.NAMES:
        targets = _named_targets(source, site, places, inits, reverse)
    else:
        targets = _value_targets(site, places, names)
    until = any(ret.until is not None for ret in site.step.returns)
    return Outer(
        carried=carried,
        stacked=stacked,
        stacked_as_list=site.result.form is not Form.NAMES,
        init=grouped([init_entry(outputs[i], inits[i]) for i in carried]),
        xs=xs_code(site, rows, reverse),
        n_steps=None if site.n_steps is None else rows or site.n_steps,
        reverse=reverse,
        target=_with_blank(source, site, names, [targets.final, targets.ys, *["_"][:until]]),
        prelude=tuple(prelude),
        epilogue=(*targets.epilogue, *_empty_updates(site)),
        replaced=targets.replaced,
    )


def _with_blank(source: Source, site: Site, names: Names, parts: list[str]) -> str:
    """Join the targets; what nobody reads gets another name where ``_`` means something."""
    target = ", ".join(parts)
    if not source.is_read("_", site.call) or "_" in site.result.targets:
        return target
    return re.sub(r"(?<![\w.])_(?!\w)", names.fresh("unused"), target)


def _empty_updates(site: Site) -> tuple[str, ...]:
    return () if site.result.updates is None else (f"{site.result.updates} = {{}}",)


# -- where the outputs come from -----------------------------------------------------------------


def _place(site: Site, i: int) -> str:
    """Return whether output `i` comes from the final carry, from ys, or is not read at all."""
    output = (site.outputs or ())[i]
    plain = output.recurrent and output.taps is None
    if output.generator or site.reduced:
        return "final"
    if site.result.form is not Form.NAMES:
        return "final" if site.result.take_last and plain else "ys"
    use = site.result.reads[i].use
    if use is Use.NOTHING:
        return "nothing"
    return "final" if use is Use.LAST and plain else "ys"


def _all_flipped(site: Site, stacked: tuple[int, ...]) -> bool:
    if site.outputs is None or (stacked and site.result.form is not Form.NAMES):
        return False
    return all(site.result.reads[i].use is Use.FLIPPED for i in stacked)


def _named_targets(
    source: Source, site: Site, places: list[str], inits: dict[int, str], reverse: bool
) -> _Targets:
    result = site.result
    outputs = site.outputs or (Output(),)
    if site.outputs is None:
        return _Targets("_", result.targets[0])
    read = [reads.use is not Use.NOTHING for reads in result.reads]
    finals = [
        name if place == "final" and is_read else "_"
        for name, place, is_read, output in zip(result.targets, places, read, outputs, strict=True)
        if output.recurrent
    ]
    stacked = [name for name, place in zip(result.targets, places, strict=True) if place == "ys"]
    replaced = [
        change
        for i, place in enumerate(places)
        for change in _replaced(source, site, i, place, inits.get(i), reverse)
    ]
    return _Targets(_target(finals), _target(stacked), tuple(replaced))


def _target(names: list[str]) -> str:
    return "_" if all(name == "_" for name in names) else grouped(names)


def _replaced(
    source: Source, site: Site, i: int, place: str, init: str | None, reverse: bool
) -> list[tuple[cst.CSTNode, str]]:
    """Return how the reads of output `i` change."""
    reads: Reads = site.result.reads[i]
    name = site.result.targets[i]
    output = (site.outputs or ())[i]
    if site.reduced or output.generator:
        return []
    changes = [(node, name if place == "final" else f"{name}[-1]") for node in reads.last]
    if reverse:
        changes += [(node, name) for node in reads.flipped]
    if init is not None:
        changes += [(node, _with_init(source, output, init, name)) for node in reads.buffers]
    return changes


def _with_init(source: Source, output: Output, init: str, name: str) -> str:
    """Return code for the initial state followed by all rows."""
    first = init
    if output.taps is None:
        first = f"{init}[None]" if is_identifier(init) else f"{source.tensor}.shape_padleft({init})"
    return f"{source.tensor}.concatenate([{first}, {name}])"


def _value_targets(site: Site, places: list[str], names: Names) -> _Targets:
    """Give names to what the loop returns, and put the old value together from them."""
    outputs = site.outputs
    if outputs is None or set(places) == {"ys"}:
        finals = "_"
        ys = names.fresh("ys")
        value = f"[{ys}]" if site.as_list and len(places) == 1 else ys
        value = f"{ys}[-1]" if site.result.take_last else value
    else:
        several = len(places) > 1
        each = [
            names.fresh("final" if place == "final" else "y" if several else "ys")
            for place in places
        ]
        finals = grouped([
            n if p == "final" else "_"
            for n, p, o in zip(each, places, outputs, strict=True)
            if o.recurrent
        ])
        ys = _target([n for n, p in zip(each, places, strict=True) if p == "ys"])
        value = f"[{', '.join(each)}]" if site.as_list else each[0]
    result = site.result
    if result.form is Form.VALUE:
        assert result.node is not None
        return _Targets(finals, ys, ((result.node, f"({value}, {{}})" if result.pair else value),))
    (target,) = result.targets
    if value == ys and re.fullmatch(r"[\w.]+", target):
        return _Targets(finals, target)
    return _Targets(finals, ys, epilogue=(f"{target} = {value}",))
