"""What an expression visibly is: a list, an array, a number; how long; how to nest it."""

import enum
import re
from collections.abc import Callable
from typing import Any, TypeGuard

import libcst as cst

from pytensor_loop.migrate._source import Source


class Kind(enum.Enum):
    """What can be told about the value of an expression from the text alone."""

    LIST = "a list or tuple"
    ARRAY = "one array or symbolic variable"
    NUMPY = "a NumPy array"
    NUMBER = "a Python number"
    UNKNOWN = "unknown"


_SYMBOLIC = re.compile(r"pytensor\.(tensor\.|shared$|grad$)")
# Methods that a list does not have.
ARRAY_METHODS = {
    "astype", "dimshuffle", "dot", "flatten", "inc", "max", "mean", "min", "prod", "ravel",
    "reshape",    "set", "squeeze", "sum", "swapaxes", "transpose",
}  # fmt: skip
_ARRAY_ATTRIBUTES = {"T", "mT", "shape", "ndim", "dtype"}


def kind_of(source: Source, node: cst.CSTNode, depth: int = 5) -> Kind:
    """Return what `node` visibly is, following names that are assigned once."""
    for types, read in _READERS:
        if isinstance(node, types):
            return read(source, node, depth)
    return Kind.UNKNOWN


def _kind_of_name(source: Source, node: cst.Name, depth: int) -> Kind:
    values = source.values_of(node) if depth else []
    return _common({kind_of(source, value, depth - 1) for value in values})


def _kind_of_sign(source: Source, node: cst.UnaryOperation, depth: int) -> Kind:
    inner = kind_of(source, node.expression, depth)
    return inner if inner is Kind.NUMBER else Kind.ARRAY


def _kind_of_choice(source: Source, node: cst.IfExp, depth: int) -> Kind:
    return _common({kind_of(source, node.body, depth), kind_of(source, node.orelse, depth)})


def _kind_of_attribute(_source: Source, node: cst.Attribute, _depth: int) -> Kind:
    return Kind.ARRAY if node.attr.value in _ARRAY_ATTRIBUTES else Kind.UNKNOWN


def _common(kinds: set[Kind]) -> Kind:
    return kinds.pop() if len(kinds) == 1 else Kind.UNKNOWN


def _kind_of_operation(source: Source, node: cst.BinaryOperation, depth: int) -> Kind:
    sides = {kind_of(source, node.left, depth), kind_of(source, node.right, depth)}
    if Kind.LIST in sides:
        return Kind.LIST
    if len(sides) == 1:
        (kind,) = sides
        return Kind.ARRAY if kind is Kind.UNKNOWN else kind
    return Kind.NUMPY if sides == {Kind.NUMPY, Kind.NUMBER} else Kind.ARRAY


def _kind_of_call(source: Source, node: cst.Call, depth: int) -> Kind:
    names = source.qualified(node.func)
    if names & {"builtins.list", "builtins.tuple", "builtins.sorted"}:
        return Kind.LIST
    if any(name.startswith("numpy.") for name in names):
        return Kind.NUMPY
    if any(_SYMBOLIC.match(name) for name in names):
        return Kind.ARRAY
    func = node.func
    method = isinstance(func, cst.Attribute) and func.attr.value in ARRAY_METHODS
    if method:
        return Kind.ARRAY
    if isinstance(func, cst.Name) and depth:
        return _kind_of_returns(source, func, depth - 1)
    return Kind.UNKNOWN


def _kind_of_returns(source: Source, name: cst.Name, depth: int) -> Kind:
    """Return what the function `name` visibly returns, if it is defined once in this file."""
    nodes = [binding.node for binding in source.bindings(name)]
    if len(nodes) != 1 or not isinstance(nodes[0], cst.FunctionDef):
        return Kind.UNKNOWN
    returns = [node for node in source.walk(nodes[0]) if isinstance(node, cst.Return)]
    values = [ret.value for ret in returns if ret.value is not None]
    return _common({kind_of(source, value, depth) for value in values})


