"""The inner graph of a loop as straight-line source, one statement group per node.

What is written as loops goes into a target: the row of the buffer that keeps the result if that is
safe, else scratch space. Every other Op is called as PyTensor lowers it.

How a kind of node is written is registered with :func:`write_node`, in the other modules here.
"""

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

from pytensor.graph.basic import Apply, Variable
from pytensor.scalar.basic import ScalarType
from pytensor.tensor.elemwise import DimShuffle, Elemwise

from pytensor_loop.backends._numba_names import Names
from pytensor_loop.backends._numba_scalar import ScalarCode
from pytensor_loop.backends._numba_values import Target, Value, indented


@singledispatch
def write_node(op: Any, node: Apply, step: "StepCode") -> None:
    """Write the statements of a node into the step; here: a call of what PyTensor makes of it.

    Parameters
    ----------
    op
        The Op of the node, by whose class the writer is chosen.
    node
        The node.
    step
        Appended to.
    """
    step.write_call(node)


class StepCode(Names):
    """Writes the statements of one step.

    Parameters
    ----------
    fgraph
        The inner graph.
    compile_options
        Passed to PyTensor's dispatch for Ops that are called.

    Attributes
    ----------
    targets
        For each result that is kept: where.
    written
        For each result that was offered its target: an expression of whether it is there already.
    scalar_code
        Writes scalar Ops.
    """

    def __init__(self, fgraph: Any, compile_options: dict[str, Any]) -> None:
        super().__init__(compile_options)
        self.fgraph = fgraph
        self.targets: dict[Variable, Target] = {}
        self.written: dict[Variable, str] = {}
        self.scalar_code = ScalarCode(self.name, self.call, self.use)
        self._done: set[Apply] = set()

    def write(self) -> None:
        """Write every node of the graph."""
        for node in self.fgraph.toposort():
            write_node(node.op, node, self)
            self._done.add(node)

    def write_call(self, node: Apply) -> None:
        """Write a node as a call of the function that PyTensor makes for it."""
        arguments = [self.array(v) for v in node.inputs]
        outputs = [self.name("a") for _ in node.outputs]
        function = self.call(node.op, node)
        self.body.append(f"{', '.join(outputs)} = {function}({', '.join(arguments)})")
        for variable, name in zip(node.outputs, outputs, strict=True):
            self.values[variable] = Value(name, scalar=isinstance(variable.type, ScalarType))

    def write_scalar(self, node: Apply, op: Any, scalar_node: Apply, inputs: Sequence[Any]) -> None:
        """Write a node whose inputs and outputs are single numbers."""
        elements = [self.scalar(v) for v in inputs]
        outputs = self.scalar_code.write(op, scalar_node, elements, self.body)
        for variable, name in zip(node.outputs, outputs, strict=True):
            self.values[variable] = Value(name, scalar=True)

    def target(self, node: Apply, variable: Variable, lengths: Sequence[str]) -> str:
        """Return the name of an array of these lengths to write a result into."""
        target = self.targets.get(variable)
        if target is None:
            return self.scratch(variable, lengths)
        if target.allocate:
            self.body.append("if i == 0:")
            self.body.append(f"    {target.allocate.format(shape=', '.join(lengths) + ',')}")
        allowed = "True" if self._is_in_place(node, variable) else target.allowed
        fits = [f"{a} == {b}" for a, b in zip(target.shape, lengths, strict=True) if a != b]
        conditions = [condition for condition in (allowed, *fits) if condition != "True"]
        out = self.name("out")
        self._write_target(out, variable, lengths, conditions)
        return out

    def _write_target(
        self, out: str, variable: Variable, lengths: Sequence[str], conditions: Sequence[str]
    ) -> None:
        """Make a name the row that keeps a result where the conditions hold, else scratch space."""
        row = f"{out} = {self.targets[variable].row}"
        if not conditions:
            self.body.append(row)
            self.values[variable] = Value(out, owned=True)
            self.written[variable] = "True"
            return
        if "False" in conditions:
            self.body += self.scratch_lines(out, variable, lengths)
            return
        memory = self.name("out")
        lines = self.scratch_lines(memory, variable, lengths)
        direct = self.name("direct")
        self.body += [f"{direct} = {' and '.join(conditions)}", f"if {direct}:", f"    {row}"]
        self.body += ["else:", *indented([*lines, f"{out} = {memory}"])]
        self.values[variable] = Value(out, owned=True)
        self.written[variable] = direct

    def _is_in_place(self, node: Apply, variable: Variable) -> bool:
        """Return whether nobody needs the memory of a target any more once this node has run."""
        return all(
            v is not None and self._is_last_reader(node, v, variable)
            for v in self.targets[variable].overwritten
        )

    def _is_last_reader(self, node: Apply, read: Variable, result: Variable) -> bool:
        """Return whether nobody reads a variable, or a view of it, after this node.

        The node itself may, if it reads each element just before it writes it.
        """
        pending = [read]
        while pending:
            shown = pending.pop()
            for client, position in self.fgraph.clients.get(shown, ()):
                element_by_element = (
                    isinstance(client.op, Elemwise)
                    and shown is read
                    and shown.type.broadcastable == result.type.broadcastable
                )
                if client is node and element_by_element:
                    continue
                if client is node or client not in self._done:
                    return False
                pending += _views(client, position)
        return True


def _views(node: Apply, position: int) -> list[Variable]:
    """Return the outputs of a node that may share memory with one of its inputs."""
    if isinstance(node.op, DimShuffle):
        return list(node.outputs)
    maps = (node.op.view_map, node.op.destroy_map)
    return [node.outputs[i] for m in maps for i, inputs in m.items() if position in inputs]
