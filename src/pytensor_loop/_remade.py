"""Loops that rewrites make out of others."""

from collections.abc import Sequence

from pytensor.graph.basic import Variable
from pytensor.scan.op import Scan
from pytensor.scan.utils import ScanArgs


def remade(op: Scan, parts: ScanArgs, updates: Sequence[Variable] | None = None) -> list[Variable]:
    """Return the outputs of a loop with the settings of another one.

    Parameters
    ----------
    op
        The other one.
    parts
        Its parts by name, changed as the rewrite wants them.
    updates
        What a step computes, in the order of the Op, if it is not what the parts say.
    """
    loop = Scan(
        parts.inner_inputs,
        parts.inner_outputs if updates is None else list(updates),
        parts.info,
        mode=op.mode,
        truncate_gradient=op.truncate_gradient,
        name=op.name,
        profile=op.profile,
        allow_gc=op.allow_gc,
    )
    return list(loop.make_node(*parts.outer_inputs).outputs)
