"""Find the calls of the old functions, and bind their arguments to the old parameters."""

import dataclasses
import functools
from collections.abc import Mapping

import libcst as cst

from pytensor_loop.migrate._record import UnconvertibleError
from pytensor_loop.migrate._source import Source


_SCAN = (
    "fn", "sequences", "outputs_info", "non_sequences", "n_steps", "truncate_gradient",
    "go_backwards", "mode", "name", "profile", "allow_gc", "strict", "return_list",
    "return_updates",
)  # fmt: skip
_MAP = (
    "fn", "sequences", "non_sequences", "truncate_gradient", "go_backwards", "mode", "name",
    "return_updates",
)  # fmt: skip
_REDUCE = (
    "fn", "sequences", "outputs_info", "non_sequences", "go_backwards", "mode", "name",
    "return_updates",
)  # fmt: skip
_FOLD = ("fn", "sequences", "outputs_info", "non_sequences", "mode", "name", "return_updates")
_PARAMETERS = {
    "scan": _SCAN, "map": _MAP, "reduce": _REDUCE, "foldl": _FOLD, "foldr": _FOLD,
    "scan_checkpoints": (),
}  # fmt: skip

# Where PyTensor 3 lets each function be imported from.
OLD_NAMES = {
    **{f"{home}.{name}": name for home in ("pytensor", "pytensor.scan") for name in _PARAMETERS},
    **{f"pytensor.scan.views.{name}": name for name in ("map", "reduce", "foldl", "foldr")},
    "pytensor.scan.basic.scan": "scan",
    "pytensor.scan.checkpoints.scan_checkpoints": "scan_checkpoints",
}
UNTIL = {"pytensor.scan.until", "pytensor.scan.utils.until", "pytensor.scan.basic.until"}


@dataclasses.dataclass(frozen=True)
class OldCall:
    """A call of one of the old functions, with its arguments by name."""

    node: cst.Call
    function: str
    arguments: Mapping[str, cst.BaseExpression]

    def given(self, name: str) -> cst.BaseExpression | None:
        """Return the argument for parameter `name`, unless it is absent or None."""
        node = self.arguments.get(name)
        return None if isinstance(node, cst.Name) and node.value == "None" else node

    def flag(self, name: str, default: bool) -> bool:
        """Return an argument that must be written as True or False."""
        node = self.arguments.get(name)
        if node is None:
            return default
        if isinstance(node, cst.Name) and node.value in {"True", "False"}:
            return node.value == "True"
        msg = f"`{name}` is not written as True or False"
        raise UnconvertibleError(msg)


@functools.lru_cache(maxsize=2)
def find_calls(source: Source) -> list[cst.Call]:
    """Return the calls of the old functions, in the order of the text."""
    calls = (node for node in source.walk() if isinstance(node, cst.Call))
    return [call for call in calls if source.qualified(call.func) & OLD_NAMES.keys()]


def bind_arguments(source: Source, call: cst.Call) -> OldCall:
    """Bind the arguments of `call`.

    Raises
    ------
    UnconvertibleError
        If they cannot all be seen, or if the function has no counterpart.
    """
    function = next(OLD_NAMES[name] for name in source.qualified(call.func) if name in OLD_NAMES)
    if function == "scan_checkpoints":
        msg = "scan_checkpoints has no counterpart; pytensor_loop.legacy has it"
        raise UnconvertibleError(msg)
    if any(arg.star for arg in call.args):
        msg = "the call passes *args or **kwargs, so its arguments cannot be seen"
        raise UnconvertibleError(msg)
    positional = [arg.value for arg in call.args if arg.keyword is None]
    arguments = dict(zip(_PARAMETERS[function], positional, strict=False))
    arguments |= {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
    unknown = arguments.keys() - set(_PARAMETERS[function])
    if unknown or "fn" not in arguments:
        msg = f"the call does not fit the signature of pytensor.{function}"
        raise UnconvertibleError(msg)
    return OldCall(call, function, arguments)
