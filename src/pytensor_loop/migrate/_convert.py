"""Convert the text of one file, one call site at a time."""

import ast
import dataclasses
import re
from collections.abc import Mapping

import libcst as cst

from pytensor_loop.migrate._calls import find_calls
from pytensor_loop.migrate._emit import emit_site, emit_todo
from pytensor_loop.migrate._imports import settle_imports
from pytensor_loop.migrate._inner import plan_inner
from pytensor_loop.migrate._outer import plan_outer
from pytensor_loop.migrate._read import read_site
from pytensor_loop.migrate._record import UnconvertibleError, UnfinishedError
from pytensor_loop.migrate._source import Edit, Source, apply_edits


# Parsing takes long; a file without these words has no old call in it.
_MENTION = re.compile(r"pytensor[\s\S]*\b(scan|scan_checkpoints|map|reduce|foldl|foldr)\b")


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of one call site."""

    line: int  # in the file as it was, from 1
    verdict: str  # "converted", "converted with a TODO", "left with a TODO" or "left alone"
    remarks: tuple[str, ...]

    @property
    def converted(self) -> bool:
        """Whether the old call is gone."""
        return self.verdict.startswith("converted")


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
    outcomes: dict[int, Outcome] = {}
    source, alive = before, list(range(len(lines)))
    while len(outcomes) < len(lines):
        calls = dict(zip(alive, find_calls(source), strict=True))
        edits: list[Edit] = []
        for i in _independent(source, {i: calls[i] for i in alive if i not in outcomes}):
            verdict, remarks, changes = _convert_one(source, calls[i], equal_lengths)
            outcomes[i] = Outcome(lines[i], verdict, remarks)
            edits += changes
        alive = [i for i in alive if i not in outcomes or not outcomes[i].converted]
        source = Source(apply_edits(source.text, edits)) if edits else source
    if any(outcome.converted for outcome in outcomes.values()):
        text = settle_imports(before, source.text)
    else:
        text = source.text
    return Conversion(text, tuple(outcomes[i] for i in range(len(lines))))


def _independent(source: Source, calls: Mapping[int, cst.Call]) -> list[int]:
    """Return those of `calls` that can be converted at once: one in each outermost function.

    All that a call site in a function changes is in that function. Those outside of any function
    come last, one by one: they may change a step that has a loop of its own in it.
    """
    first: dict[cst.CSTNode, int] = {}
    for i, call in calls.items():
        above = [node for node in source.ancestors(call) if isinstance(node, cst.FunctionDef)]
        first.setdefault(above[-1] if above else source.module, i)
    inside = [i for place, i in first.items() if place is not source.module]
    return inside or list(first.values())


def _convert_one(
    source: Source, call: cst.Call, equal_lengths: bool
) -> tuple[str, tuple[str, ...], list[Edit]]:
    """Return the verdict on `call`, remarks, and the edits."""
    try:
        site = read_site(source, call, equal_lengths=equal_lengths)
    except UnconvertibleError as reason:
        return "left alone", (str(reason),), []
    except UnfinishedError as reason:
        edits = emit_todo(source, call, str(reason), reason.advice)
        return "left with a TODO", (str(reason),), edits
    outer = plan_outer(source, site)
    inner = plan_inner(source, site, outer)
    edits = emit_site(source, site, outer, inner)
    if not _is_python(apply_edits(source.text, edits)):
        return "left alone", ("the converter would write what is not Python: please report",), []
    remarks = (*site.notes, *([] if site.todo is None else [site.todo]))
    return "converted" if site.todo is None else "converted with a TODO", remarks, edits


def _is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True
