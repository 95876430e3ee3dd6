"""Understand the step function: its parameters, and whether it can be rewritten in place."""

import re

import libcst as cst

from pytensor_loop.migrate._calls import UNTIL, find_calls
from pytensor_loop.migrate._record import Step
from pytensor_loop.migrate._returns import Function, check_one_form, own_nodes, read_returns
from pytensor_loop.migrate._source import Source
from pytensor_loop.migrate._values import ARRAY_METHODS


_PURE = re.compile(r"(pytensor\.tensor|numpy|builtins|math)\.(?!random)")


def read_step(source: Source, call: cst.Call, fn: cst.BaseExpression) -> Step:
    """Read the step function `fn` of `call`."""
    functions = _definitions(source, call, fn)
    returns = [ret for function in functions for ret in read_returns(source, function)]
    check_one_form(returns)
    params = {_positional(source, function) for function in functions}
    only = functions[0] if len(functions) == 1 else None
    return Step(
        call=source.code(fn),
        node=only,
        params=params.pop() if len(params) == 1 else None,
        returns=tuple(returns),
        rewritable=only is not None and _rewritable(source, call, fn, only),
        pure=bool(functions) and all(_is_pure(source, function) for function in functions),
    )


def draws_implicitly(source: Source, step: Step) -> bool:
    """Whether the step visibly draws random numbers from generators that nobody passes."""
    if step.node is None:
        return False
    calls = [node for node in source.walk(step.node) if isinstance(node, cst.Call)]
    return any(_draws(source, call) for call in calls)


def passed_as_generator(source: Source, step: Step) -> set[str]:
    """Return the names that the step passes on as ``rng=``."""
    if step.node is None:
        return set()
    args = [node for node in source.walk(step.node) if isinstance(node, cst.Arg)]
    named = [arg.value for arg in args if arg.keyword is not None and arg.keyword.value == "rng"]
    return {value.value for value in named if isinstance(value, cst.Name)}


def _draws(source: Source, call: cst.Call) -> bool:
    if any(arg.keyword is not None and arg.keyword.value == "rng" for arg in call.args):
        return False
    func = source.code(call.func)
    names = source.qualified(call.func)
    stream = r"(.*[._])?(srng|rs|rstream|random_?stream)\.\w+"
    return (
        func.endswith("collect_default_updates")
        or bool(re.fullmatch(stream, func))
        or (func.endswith(".dist") and func[:1].isalpha())
        or any(".random." in name and not name.startswith("numpy") for name in names)
    )


def _definitions(source: Source, call: cst.Call, fn: cst.BaseExpression) -> list[Function]:
    """Return where `fn` is written in this file; an empty list if that cannot be told."""
    if isinstance(fn, cst.Lambda):
        return [fn]
    if (
        isinstance(fn, cst.Attribute)
        and isinstance(fn.value, cst.Name)
        and fn.value.value in {"self", "cls"}
    ):
        return _methods(source, call, fn.attr.value)
    if not isinstance(fn, cst.Name):
        return []
    value = source.value_of(fn)
    if isinstance(value, cst.Lambda):
        return [value]
    nodes = [binding.node for binding in source.bindings(fn)]
    functions = [node for node in nodes if isinstance(node, cst.FunctionDef)]
    return list(functions) if len(functions) == len(nodes) else []


def _methods(source: Source, call: cst.Call, name: str) -> list[Function]:
    owner = next((node for node in source.ancestors(call) if isinstance(node, cst.ClassDef)), None)
    members = owner.body.body if owner is not None else ()
    return [
        node for node in members if isinstance(node, cst.FunctionDef) and node.name.value == name
    ]


def _positional(source: Source, function: Function) -> tuple[str, ...] | None:
    params = function.params
    if isinstance(params.star_arg, cst.Param) or params.kwonly_params or params.star_kwarg:
        return None
    names = [param.name.value for param in (*params.posonly_params, *params.params)]
    is_method = isinstance(function, cst.FunctionDef) and _in_class(source, function)
    return tuple(names[1:] if is_method and names[:1] in (["self"], ["cls"]) else names)


def _in_class(source: Source, function: cst.FunctionDef) -> bool:
    block = source.parent(function)
    return block is not None and isinstance(source.parent(block), cst.ClassDef)


def _rewritable(source: Source, call: cst.Call, fn: cst.BaseExpression, function: Function) -> bool:
    params = function.params
    every = (*params.posonly_params, *params.params)
    if _positional(source, function) is None or any(
        param.default or param.annotation for param in every
    ):
        return False
    if isinstance(function, cst.Lambda):
        return fn is function
    return (
        isinstance(fn, cst.Name)
        and bool(every)
        and source.home(function) is source.home(call)
        and not _in_class(source, function)
        and not (function.decorators or function.returns or function.asynchronous)
        and sum(len(binding.references) for binding in source.bindings(fn)) == 1
        and isinstance(function.body, cst.IndentedBlock)
        and _returns_stand_alone(source, function)
    )


def _returns_stand_alone(source: Source, function: cst.FunctionDef) -> bool:
    returns = [node for node in own_nodes(source, function) if isinstance(node, cst.Return)]
    lines = [source.parent(node) for node in returns]
    alone = all(isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 for line in lines)
    return alone and bool(returns) and all(node.value is not None for node in returns)


def _is_pure(source: Source, function: cst.CSTNode, depth: int = 3) -> bool:
    """Whether the step surely makes no shared variables: it calls only tensor functions."""
    if not isinstance(function, cst.FunctionDef | cst.Lambda):
        return False
    calls = [node for node in source.walk(function) if isinstance(node, cst.Call)]
    scans = set(find_calls(source)) & set(calls)
    return not scans and all(_is_pure_call(source, call, depth) for call in calls)


def _is_pure_call(source: Source, call: cst.Call, depth: int) -> bool:
    names = source.qualified(call.func)
    if any(_PURE.match(name) for name in names) or names & UNTIL:
        return True
    func = call.func
    if isinstance(func, cst.Name):
        nodes = [binding.node for binding in source.bindings(func)]
        return depth > 0 and len(nodes) == 1 and _is_pure(source, nodes[0], depth - 1)
    return isinstance(func, cst.Attribute) and func.attr.value in ARRAY_METHODS
