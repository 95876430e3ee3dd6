"""The old stop condition."""

import warnings
from typing import Any

from pytensor.scan.utils import until as pytensor_until


class until(pytensor_until):  # noqa: N801 - the old name
    """The condition that an old step function returns last: the loop stops where it is true.

    Parameters
    ----------
    condition : bool scalar
        Whether this step is the last one.

    Warns
    -----
    DeprecationWarning
        With the new way: the condition is the third value that a step returns.
    """

    def __init__(self, condition: Any) -> None:
        msg = (
            "`until(condition)` marks the condition for the old scan. In the new one it is the "
            "third value that step_fn returns: `return new_carry, y, condition`"
        )
        warnings.warn(msg, DeprecationWarning, stacklevel=2)
        super().__init__(condition)
