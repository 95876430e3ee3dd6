"""Write a planned call site as edits of the text. Nothing is left to decide but line breaks."""

import libcst as cst

from pytensor_loop.migrate._inner import Inner
from pytensor_loop.migrate._outer import Outer
from pytensor_loop.migrate._record import Form, Site
from pytensor_loop.migrate._source import Edit, Source


# What stands for the new names until it is known which of them are free in the file.
SCAN = "pTL_scan"
TAPS = "pTL_taps"
MARK = "# TODO(pytensor_loop.migrate): "
_WIDTH = 88


def emit_site(source: Source, site: Site, outer: Outer, inner: Inner) -> list[Edit]:
    """Return the edits that convert `site`."""
    reads = list(outer.replaced)
    if site.result.form is Form.VALUE:
        edits = [*_in_front(source, site, _statements(source, site, outer, inner))]
    else:
        edits = [
            _in_place(source, site, [*_statements(source, site, outer, inner), *outer.epilogue])
        ]
    edits += [_read_edit(source, node, code) for node, code in reads]
    edits += [source.removal(statement) for statement in site.dropped]
    return _tidied(source, [*edits, *_step_edits(source, site, inner)])


def emit_todo(source: Source, call: cst.Call, reason: str, advice: tuple[str, ...]) -> list[Edit]:
    """Return the edit that puts a comment above `call`; none if it is there already."""
    statement = source.statement(call)
    if not isinstance(statement, cst.SimpleStatementLine):
        return []
    above = source.text[: source.start(statement)].rsplit("\n\n", 1)[-1]
    if MARK in above:
        return []
    lines = [f"{MARK}{reason}.", *(f"#     {line}" for line in advice)]
    return [_insertion(source, statement, lines)]


# -- the statement -------------------------------------------------------------------------------


def _statements(source: Source, site: Site, outer: Outer, inner: Inner) -> list[str]:
    """Return all that takes the place of the call, as lines at the level of the statement."""
    arguments = [inner.argument, outer.init, *([] if outer.xs is None else [outer.xs])]
    options = {
        "n_steps": outer.n_steps,
        "reverse": "True" if outer.reverse else None,
        "truncate_gradient": site.truncate_gradient,
        "name": site.name,
    }
    arguments += [f"{option}={code}" for option, code in options.items() if code is not None]
    call = _call(
        source, outer.target, [arg.replace("taps(", f"{TAPS}(") for arg in arguments], site
    )
    todo = [] if site.todo is None else [f"{MARK}{site.todo}."]
    room = _WIDTH - len(source.indent(site.statement))
    unit = source.indent_unit
    definition = [_folded(line, room, unit) for line in inner.lines]
    prelude = [_folded(line, room, unit) for line in (*outer.prelude, *inner.prelude)]
    if definition:
        space = bool(prelude) or _needs_space(source, site.statement)
        definition = [*([""] if space else []), *definition, ""]
    before = [*prelude, *definition]
    return [*before, *_kept_comments(source, site, [*before, call]), *todo, call]


def _needs_space(source: Source, statement: cst.CSTNode) -> bool:
    """Whether a definition at this place needs a blank line in front."""
    above = (
        source.text[: source.start(statement)].rstrip(" \t").removesuffix("\n").rsplit("\n", 1)[-1]
    )
    return (
        bool(above.strip())
        and not above.rstrip().endswith(":")
        and not above.lstrip().startswith("#")
    )


def _call(source: Source, target: str, arguments: list[str], site: Site) -> str:
    unit = source.indent_unit
    room = _WIDTH - len(source.indent(site.statement))
    line = f"{target} = {SCAN}({', '.join(arguments)})"
    # The placeholder is longer than the name that will stand here.
    if len(line) - len(SCAN) + len("scan") <= room and "\n" not in line:
        return line
    inside = [
        _indented(_broken(argument, room - 2 * len(unit), unit) + ",", unit)
        for argument in arguments
    ]
    return "\n".join([f"{target} = {SCAN}(", *inside, ")"])


def _broken(code: str, room: int, unit: str) -> str:
    """Return a tuple or list with one element on a line, if it is too long for one line."""
    if len(code) <= room and "\n" not in code:
        return code
    try:
        node = cst.parse_expression(code)
    except cst.ParserSyntaxError:
        return code
    if not isinstance(node, cst.Tuple | cst.List) or "#" in code:
        return code
    module = cst.Module(body=[])
    elements = [
        module.code_for_node(element.with_changes(comma=cst.Comma())) for element in node.elements
    ]
    return "\n".join([code[0], *(_indented(element, unit) for element in elements), code[-1]])


