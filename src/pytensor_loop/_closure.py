"""What the step captured: outer variables become explicit inputs of the loop."""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.replace import graph_replace
from pytensor.graph.traversal import toposort, walk
from pytensor.scalar.basic import ScalarType
from pytensor.tensor.basic import (
    ScalarFromTensor,
    scalar_from_tensor,
    tensor_from_scalar,
)
from pytensor.tensor.random.type import RandomType
from pytensor.tensor.type import iscalar


@dataclasses.dataclass(frozen=True)
class Closed:
    """A step that depends on nothing but its inputs."""

    outputs: tuple[Variable, ...]
    captured: tuple[Variable, ...]
    """The outer variables, as large as they come: whole subgraphs that the loop does not change."""
    placeholders: tuple[Variable, ...]
    """What stands for each of them in the step."""


def mark_now() -> int:
    """Return a mark that tells variables made before this moment from those made after it."""
    return _age(iscalar())


def refuse_generator(generator: Variable) -> None:
    """Raise the TypeError about a generator that a step was not given."""
    raise TypeError(_foreign_generator(generator))


def close_over(
    outputs: Sequence[Variable],
    placeholders: Iterable[Variable],
    mark: int,
    on_foreign_generator: Callable[[Variable], None] = refuse_generator,
) -> Closed:
    """Lift what does not depend on `placeholders` out of the step.

    The largest such subgraphs are lifted: what does not change from step to step is computed once,
    and gradients and PyMC find the caller's own variables behind the inputs of the loop.

    Parameters
    ----------
    outputs : sequence of Variable
        What the step returned.
    placeholders : iterable of Variable
        What the step was given.
    mark : int
        From `mark_now`, before the step ran.
    on_foreign_generator : callable
        What to do about a generator that the step draws from but was not given: every step would
        draw the same.
    """
    varying = set(placeholders)
    nodes = _nodes_made_by_step(outputs, varying, mark)
    for node in nodes:
        if varying.intersection(node.inputs):
            varying.update(node.outputs)
    for used in itertools.chain(outputs, *(node.inputs for node in nodes)):
        if isinstance(used.type, RandomType) and used not in varying:
            on_foreign_generator(used)
    replacements = dict(map(_stand_in, _captured(outputs, nodes, varying)))
    closed = graph_replace(
        list(outputs), {old: inner for old, (_, inner, _) in replacements.items()}, strict=False
    )
    return Closed(
        outputs=tuple(closed),
        captured=tuple(outer for outer, _, _ in replacements.values()),
        placeholders=tuple(placeholder for _, _, placeholder in replacements.values()),
    )


def _nodes_made_by_step(
    outputs: Sequence[Variable], placeholders: set[Variable], mark: int
) -> list[Apply]:
    """Return the nodes made since `mark`, in topological order.

    What is older cannot depend on the placeholders, which are younger: the search stops there, and
    so it does not matter how large the graph around the loop is. A draw made outside the step and
    captured is told from one made inside by the same mark.
    """

    def younger_parents(variable: Variable) -> Iterable[Variable]:
        young = variable.owner is not None and _age(variable) > mark
        return variable.owner.inputs if young else ()

    reached = walk(outputs, younger_parents)
    old = {variable for variable in reached if _age(variable) <= mark}
    return list(toposort(outputs, blockers=placeholders | old))


def _age(variable: Variable) -> int:
    # PyTensor numbers variables as it makes them.
    return int(variable.auto_name.removeprefix("auto_"))


def _captured(
    outputs: Sequence[Variable], nodes: Sequence[Apply], varying: set[Variable]
) -> Iterator[Variable]:
    """Yield, once each, what the changing part of the step reads from the rest."""
    changing = [node for node in nodes if varying.intersection(node.outputs)]
    edges = itertools.chain(*(node.inputs for node in changing), outputs)
    for edge in dict.fromkeys(edges):
        if edge not in varying and not isinstance(edge, Constant):
            yield edge


def _stand_in(variable: Variable) -> tuple[Variable, tuple[Variable, Variable, Variable]]:
    """Return `variable`, the input of the loop, what replaces it in the step, its placeholder."""
    outer = variable
    if isinstance(variable.type, ScalarType):
        # An index, say. The loop takes tensors.
        made_from_tensor = variable.owner and isinstance(variable.owner.op, ScalarFromTensor)
        outer = variable.owner.inputs[0] if made_from_tensor else tensor_from_scalar(variable)
    placeholder = outer.type(name=outer.name)
    inner = placeholder if outer is variable else scalar_from_tensor(placeholder)
    return variable, (outer, inner, placeholder)


def _foreign_generator(generator: Variable) -> str:
    name = f"generator {generator.name!r}" if generator.name else "a generator without a name"
    return (
        f"step_fn uses {name}, which is not in the carry, so every step would draw the same "
        "numbers. Put it in the carry: `init={'rng': rng, ...}`, draw with "
        "`next_rng, draw = pt.random.normal(rng=carry['rng'], return_next_rng=True)` and return "
        "`next_rng` in the new carry. (A draw made outside step_fn may be used: it is one number.)"
    )
