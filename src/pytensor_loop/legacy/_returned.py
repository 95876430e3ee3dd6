"""What the old step function returned: outputs, updates of shared variables, a condition."""

import dataclasses
from typing import Any

from pytensor.graph.basic import Variable
from pytensor.scan.utils import until as pytensor_until


@dataclasses.dataclass(frozen=True)
class Returned:
    """The parts of what ``fn`` returned."""

    outputs: tuple[Variable, ...]
    updates: dict[Variable, Any]
    condition: Variable | None
    bare: bool
    """Whether there is one output, which was not in a list."""
    has_updates: bool
    """Whether there was a dict or list of updates, be it empty."""


def read_returned(returned: Any) -> Returned:
    """Sort out which part is which.

    Raises
    ------
    ValueError
        If the parts are not outputs, updates and a condition, in this order, where all but one
        may be missing.
    """
    for kinds in _FORMS:
        parts = (returned,) if len(kinds) == 1 else returned
        if _fits(parts, kinds):
            return _record(dict(zip(kinds, parts, strict=True)))
    msg = (
        "fn must return outputs (a variable or a list of variables), then updates (a dict or "
        "pairs of a shared variable and its new value), then `until(condition)`; all but one may "
        f"be missing. It returned {returned!r}. Numbers and arrays are made variables by "
        "`pt.constant`"
    )
    raise ValueError(msg)


def _fits(parts: Any, kinds: tuple[str, ...]) -> bool:
    return (
        isinstance(parts, list | tuple)
        and len(parts) == len(kinds)
        and all(_IS[kind](part) for kind, part in zip(kinds, parts, strict=True))
    )


def _record(part: dict[str, Any]) -> Returned:
    outputs = part.get("outputs", ())
    bare = isinstance(outputs, Variable)
    condition = part.get("condition")
    return Returned(
        outputs=(outputs,) if bare else tuple(outputs),
        updates=dict(part.get("updates", {})),
        condition=None if condition is None else condition.condition,
        bare=bare,
        has_updates="updates" in part,
    )


def _is_outputs(part: Any) -> bool:
    several = isinstance(part, list | tuple) and all(isinstance(x, Variable) for x in part)
    return isinstance(part, Variable) or several


def _is_updates(part: Any) -> bool:
    return isinstance(part, dict) or (
        isinstance(part, list | tuple)
        and all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in part)
    )


def _is_condition(part: Any) -> bool:
    return isinstance(part, pytensor_until)


_IS = {"outputs": _is_outputs, "updates": _is_updates, "condition": _is_condition}

# In the order in which they are tried: a pair of variables is two outputs before it is a pair.
_FORMS = (
    ("outputs",),
    ("updates",),
    ("outputs", "updates"),
    ("outputs", "condition"),
    ("updates", "condition"),
    ("outputs", "updates", "condition"),
)
