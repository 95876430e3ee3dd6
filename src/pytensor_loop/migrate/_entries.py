"""Read single entries of the old arguments: one sequence, one output, one non-sequence."""

import libcst as cst

from pytensor_loop.migrate._calls import OldCall
from pytensor_loop.migrate._names import Names, is_identifier
from pytensor_loop.migrate._record import Output, Sequence, UnconvertibleError
from pytensor_loop.migrate._source import Source
from pytensor_loop.migrate._values import (
    Kind,
    is_range,
    kind_of,
    length_of,
    literal_ints,
    parenthesized,
)


type Listed = tuple[list[cst.BaseExpression] | None, tuple[cst.CSTNode, ...]]


def listed(
    source: Source, old: OldCall, node: cst.BaseExpression | None, *, stars: bool = False
) -> Listed:
    """Return the entries of a list that is written out, here or in an assignment for this call.

    The second value holds that assignment, which is of no use afterwards.
    """
    if isinstance(node, cst.Name):
        value = source.value_of(node)
        reads = sum(len(binding.references) for binding in source.bindings(node))
        home = value is not None and source.home(value) is source.home(old.node)
        if (
            isinstance(value, cst.List | cst.Tuple)
            and home
            and reads == 1
            and _lasting(source, value)
        ):
            statement = source.statement(value)
            entries = _elements(value, stars)
            return entries, () if statement is None or entries is None else (statement,)
        return None, ()
    if isinstance(node, cst.List | cst.Tuple):
        return _elements(node, stars), ()
    return None, ()


def _elements(node: cst.List | cst.Tuple, stars: bool) -> list[cst.BaseExpression] | None:
    starred = any(isinstance(element, cst.StarredElement) for element in node.elements)
    if starred and not stars:
        return None
    # A starred element is not an expression of its own, but it is written like one.
    return [
        element if isinstance(element, cst.StarredElement) else element.value
        for element in node.elements
    ]


def _lasting(source: Source, node: cst.CSTNode) -> bool:
    """Whether the names in `node` keep their values, so that it may be written further down."""
    names = [part for part in source.walk(node) if isinstance(part, cst.Name)]
    return all(len(source.bindings(name)) <= 1 for name in names)


def is_one_entry(source: Source, node: cst.BaseExpression) -> bool:
    """Whether `node` is a dictionary that describes one entry."""
    return _fields(source, node) is not None


def _fields(source: Source, node: cst.BaseExpression) -> dict[str, cst.BaseExpression] | None:
    """Return the items of a dictionary that is written out."""
    if isinstance(node, cst.Dict):
        items = [item for item in node.elements if isinstance(item, cst.DictElement)]
        return {source.code(item.key).strip("'\""): item.value for item in items}
    if isinstance(node, cst.Call) and "builtins.dict" in source.qualified(node.func):
        return {arg.keyword.value: arg.value for arg in node.args if arg.keyword is not None}
    if isinstance(node, cst.Name):
        return _named_fields(source, node)
    return None


def _named_fields(source: Source, name: cst.Name) -> dict[str, cst.BaseExpression] | None:
    """Return the items of a dictionary that was assigned to `name`."""
    values = source.values_of(name)
    found = [_fields(source, value) for value in values if not isinstance(value, cst.Name)]
    if all(fields is None for fields in found):
        return None
    if len(values) == 1 and _lasting(source, values[0]):
        return found[0]
    msg = f"`{name.value}` is a dictionary that changes"
    raise UnconvertibleError(msg)


def _absent(node: cst.CSTNode | None) -> bool:
    return node is None or (isinstance(node, cst.Name) and node.value == "None")


