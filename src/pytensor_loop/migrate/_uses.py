"""Understand what the program does with the value of the call."""

import libcst as cst
from libcst.metadata import Assignment

from pytensor_loop.migrate._record import Form, Reads, Result, UnconvertibleError, Use
from pytensor_loop.migrate._source import Source
from pytensor_loop.migrate._values import constant_index


def read_result(
    source: Source,
    call: cst.Call,
    statement: cst.SimpleStatementLine,
    n_outputs: int,
    *,
    as_list: bool,
    pair: bool,
) -> Result:
    """Read how the value of `call` is used.

    Parameters
    ----------
    source, call, statement
        The file, the call and the statement that holds it.
    n_outputs
        How many outputs the call gives; 0 if that cannot be told.
    as_list
        Whether the call gives a list of outputs.
    pair
        Whether the call gives (outputs, updates).
    """
    _check_hoistable(source, call, statement)
    assign = source.parent(call)
    if not isinstance(assign, cst.Assign) or len(assign.targets) != 1:
        return _expression(source, call, pair, one=n_outputs == 1 and not as_list)
    target: cst.CSTNode = assign.targets[0].target
    updates = None
    if pair:
        parts = _plain_elements(target)
        if parts is None or len(parts) != 2 or not isinstance(parts[1], cst.Name):
            return _expression(source, call, pair, one=n_outputs == 1 and not as_list)
        target, updates = parts[0], _updates_name(source, statement, parts[1])
    names = _target_names(target, n_outputs, as_list)
    if names is None:
        return Result(Form.TARGET, (source.code(target),), updates=updates)
    reads = tuple(_reads(source, statement, name, n_outputs == 0) for name in names)
    return Result(Form.NAMES, tuple(name.value for name in names), reads, updates=updates)


def _check_hoistable(source: Source, call: cst.Call, statement: cst.SimpleStatementLine) -> None:
    """Require that the loop may as well be built in a statement of its own, just before."""
    if len(statement.body) != 1:
        msg = "the call shares its line with other statements"
        raise UnconvertibleError(msg)
    lazy = (cst.Lambda, cst.IfExp, cst.BooleanOperation, cst.ListComp, cst.SetComp, cst.DictComp)
    for above in source.ancestors(call):
        if above is statement:
            return
        if isinstance(above, (*lazy, cst.GeneratorExp, cst.NamedExpr)):
            msg = f"the call stands inside a {type(above).__name__}, where no statement can go"
            raise UnconvertibleError(msg)


def _expression(source: Source, call: cst.Call, pair: bool, one: bool) -> Result:
    """Read a call that is part of a larger expression."""
    node: cst.CSTNode = call
    whole_pair = pair
    if pair:
        above = source.parent(node)
        index = constant_index(above) if above is not None else None
        if index == "0" and above is not None:
            node, whole_pair = above, False
        elif index is not None:
            msg = "the updates are taken out of the result by position"
            raise UnconvertibleError(msg)
    above = source.parent(node)
    last = one and not whole_pair and above is not None and constant_index(above) == "-1"
    if last and above is not None and isinstance(above, cst.Subscript) and above.value is node:
        return Result(Form.VALUE, node=above, take_last=True)
    return Result(Form.VALUE, node=node, pair=whole_pair)


def _plain_elements(target: cst.CSTNode) -> list[cst.BaseExpression] | None:
    if not isinstance(target, cst.Tuple | cst.List):
        return None
    if any(isinstance(element, cst.StarredElement) for element in target.elements):
        return None
    return [element.value for element in target.elements]


def _target_names(target: cst.CSTNode, n_outputs: int, as_list: bool) -> list[cst.Name] | None:
    """Return one plain name for each output, if the target is like that."""
    if isinstance(target, cst.Name):
        return None if as_list else [target]
    parts = _plain_elements(target)
    if parts is None or len(parts) != n_outputs or not as_list:
        return None
    names = [part for part in parts if isinstance(part, cst.Name)]
    return names if len(names) == len(parts) else None


def _updates_name(source: Source, statement: cst.SimpleStatementLine, name: cst.Name) -> str | None:
    """Return the name of the updates if anybody reads them."""
    reads = _reaching(source, statement, name)
    return name.value if reads is None or reads else None


