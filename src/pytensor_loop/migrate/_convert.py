"""Convert the text of one file, one call site at a time."""

import dataclasses
import re

import libcst as cst

from pytensor_loop.migrate._calls import find_calls
from pytensor_loop.migrate._emit import emit_site, emit_todo
from pytensor_loop.migrate._imports import settle_imports
from pytensor_loop.migrate._inner import plan_inner
from pytensor_loop.migrate._outer import plan_outer
from pytensor_loop.migrate._read import read_site
from pytensor_loop.migrate._record import UnconvertibleError, UnfinishedError
from pytensor_loop.migrate._source import Source, apply_edits


# Parsing takes long; a file without these words has no old call in it.
_MENTION = re.compile(r"pytensor[\s\S]*\b(scan|scan_checkpoints|map|reduce|foldl|foldr)\b")


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of one call site."""

    line: int  # in the file as it was, from 1
    verdict: str  # "converted", "converted with a TODO", "left with a TODO" or "left alone"
    remarks: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Conversion:
    """What became of one file."""

    text: str
    outcomes: tuple[Outcome, ...]


def convert(text: str, *, equal_lengths: bool = False) -> Conversion:
    """Convert every call site in `text` that can be converted.

    Parameters
    ----------
    text
        A Python file.
    equal_lengths
        Trust that all sequences of a call are equally long. Without it, sequences of which this
        cannot be seen are cut to the shortest, as the old scan did.

    Returns
    -------
    Conversion
        The new text, and the outcome for every call site in order.

    Raises
    ------
    libcst.ParserSyntaxError
        If `text` is not Python.
    """
    if not _MENTION.search(text):
        return Conversion(text, ())
    before = Source(text)
    lines = [before.line(call) for call in find_calls(before)]
    outcomes: list[Outcome] = []
    position, source = 0, before
    for line in lines:
        call = find_calls(source)[position]
        verdict, remarks, new = _convert_one(source, call, equal_lengths)
        outcomes.append(Outcome(line, verdict, remarks))
        position += not verdict.startswith("converted")
        source = source if new == source.text else Source(new)
    if any(outcome.verdict.startswith("converted") for outcome in outcomes):
        return Conversion(settle_imports(before, source.text), tuple(outcomes))
    return Conversion(source.text, tuple(outcomes))


def _convert_one(
    source: Source, call: cst.Call, equal_lengths: bool
) -> tuple[str, tuple[str, ...], str]:
    """Return the verdict on `call`, remarks, and the new text."""
    try:
        site = read_site(source, call, equal_lengths=equal_lengths)
    except UnconvertibleError as reason:
        return "left alone", (str(reason),), source.text
    except UnfinishedError as reason:
        edits = emit_todo(source, call, str(reason), reason.advice)
        return "left with a TODO", (str(reason),), apply_edits(source.text, edits)
    outer = plan_outer(source, site)
    inner = plan_inner(source, site, outer)
    text = apply_edits(source.text, emit_site(source, site, outer, inner))
    remarks = (*site.notes, *([] if site.todo is None else [site.todo]))
    return "converted" if site.todo is None else "converted with a TODO", remarks, text