def _folded(line: str, room: int, unit: str) -> str:
    """Return a line that is too long with the arguments of its outermost call on a line each."""
    indent = line[: len(line) - len(line.lstrip())]
    if len(line) <= room or "\n" in line:
        return line
    statement = cst.parse_module(line.strip()).body[0]
    small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
    call = small.value if isinstance(small, cst.Assign) else None
    if not isinstance(call, cst.Call) or not call.args:
        return line
    module = cst.Module(body=[])
    arguments = [module.code_for_node(arg.with_changes(comma=cst.Comma())) for arg in call.args]
    head = line[: len(line) - len(module.code_for_node(call))] + module.code_for_node(call.func)
    inside = ", ".join(argument.rstrip(", ") for argument in arguments)
    if len(indent + unit + inside) <= room:
        arguments = [inside]
    return "\n".join([
        f"{head}(",
        *(indent + unit + argument for argument in arguments),
        f"{indent})",
    ])


def _indented(text: str, indent: str) -> str:
    return indent + text.replace("\n", "\n" + indent)


def _kept_comments(source: Source, site: Site, lines: list[str]) -> list[str]:
    """Return the comments of the old call that would be lost."""
    comments = [node.value for node in source.walk(site.call) if isinstance(node, cst.Comment)]
    new = "\n".join(lines)
    return [comment for comment in comments if comment not in new]


def _in_place(source: Source, site: Site, lines: list[str]) -> Edit:
    statement = site.statement
    return Edit(
        source.line_start(statement), source.end(statement), _joined(source, statement, lines)
    )


def _in_front(source: Source, site: Site, lines: list[str]) -> list[Edit]:
    return [_insertion(source, site.statement, lines)]


def _insertion(source: Source, statement: cst.CSTNode, lines: list[str]) -> Edit:
    at = source.line_start(statement)
    return Edit(at, at, _joined(source, statement, lines) + "\n")


def _joined(source: Source, statement: cst.CSTNode, lines: list[str]) -> str:
    """Join lines for the place of `statement`."""
    indent = source.indent(statement)
    text = "\n".join(lines)
    return "\n".join(indent + line if line.strip() else "" for line in text.split("\n"))


# -- other places --------------------------------------------------------------------------------


def _read_edit(source: Source, node: cst.CSTNode, code: str) -> Edit:
    """Replace one expression; a statement that would assign a name to itself goes away."""
    assign = source.parent(node)
    statement = source.statement(node)
    if isinstance(assign, cst.Assign) and len(assign.targets) == 1 and statement is not None:
        block = source.parent(statement)
        itself = source.code(assign.targets[0].target) == code
        if itself and len(getattr(block, "body", ())) > 1:
            return source.removal(statement)
    return Edit(source.start(node), source.end(node), code)


def _tidied(source: Source, edits: list[Edit]) -> list[Edit]:
    """Where removed lines leave blank lines on both sides, remove those below as well."""
    tidied: list[Edit] = []
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        if tidied and not (edit.text or tidied[-1].text) and tidied[-1].end == edit.start:
            tidied.append(Edit(tidied.pop().start, edit.end, ""))
        else:
            tidied.append(edit)
    return [_with_blank_line(source, edit) for edit in tidied]


def _with_blank_line(source: Source, edit: Edit) -> Edit:
    whole_lines = not edit.text and source.text[edit.start - 1 : edit.start] == "\n"
    between = source.text[: edit.start].endswith("\n\n") and source.text[edit.end :].startswith(
        "\n"
    )
    return Edit(edit.start, edit.end + 1, "") if whole_lines and between else edit


def _step_edits(source: Source, site: Site, inner: Inner) -> list[Edit]:
    """Return the edits of a step that is rewritten where it stands."""
    function = site.step.node
    if inner.params is None or not isinstance(function, cst.FunctionDef):
        return []
    first, *_, last = (*function.params.params, function.params.params[-1])
    edits = [Edit(source.start(first), source.end(last), inner.params)]
    body = function.body.body
    begin = body[1] if function.get_docstring() is not None and len(body) > 1 else body[0]
    if inner.prologue:
        edits.append(_insertion(source, begin, list(inner.prologue)))
    for ret, lines in inner.returns:
        place = source.statement(ret)
        assert place is not None
        edits.append(
            Edit(source.line_start(ret), source.end(ret), _joined(source, place, list(lines)))
        )
    return edits