def _reads(
    source: Source, statement: cst.SimpleStatementLine, name: cst.Name, everything: bool
) -> Reads:
    nodes = _reaching(source, statement, name)
    if nodes is None or everything:
        return Reads(Use.ALL)
    # At the top of a module a name that nobody reads here may be imported elsewhere.
    if not nodes:
        hidden = name.value.startswith("_") or source.home(statement) is not source.module
        return Reads(Use.NOTHING if hidden else Use.ALL)
    last = [_indexed(source, node, "-1") for node in nodes]
    if all(last):
        return Reads(Use.LAST, last=_present(last))
    flipped = [_indexed(source, node, "::-1") for node in nodes]
    if all(flipped):
        return Reads(Use.FLIPPED, flipped=_present(flipped))
    return Reads(Use.ALL, buffers=_present([_owner_input(source, node) for node in nodes]))


def _present(nodes: list[cst.CSTNode | None]) -> tuple[cst.CSTNode, ...]:
    return tuple(node for node in nodes if node is not None)


def _indexed(source: Source, name: cst.CSTNode, index: str) -> cst.CSTNode | None:
    """Return the expression ``name[index]``, or the buffer's last row, if `name` stands in one."""
    whole = _owner_input(source, name) if index == "-1" else None
    node = name if whole is None else whole
    above = source.parent(node)
    if not isinstance(above, cst.Subscript) or above.value is not node:
        return None
    return above if constant_index(above) == index else None


def _owner_input(source: Source, name: cst.CSTNode) -> cst.CSTNode | None:
    """Return the expression ``name.owner.inputs[0]``, if `name` stands in one."""
    node: cst.CSTNode = name
    for attribute in ("owner", "inputs"):
        above = source.parent(node)
        if not isinstance(above, cst.Attribute) or above.attr.value != attribute:
            return None
        node = above
    buffer = source.parent(node)
    if buffer is None or constant_index(buffer) != "0":
        return None
    # Who asks for the buffer's own owner wants the graph, not the numbers.
    above = source.parent(buffer)
    inspected = isinstance(above, cst.Attribute) and above.attr.value == "owner"
    return None if inspected else buffer


def _reaching(
    source: Source, statement: cst.SimpleStatementLine, name: cst.Name
) -> list[cst.CSTNode] | None:
    """Return the reads of what `statement` gives to `name`; None if they cannot be told."""
    bindings = source.bindings(name)
    if any(not isinstance(binding.node, cst.Name) for binding in bindings):
        return None
    reads: set[cst.CSTNode] = {access.node for binding in bindings for access in binding.references}
    # `out += 1` and `del out` are uses that leave no readable expression.
    if any(_is_modified(source, node) for node in (*reads, *(b.node for b in bindings))):
        return None
    if len(bindings) == 1:
        return sorted(reads, key=source.start)
    return _reaching_among(source, statement, bindings, reads)


def _is_modified(source: Source, node: cst.CSTNode) -> bool:
    return isinstance(source.parent(node), cst.AugAssign | cst.Del | cst.For | cst.NamedExpr)


def _reaching_among(
    source: Source,
    statement: cst.SimpleStatementLine,
    bindings: list[Assignment],
    reads: set[cst.CSTNode],
) -> list[cst.CSTNode] | None:
    """Return the reads between this assignment of a name and the next one in the same block."""
    block = source.parent(statement)
    if block is None:
        return None
    later = [b.node for b in bindings if source.start(b.node) > source.end(statement)]
    lines = {source.statement(node) for node in later}
    ends = [source.end(line) for line in lines if line is not None and source.parent(line) is block]
    inside = [node for node in reads if block in source.ancestors(node)]
    if ends:
        stop = min(ends)
        if any(source.start(node) < stop for node in later if not _ends_at(source, node, stop)):
            return None
    elif later or len(inside) < len(reads) or _in_loop(source, statement):
        return None
    else:
        stop = len(source.text)
    found = [node for node in inside if source.end(statement) <= source.start(node) < stop]
    home = source.home(statement)
    if any(source.home(node) is not home or _in_lambda(source, node, home) for node in reads):
        return None
    return sorted(found, key=source.start)


def _ends_at(source: Source, node: cst.CSTNode, stop: int) -> bool:
    line = source.statement(node)
    return line is not None and source.end(line) == stop


def _in_lambda(source: Source, node: cst.CSTNode, home: cst.CSTNode) -> bool:
    for above in source.ancestors(node):
        if above is home:
            return False
        if isinstance(above, cst.Lambda):
            return True
    return False


def _in_loop(source: Source, statement: cst.CSTNode) -> bool:
    home = source.home(statement)
    for above in source.ancestors(statement):
        if above is home:
            return False
        if isinstance(above, cst.For | cst.While):
            return True
    return False
