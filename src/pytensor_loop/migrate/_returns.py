"""Understand what a step function returns: outputs, updates, a stop condition."""

import dataclasses

import libcst as cst

from pytensor_loop.migrate._calls import UNTIL
from pytensor_loop.migrate._record import Return, UnconvertibleError
from pytensor_loop.migrate._source import Source
from pytensor_loop.migrate._values import Kind, kind_of


type Function = cst.FunctionDef | cst.Lambda


def own_nodes(source: Source, function: Function) -> list[cst.CSTNode]:
    """Return what belongs to `function` itself and not to a function inside it."""
    inner = [
        node
        for node in source.walk(function)
        if node is not function and isinstance(node, cst.FunctionDef | cst.Lambda)
    ]
    hidden = {part for node in inner for part in source.walk(node)[1:]}
    return [node for node in source.walk(function) if node not in hidden]


def read_returns(source: Source, function: Function) -> list[Return]:
    """Read every return statement of `function`."""
    if isinstance(function, cst.Lambda):
        return [_read_return(source, function, function.body)]
    nodes = own_nodes(source, function)
    if any(isinstance(node, cst.Yield | cst.Await) for node in nodes):
        msg = "the step is a generator or a coroutine"
        raise UnconvertibleError(msg)
    returns = [node for node in nodes if isinstance(node, cst.Return)]
    return [_read_return(source, node, node.value) for node in returns if node.value is not None]


def _read_return(source: Source, node: cst.CSTNode, value: cst.BaseExpression) -> Return:
    parts = _elements(value)
    if parts is None:
        if isinstance(value, cst.Dict):
            msg = "the step returns nothing but updates of shared variables"
            raise UnconvertibleError(msg)
        return _outputs(source, Return(node, None, source.code(value), None, False, False), value)
    *_, last = parts
    until = _until_condition(source, last)
    rest = parts[:-1] if until is not None else parts
    has_updates = len(rest) == 2 and _is_updates(source, rest[1])
    if until is None and not has_updates:
        return _outputs(source, Return(node, None, source.code(value), None, False, False), value)
    if len(rest) != 1 + has_updates:
        msg = "the step returns outputs, updates and condition in a form that cannot be read"
        raise UnconvertibleError(msg)
    found = Return(node, None, source.code(rest[0]), until, has_updates, False)
    return _outputs(source, found, rest[0])


def _outputs(source: Source, found: Return, value: cst.BaseExpression) -> Return:
    parts = _elements(value)
    if parts is not None:
        if any(isinstance(part, cst.List | cst.Tuple | cst.Dict) for part in parts):
            msg = "the step returns outputs, updates and condition in a form that cannot be read"
            raise UnconvertibleError(msg)
        return dataclasses.replace(found, outputs=tuple(source.code(part) for part in parts))
    if isinstance(value, cst.List | cst.Tuple | cst.ListComp):
        return found
    return dataclasses.replace(found, single=_is_one_variable(source, found.node, value))


def _is_one_variable(source: Source, node: cst.CSTNode, value: cst.BaseExpression) -> bool:
    """Whether `value` is surely one variable and not a list of them."""
    if kind_of(source, value) in {Kind.ARRAY, Kind.NUMPY}:
        return True
    # Nobody indexes a list by one of the step's own symbolic arguments.
    if isinstance(value, cst.Subscript) and len(value.slice) == 1:
        index = value.slice[0].slice
        name = index.value if isinstance(index, cst.Index) else None
        bindings = source.bindings(name) if isinstance(name, cst.Name) else []
        return any(isinstance(binding.node, cst.Param) for binding in bindings)
    return isinstance(value, cst.Name) and _only_arrays(source, value)


def _only_arrays(source: Source, name: cst.Name) -> bool:
    """Whether every value that `name` ever gets is visibly an array (or it is a parameter)."""
    bindings = source.bindings(name)
    return bool(bindings) and all(
        isinstance(binding.node, cst.Param) or _assigned_array(source, binding.node)
        for binding in bindings
    )


def _assigned_array(source: Source, target: cst.CSTNode) -> bool:
    holder = source.parent(target)
    if isinstance(holder, cst.AugAssign):
        return True
    assign = source.parent(holder) if isinstance(holder, cst.AssignTarget) else None
    return isinstance(assign, cst.Assign) and kind_of(source, assign.value) is Kind.ARRAY


def _elements(value: cst.CSTNode) -> list[cst.BaseExpression] | None:
    """Return the elements of a list or tuple that is written out."""
    if not isinstance(value, cst.List | cst.Tuple) or not value.elements:
        return None
    if any(isinstance(element, cst.StarredElement) for element in value.elements):
        return None
    return [element.value for element in value.elements]


def _until_condition(source: Source, node: cst.BaseExpression) -> str | None:
    """Return the condition in ``until(condition)``, if `node` is that or a name for it."""
    if isinstance(node, cst.Name):
        value = source.value_of(node)
        named = value is not None and _until_condition(source, value) is not None
        return f"{node.value}.condition" if named else None
    if isinstance(node, cst.Call) and node.args and source.qualified(node.func) & UNTIL:
        return source.code(node.args[0].value)
    return None


def _is_updates(source: Source, node: cst.CSTNode) -> bool:
    if isinstance(node, cst.Dict | cst.DictComp):
        return True
    if isinstance(node, cst.Call):
        return source.code(node.func).endswith(("collect_default_updates", "dict"))
    if isinstance(node, cst.Name):
        value = source.value_of(node)
        named = "updates" in node.value
        return named if value is None else named or _is_updates(source, value)
    parts = _elements(node)
    return parts is not None and all(len(_elements(part) or ()) == 2 for part in parts)


def check_one_form(returns: list[Return]) -> None:
    """Require every return to give the same things."""
    forms = {(ret.until is None, ret.has_updates) for ret in returns}
    counts = {len(ret.outputs) for ret in returns if ret.outputs is not None}
    if len(forms) > 1:
        msg = "the step stops (until) or updates on some of its return statements only"
        raise UnconvertibleError(msg)
    mixed = any(ret.outputs is None and ret.single for ret in returns) and counts - {1}
    if len(counts) > 1 or mixed:
        msg = "the return statements of the step differ in their number of outputs"
        raise UnconvertibleError(msg)
