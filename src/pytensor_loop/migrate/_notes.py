"""Words for the reader: notes in the report, TODO comments and what stands in them."""

import re

import libcst as cst

from pytensor_loop.migrate._calls import OldCall
from pytensor_loop.migrate._record import Site, Use
from pytensor_loop.migrate._source import Source
from pytensor_loop.migrate._values import literal_int


_DROPPED = ("strict", "profile", "allow_gc")


def skeleton(source: Source, old: OldCall, explicit: bool) -> tuple[str, ...]:
    """Return how the loop might go on: with the shared variable, or the generator, in the carry."""
    init, xs, n_steps = (
        " ".join(source.code(node).split()) if (node := old.given(name)) is not None else None
        for name in ("outputs_info", "sequences", "n_steps")
    )
    what, new = ("shared", "new_shared") if explicit else ("rng", "next_rng")
    draw = f"    next_rng, draw = {source.tensor}.random.normal(..., rng=rng, return_next_rng=True)"
    start = "shared" if explicit else f"{source.tensor}.random.shared_rng(numpy_generator)"
    arguments = [start if init is None else f"({start}, {init})", *([] if xs is None else [xs])]
    arguments += [] if n_steps is None else [f"n_steps={n_steps}"]
    alone = init is None
    return (
        f"def step({what if alone else 'carry'}, x):",
        *([] if alone else [f"    {what}, state = carry"]),
        *([] if explicit else [draw]),
        f"    return {new}, y" if alone else f"    return ({new}, new_state), new_state",
        f"{new if alone else f'({new}, final)'}, ys = scan(step, {', '.join(arguments)})",
    )


def todo(source: Source, old: OldCall) -> str | None:
    """Return what the user must look at after the conversion."""
    mode = old.given("mode")
    return (
        None
        if mode is None
        else f"mode={source.code(mode)} was dropped: pass it to pytensor.function"
    )


def notes_on(source: Source, old: OldCall, site: Site) -> list[str]:
    """Return what the report says about a converted call."""
    notes = [f"{name} dropped" for name in _DROPPED if name in old.arguments]
    if site.cut:
        trust = "" if site.n_steps is not None else " (--equal-lengths trusts that they agree)"
        notes.append(f"sequences cut to {site.n_steps or 'the shortest'} as before{trust}")
    elif site.sequences.spread is not None:
        notes.append("sequences of unequal length are now an error")
    if literal_int(old.given("n_steps")) == 1 and (
        old.function == "foldr" or "go_backwards" in old.arguments
    ):
        notes.append("one step backwards: kept on row 0, where the old scan took it")
    generators = [out.init for out in site.outputs or () if out.generator]
    notes += [f"took `{code}` for a random generator" for code in generators]
    if not site.step.returns:
        notes.append(
            f"`{site.step.call}` is not in this file: took it to return no updates and no until"
        )
    numbers = [
        out.init for out in site.outputs or () if re.fullmatch(r"-?[\d.]+(e-?\d+)?", out.init or "")
    ]
    notes += [f"`{code}` now takes the dtype that the step settles on" for code in numbers]
    shrunk = [
        name
        for name, reads, out in zip(
            site.result.targets, site.result.reads, site.outputs or (), strict=False
        )
        if reads.use is Use.LAST and out.recurrent and out.taps is None and not site.reduced
    ]
    # Inside a function nobody else can see the name.
    if isinstance(source.home(site.call), cst.Module):
        notes += [f"`{name}` now holds the last row" for name in shrunk]
    return notes