_READERS: tuple[tuple[type | tuple[type, ...], Callable[[Source, Any, int], Kind]], ...] = (
    ((cst.List, cst.Tuple, cst.ListComp), lambda *_: Kind.LIST),
    ((cst.Integer, cst.Float), lambda *_: Kind.NUMBER),
    (cst.Comparison, lambda *_: Kind.ARRAY),
    (cst.Name, _kind_of_name),
    (cst.UnaryOperation, _kind_of_sign),
    (cst.BinaryOperation, _kind_of_operation),
    (cst.Attribute, _kind_of_attribute),
    (cst.Call, _kind_of_call),
    (cst.IfExp, _kind_of_choice),
)


def literal_int(node: cst.CSTNode | None) -> int | None:
    """Return the integer that is written here."""
    if isinstance(node, cst.Integer):
        return int(node.value, 0)
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        inner = literal_int(node.expression)
        return None if inner is None else -inner
    return None


def literal_ints(node: cst.CSTNode) -> tuple[int, ...] | None:
    """Return the integers that are written here, as one integer, a list or a range."""
    one = literal_int(node)
    if one is not None:
        return (one,)
    if isinstance(node, cst.List | cst.Tuple):
        values = [literal_int(element.value) for element in node.elements]
        known = tuple(value for value in values if value is not None)
        return known if len(known) == len(values) else None
    if is_range(node):
        bounds = [literal_int(arg.value) for arg in node.args]
        known = tuple(bound for bound in bounds if bound is not None)
        return tuple(range(*known)) if known and len(known) == len(bounds) else None
    return None


def is_range(node: cst.CSTNode) -> TypeGuard[cst.Call]:
    """Whether this is a call of range()."""
    return (
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Name)
        and node.func.value == "range"
    )


def constant_index(node: cst.CSTNode) -> str | None:
    """Return what stands between the brackets of ``x[...]`` without spaces, for a single index."""
    if not isinstance(node, cst.Subscript) or len(node.slice) != 1:
        return None
    return cst.Module(body=[]).code_for_node(node.slice[0].slice).replace(" ", "")


def length_of(source: Source, node: cst.CSTNode) -> str:
    """Return the length of a sequence as text: equal texts are equal lengths."""
    if isinstance(node, cst.Name):
        value = source.value_of(node)
        # The value tells the length only if what it was computed from has not changed since.
        if isinstance(value, cst.Call | cst.Subscript) and _stable(source, value):
            return length_of(source, value)
    if isinstance(node, cst.Subscript):
        index = constant_index(node) or ""
        if index == "::-1":
            return length_of(source, node.value)
        if cut := re.fullmatch(r":-(\d+)|(\d+):", index):
            return f"{length_of(source, node.value)} - {cut[1] or cut[2]}"
    if isinstance(node, cst.Call) and _is_arange(source, node):
        return steps_length(source, node.args[0].value)
    return f"len({source.code(node)})"


def steps_length(source: Source, node: cst.CSTNode) -> str:
    """Return a number of steps as text, comparable with `length_of`."""
    if constant_index(node) == "0" and isinstance(node, cst.Subscript):
        shape = node.value
        if isinstance(shape, cst.Attribute) and shape.attr.value == "shape":
            return length_of(source, shape.value)
    return source.code(node)


def _is_arange(source: Source, node: cst.Call) -> bool:
    positional = [arg for arg in node.args if arg.keyword is None]
    known = {"pytensor.tensor.arange", "pytensor.tensor.basic.arange", "numpy.arange"}
    return len(positional) == 1 and bool(source.qualified(node.func) & known)


def _stable(source: Source, node: cst.CSTNode) -> bool:
    """Whether every name in `node` has one value for good."""
    names = [part for part in source.walk(node) if isinstance(part, cst.Name)]
    return all(len(source.bindings(name)) <= 1 for name in names)


def atom(code: str) -> str:
    """Return `code` so that ``[...]`` or ``.name`` can follow it."""
    try:
        node = cst.parse_expression(code)
    except cst.ParserSyntaxError:
        return f"({code})"
    simple = cst.Name | cst.Attribute | cst.Subscript | cst.Call | cst.List | cst.Tuple
    return code if isinstance(node, simple) and "\n" not in code.split("(", 1)[0] else f"({code})"


def parenthesized(code: str) -> str:
    """Return `code` so that it may stand on the right of ``=``."""
    if "\n" not in code:
        return code
    try:
        cst.parse_statement(f"_ = {code}\n")
    except cst.ParserSyntaxError:
        return f"({code})"
    return code