def read_sequence(source: Source, node: cst.BaseExpression) -> Sequence:
    """Read one entry of ``sequences``."""
    fields = _fields(source, node)
    if fields is None:
        return Sequence(_array(source, node), (0,), length_of(source, node))
    if "input" not in fields:
        msg = "a sequence is a dictionary without `input`"
        raise UnconvertibleError(msg)
    taps: tuple[int, ...] | None = (0,)
    if not _absent(fields.get("taps")):
        taps = literal_ints(fields["taps"])
    if not taps or len(set(taps)) < len(taps):
        msg = "the taps of a sequence are not written out as different integers"
        raise UnconvertibleError(msg)
    lost = max(0, *taps) - min(0, *taps) if len(taps) > 1 else abs(taps[0])
    length = length_of(source, fields["input"])
    return Sequence(_array(source, fields["input"]), taps, f"{length} - {lost}" if lost else length)


def read_output(source: Source, node: cst.BaseExpression) -> Output:
    """Read one entry of ``outputs_info``."""
    fields = _fields(source, node)
    initial = node if fields is None else fields.get("initial")
    if initial is None or _absent(initial):
        return Output()
    return Output(_array(source, initial), _output_taps(source, (fields or {}).get("taps")))


def _output_taps(source: Source, taps: cst.BaseExpression | None) -> tuple[int, ...] | str | None:
    """Return the taps of an output: None for its last value only, code if they are computed."""
    if taps is None or _absent(taps):
        return None
    known = literal_ints(taps)
    # Old scan compared with the list [-1]: any other spelling adds a leading dimension.
    if isinstance(taps, cst.List) and known == (-1,):
        return None
    if known is None and is_range(taps):
        return source.code(taps)
    if known is None or isinstance(taps, cst.Integer | cst.UnaryOperation):
        msg = f"the taps of an output are `{source.code(taps)}`, which cannot be read"
        raise UnconvertibleError(msg)
    return known


def read_non_sequences(
    source: Source, call: cst.Call, entries: list[cst.BaseExpression], wishes: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Read the entries of ``non_sequences`` as arguments of the step.

    Parameters
    ----------
    source, call
        The file and the call.
    entries
        The entries.
    wishes
        The names that the step gives them, where that can be told.

    Returns
    -------
    tuple, tuple
        The arguments; and statements that name those that must be computed outside: a draw inside
        the step would be another one in every step.
    """
    names = Names(source.visible_names(call))
    arguments, prelude = [], []
    for i, node in enumerate(entries):
        star = "*" if isinstance(node, cst.StarredElement) else ""
        code = source.code(node).removeprefix("*").rstrip(", \n")
        if any(isinstance(part, cst.Call) for part in source.walk(node)):
            name = names.fresh(*wishes[i : i + 1], "others" if star else "other")
            prelude.append(f"{name} = {parenthesized(code)}")
            code = name
        elif kind_of(source, node) in _NOT_SYMBOLIC:
            code = _symbolic(source, node)
        arguments.append(star + code)
    return tuple(arguments), tuple(prelude)


_NOT_SYMBOLIC = {Kind.NUMPY, Kind.NUMBER, Kind.LIST}


def _symbolic(source: Source, node: cst.BaseExpression) -> str:
    """Return `node` as the symbolic variable that the old scan made of it."""
    return f"{source.tensor}.as_tensor_variable({source.code(node)})"


def _array(source: Source, node: cst.BaseExpression) -> str:
    """Return `node`, with a list of numbers made an array: for the new scan it would be a tree."""
    return _symbolic(source, node) if kind_of(source, node) is Kind.LIST else source.code(node)


def as_list_code(
    source: Source, node: cst.BaseExpression, name: str, place: cst.CSTNode
) -> tuple[str, tuple[str, ...]]:
    """Return a name for `node` as a list, and the statements that make it one."""
    taken = source.identifiers(source.home(place))
    while name in taken:
        name += "_"
    code = source.code(node)
    if is_identifier(code):
        return name, (f"{name} = {code} if isinstance({code}, list | tuple) else [{code}]",)
    return name, (
        f"{name} = {parenthesized(code)}",
        f"{name} = {name} if isinstance({name}, list | tuple) else [{name}]",
    )
