"""Settle the imports of a converted file."""

import libcst as cst
from libcst.metadata import Assignment

from pytensor_loop.migrate._calls import OLD_NAMES, UNTIL
from pytensor_loop.migrate._emit import SCAN, TAPS
from pytensor_loop.migrate._source import Edit, Source, apply_edits


type Import = cst.Import | cst.ImportFrom


def settle_imports(before: Source, text: str) -> str:
    """Drop the old imports that nobody uses any more, and import the new names.

    Parameters
    ----------
    before
        The file as it was.
    text
        The converted text, with placeholders for the new names.
    """
    text = _without_unused(before, text)
    source = Source(text)
    variables = _variables(source)
    free = {"scan", "taps"} - variables
    lines = []
    if "scan" not in free:
        names = {SCAN: "pytensor_loop.scan", TAPS: "pytensor_loop.taps"}
        lines.append("import pytensor_loop")
    else:
        names = {SCAN: "scan", TAPS: "taps" if "taps" in free else "scan.taps"}
        wanted = ["scan", "taps"] if TAPS in text and "taps" in free else ["scan"]
        lines.append(f"from pytensor_loop import {', '.join(wanted)}")
    if not source.imports_tensor and source.tensor in variables:
        lines.insert(0, f"import pytensor.tensor as {source.tensor}")
    text = apply_edits(text, [_insertion(source, lines)])
    for placeholder, name in names.items():
        text = text.replace(placeholder, name)
    return text


def _variables(source: Source) -> set[str]:
    """Return every name that stands for a variable somewhere in the file."""
    names = (node for node in source.walk() if isinstance(node, cst.Name))
    return {name.value for name in names if _is_variable(source, name)}


def _is_variable(source: Source, name: cst.Name) -> bool:
    above = source.parent(name)
    if isinstance(above, cst.Attribute):
        return above.value is name
    if isinstance(above, cst.Arg):
        return above.value is name
    # `from scan import b` binds no `scan`.
    return not (isinstance(above, cst.ImportFrom) and above.module is name)


def _insertion(source: Source, lines: list[str]) -> Edit:
    """Put `lines` behind the last import at the top of the file, of PyTensor if there is one."""
    header: list[cst.SimpleStatementLine] = []
    for statement in source.module.body:
        if not isinstance(statement, cst.SimpleStatementLine):
            continue
        if not isinstance(statement.body[0], cst.Import | cst.ImportFrom):
            if header:
                break
            continue
        header.append(statement)
    akin = [line for line in header if source.code(line.body[0]).split()[1].startswith("pytensor")]
    if header:
        at = source.end((akin or header)[-1])
        end = source.text.find("\n", at) + 1 or len(source.text)
        return Edit(end, end, "".join(f"{line}\n" for line in lines))
    body = source.module.body
    at = 0
    if source.module.get_docstring() is not None:
        at = source.text.find("\n", source.end(body[0])) + 1
    return Edit(at, at, "\n" * bool(at) + "".join(f"{line}\n" for line in lines) + "\n")


# -- old imports ---------------------------------------------------------------------------------


def _without_unused(before: Source, text: str) -> str:
    """Remove each import of an old name that was used before and is not any more."""
    source = Source(text)
    was_used = {name for name, _, used in _imported(before) if used}
    unused = {
        alias
        for name, alias, used in _imported(source)
        if name in was_used and not used and not _exported(source, name)
    }
    statements = {source.parent(alias) for alias in unused}
    edits = [
        _without(source, statement, unused)
        for statement in statements
        if isinstance(statement, cst.Import | cst.ImportFrom)
    ]
    return apply_edits(text, edits)


def _exported(source: Source, name: str) -> bool:
    return f'"{name}"' in source.text or f"'{name}'" in source.text


def _imported(source: Source) -> list[tuple[str, cst.ImportAlias, bool]]:
    """Return the imports of old functions and of PyTensor: name, node, and whether it is used."""
    found = []
    for alias in (node for node in source.walk() if isinstance(node, cst.ImportAlias)):
        statement = source.parent(alias)
        full = source.code(alias.name)
        if isinstance(statement, cst.ImportFrom) and statement.module is not None:
            full = f"{source.code(statement.module)}.{full}"
        if full not in {*OLD_NAMES, *UNTIL, "pytensor"}:
            continue
        name = alias.evaluated_alias or alias.evaluated_name.split(".")[0]
        found.append((name, alias, _is_used(source, alias, name)))
    return found


def _is_used(source: Source, alias: cst.ImportAlias, name: str) -> bool:
    scope = source.scope(alias) or source.scope(source.module)
    found = scope[name] if scope is not None else ()
    return any(isinstance(binding, Assignment) and binding.references for binding in found)


def _without(source: Source, statement: Import, unused: set[cst.ImportAlias]) -> Edit:
    names = () if isinstance(statement.names, cst.ImportStar) else statement.names
    kept = [alias for alias in names if alias not in unused]
    if kept:
        last = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        new = statement.with_changes(names=[*kept[:-1], last])
        return Edit(
            source.start(statement), source.end(statement), source.module.code_for_node(new)
        )
    line = source.statement(statement)
    block = source.parent(line) if line is not None else None
    if line is None or len(getattr(block, "body", ())) == 1:
        return Edit(0, 0, "")
    return source.removal(line)
