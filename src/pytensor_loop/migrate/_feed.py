"""Plan what goes into the loop: the initial carry, the sequences, the number of steps."""

import dataclasses
import re

from pytensor_loop.migrate._names import Names, grouped, is_identifier
from pytensor_loop.migrate._record import Form, Output, Sequence, Sequences, Site
from pytensor_loop.migrate._source import Source
from pytensor_loop.migrate._values import atom, parenthesized


def init_code(source: Source, site: Site, i: int, names: Names, prelude: list[str]) -> str:
    """Return the initial state of output `i`; it gets a name if it is needed twice."""
    init = (site.outputs or ())[i].init or ""
    again = site.result.form is Form.NAMES and site.result.reads[i].buffers
    if not again or is_identifier(init) or re.fullmatch(r"-?[\d.]+", init):
        return init
    name = names.fresh(f"{site.result.targets[i]}_init")
    prelude.append(f"{name} = {parenthesized(init)}")
    return name


def init_entry(output: Output, init: str) -> str:
    if output.taps is None:
        return init
    taps = output.taps if isinstance(output.taps, str) else str(list(output.taps))
    return f"taps({init}, {taps})"


def rows_code(source: Source, site: Site, names: Names, prelude: list[str]) -> str | None:
    """Return code for the number of rows to keep of each sequence; None to keep all."""
    if not site.cut:
        return None
    if site.n_steps is not None:
        if re.fullmatch(r"[\w.]+|[\w.]+\.shape\[0\]", site.n_steps):
            return site.n_steps
        code = parenthesized(site.n_steps)
    else:
        lengths = [_length(seq) for seq in site.sequences.entries]
        two = f"{source.tensor}.minimum({', '.join(lengths)})"
        code = two if len(lengths) == 2 else f"{source.tensor}.min([{', '.join(lengths)}])"
    name = names.fresh("n_steps", "n_rows")
    prelude.append(f"{name} = {code}")
    return name


def with_named_sequences(site: Site, names: Names, prelude: list[str]) -> Site:
    """Name the sequences that are computed, if their lengths are asked for too."""
    if not site.cut or site.n_steps is not None:
        return site
    entries = []
    for seq in site.sequences.entries:
        if "(" not in seq.code:
            entries.append(seq)
            continue
        name = names.fresh("x")
        prelude.append(f"{name} = {parenthesized(seq.code)}")
        entries.append(dataclasses.replace(seq, code=name))
    return dataclasses.replace(site, sequences=Sequences(tuple(entries)))


def _length(seq: Sequence) -> str:
    lost = max(0, *seq.taps) - min(0, *seq.taps) if len(seq.taps) > 1 else abs(seq.taps[0])
    return f"{atom(seq.code)}.shape[0]" + (f" - {lost}" if lost else "")


def xs_code(site: Site, rows: str | None, reverse: bool) -> str | None:
    flip = site.backwards and not reverse
    if site.sequences.spread is not None:
        cut = ("[::-1]" if flip else "") + (f"[:{rows}]" if rows else "")
        spread = site.sequences.spread
        return f"[x{cut} for x in {spread}]" if cut else spread
    entries = [_sequence(seq, rows, flip) for seq in site.sequences.entries]
    return grouped(entries) if entries else None


def _sequence(seq: Sequence, rows: str | None, flip: bool) -> str:
    """Return the array to scan: taps count from 0 here, and rows go in order of iteration."""
    if len(seq.taps) == 1:
        return _single_tap(seq, rows, flip)
    low, high = min(0, *seq.taps), max(0, *seq.taps)
    shifted = [high - tap if flip else tap - low for tap in seq.taps]
    # The old scan kept room for tap 0 even where nobody reads it.
    unused = high - low - max(shifted)
    code = atom(seq.code) + "[::-1]" if flip else seq.code
    code = f"{atom(code)}[:-{unused}]" if unused else code
    code = f"{atom(code)}[:{rows} + {max(shifted)}]" if rows else code
    return f"taps({code}, {shifted})"


def _single_tap(seq: Sequence, rows: str | None, flip: bool) -> str:
    (tap,) = seq.taps
    cut = f"[{tap}:]" if tap > 0 else f"[:{tap}]" if tap < 0 else ""
    cut += ("[::-1]" if flip else "") + (f"[:{rows}]" if rows else "")
    return f"{atom(seq.code)}{cut}" if cut else seq.code
