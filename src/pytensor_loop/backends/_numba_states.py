"""The values that one step hands to the next without a trace."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytensor.compile.aliasing import alias_root
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.scan.op import Scan
from pytensor.tensor.type import DenseTensorType

from pytensor_loop.backends._numba_names import borrowed
from pytensor_loop.backends._numba_scalar import cast
from pytensor_loop.backends._numba_step import StepCode
from pytensor_loop.backends._numba_values import (
    Lines,
    Target,
    Value,
    is_small,
    lengths_of,
    nested_loops,
    subscript,
    tuple_of,
)


@dataclass(frozen=True)
class State:
    """One value that a step hands to the next without a trace.

    Parameters
    ----------
    name
        Name of the value.
    argument
        Name of the outer input.
    inner_input, inner_output
        What a step reads, and what it hands on.
    copied
        Whether the step overwrites it, and it belongs to somebody else.
    """

    name: str
    argument: str
    inner_input: Variable
    inner_output: Variable
    copied: bool

    @property
    def is_tensor(self) -> bool:
        """Whether it is a dense tensor."""
        return isinstance(self.inner_input.type, DenseTensorType)

    @property
    def is_scalar(self) -> bool:
        """Whether it lives in a register."""
        return bool(self.is_tensor and self.inner_input.type.ndim == 0)

    @property
    def is_small(self) -> bool:
        """Whether it is an array of few elements, which lives on the stack."""
        return self.is_tensor and not self.is_scalar and is_small(self.inner_input)

    @property
    def is_borrowed(self) -> bool:
        """Whether the step sees a borrowed view: not if its update may be a view of it."""
        return self.is_tensor and alias_root(self.inner_output) is not self.inner_input

    def result(self, boxed: bool) -> str:
        """Return the expression of what the loop returns; numbers as arrays if they are boxed."""
        if self.is_small:
            return f"{self.name}_end"
        dtype = self.inner_input.type.dtype if self.is_scalar else ""
        return f"box({self.name}, np.{dtype})" if boxed and self.is_scalar else self.name

    @property
    def target(self) -> Target:
        """Its memory as the place of its own update."""
        shape = self.inner_input.type.shape
        return Target(
            row=self.name if self.is_small else borrowed(self.name, self.inner_input),
            allowed="False",
            shape=tuple(lengths_of(shape, self.name)),
            overwritten=(self.inner_input,),
            single="True",
        )


def find_states(op: Scan, node: Apply, arguments: Sequence[str]) -> list[State]:
    """Return the untraced states of a loop in the order of its outputs."""
    groups = zip(
        op.outer_untraced_sit_sot(arguments),
        op.inner_untraced_sit_sot(op.inner_inputs),
        op.inner_untraced_sit_sot_outs(op.inner_outputs),
        strict=True,
    )
    first = len(node.outputs) - op.info.n_untraced_sit_sot
    destroyed = _destroyed_inputs(op)
    return [
        State(f"u{i}", argument, old, new, old in destroyed and first + i not in op.destroy_map)
        for i, (argument, old, new) in enumerate(groups)
    ]


def _destroyed_inputs(op: Scan) -> set[Variable]:
    """Return the inner variables whose memory the step overwrites."""
    return {
        alias_root(node.inputs[position])
        for node in op.fgraph.toposort()
        for positions in node.op.destroy_map.values()
        for position in positions
    }


def bind_state(state: State, step: StepCode, lines: Lines) -> None:
    """Start a state, and give it to the step."""
    old, value = state.inner_input, state.argument
    step.values[old] = Value(state.name, scalar=state.is_scalar)
    if state.is_tensor and not state.is_scalar:
        lines.check_shape(value, old.type.shape)
        step.targets.setdefault(state.inner_output, state.target)
        value = f"fresh({value})"
    elif state.copied and not state.is_scalar:
        value = f"numba_deepcopy({value})"
    if state.is_small:
        shape, dtype = tuple_of([str(n) for n in old.type.shape]), f"np.{old.type.dtype}"
        lines.start.append(f"{state.name} = stack_array({shape}, {dtype})")
        lines.start += _copied(state, state.argument, state.name)
        # By loops too: LLVM keeps in memory what is given to a function.
        end = state.result(boxed=False)
        lines.finish.append(f"{end} = np.empty({shape}, {dtype})")
        lines.finish += _copied(state, state.name, end)
        return
    lines.start.append(f"{state.name} = {value}")
    if state.is_borrowed and not state.is_scalar:
        lines.read.append(f"{state.name}_x = {borrowed(state.name, old)}")
        step.values[old] = Value(f"{state.name}_x")


def _copied(state: State, source: str, target: str) -> list[str]:
    """Return the loops that copy an array of the shape of a state into another."""
    lengths = [str(length) for length in state.inner_input.type.shape]
    indices = [f"k{axis}" for axis in range(len(lengths))]
    line = f"{target}{subscript(indices)} = {source}{subscript(indices)}"
    return nested_loops(indices, lengths, [*([] for _ in lengths), [line]])


def write_states(states: Sequence[State], step: StepCode, lines: Lines) -> None:
    """Hand the states on that are no numbers."""
    small = [s for s in states if s.is_small and not _is_in_place(s, step)]
    # What is not scratch space may be the memory of another state that is overwritten as well.
    news = [_scratch(s.inner_output, step) for s in small]
    others = [s for s in states if not s.is_small and not s.is_scalar]
    for state in others:
        lines.advance += _handed_on(state, step)
    for state, new in zip(small, news, strict=True):
        lines.advance += _copied(state, new, state.name)


def _is_in_place(state: State, step: StepCode) -> bool:
    """Return whether the step has left the new value in the memory of the state."""
    output = state.inner_output
    ours = step.targets.get(output) == state.target
    return output is state.inner_input or (ours and step.written.get(output) == "True")


def _scratch(output: Variable, step: StepCode) -> str:
    name = step.array(output)
    if step.value(output).owned:
        return name
    return step.copy(output, lambda lengths: step.scratch(output, lengths))


def _handed_on(state: State, step: StepCode) -> list[str]:
    """Return the statement that hands a state on, if there is one."""
    output = state.inner_output
    new = step.array(output)
    if state.is_tensor and step.is_scratch(output):
        ours = step.targets.get(output) == state.target
        flag = step.written.get(output) if ours else None
        if flag == "True":
            return []
        # The scratch space becomes the state, and the old state scratch space; but only once.
        scratch = step.owners.pop(new, None)
        if scratch is not None:
            return [f"{state.name}, {scratch} = {scratch}, {state.name}"]
        replaced = f"replace_state({state.name}, {new})"
        value = replaced if flag is None else f"{state.name} if {flag} else {replaced}"
    elif state.is_tensor and isinstance(output, Constant):
        value = f"next_state({state.name}, np.copy({new}))"
    else:
        value = f"next_state({state.name}, {new})" if state.is_borrowed else new
    return [f"{state.name} = {value}"] if value != state.name else []


def numbers(states: Sequence[State], step: StepCode) -> Iterator[tuple[str, str]]:
    """Yield the states that are numbers with what the next step finds in them."""
    for state in states:
        if state.is_scalar:
            output = state.inner_output
            yield state.name, cast(step.scalar(output), output.type.dtype)
