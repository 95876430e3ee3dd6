"""What a variable of a step is called, in the form that a statement needs.

A number lives in a scalar variable, and is boxed into an array only for an Op that asks for one. A
view is not made unless an Op asks for it: whoever reads an element reads that of its source.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.link.numba.dispatch.basic import (
    cache_key_for_constant,
    numba_funcify_ensure_cache,
    numba_typify,
)
from pytensor.scalar.basic import ScalarType
from pytensor.tensor.elemwise import DimShuffle

from pytensor_loop.backends._numba_scalar import literal
from pytensor_loop.backends._numba_values import (
    ON_STACK,
    Value,
    is_small,
    is_zero_dim,
    nested_loops,
    subscript,
    tuple_of,
)


class Names:
    """The names of a step, and the statements that make what is behind them.

    Parameters
    ----------
    compile_options
        Passed to PyTensor's dispatch for Ops that are called.

    Attributes
    ----------
    values
        What is known of each variable so far.
    invariant
        Arrays that are the same in every step.
    owners
        For each array that is scratch space on the heap: the array that it is borrowed from.
    setup, head, body, finish
        Statements before the loop, at the start of a step, of the step, and after the loop.
    env, keys
        The names that the statements use, and the cache keys of what is behind them.
    """

    def __init__(self, compile_options: dict[str, Any]) -> None:
        self.compile_options = compile_options
        self.values: dict[Variable, Value] = {}
        self.invariant: set[Variable] = set()
        self.env: dict[str, object] = {}
        self.keys: list[str | None] = []
        self.setup: list[str] = []
        self.head: list[str] = []
        self.body: list[str] = []
        self.finish: list[str] = []
        self.owners: dict[str, str] = {}
        self._scalars: dict[Variable, str] = {}
        self._arrays: dict[Variable, str] = {}
        self._contiguous: dict[Variable, str] = {}
        self._counter = 0

    def name(self, prefix: str) -> str:
        """Return a name that was not used before."""
        self._counter += 1
        return f"{prefix}{self._counter}"

    def use(self, name: str, thing: object) -> str:
        """Make a Python object available to the generated code."""
        self.env[name] = thing
        return name

    def call(self, op: Any, node: Apply) -> str:
        """Return the name of the function that PyTensor makes for a node."""
        function, key = numba_funcify_ensure_cache(op, node=node, **self.compile_options)
        self.keys.append(key)
        return self.use(self.name("f"), function)

    def value(self, variable: Variable) -> Value:
        """Return what is known of a variable; constants are met here first."""
        if variable not in self.values:
            self.values[variable] = self._constant(variable)
        return self.values[variable]

    def _constant(self, variable: Variable) -> Value:
        if not isinstance(variable, Constant):
            msg = f"{variable} is read before it is computed"
            raise NotImplementedError(msg)
        if is_zero_dim(variable) and not isinstance(variable.data, str):
            return Value(literal(variable.data), scalar=True)
        self.keys.append(cache_key_for_constant(variable.data))
        name = self.name("c")
        return Value(self.use(name, numba_typify(variable.data, variable=variable)))

    def scalar(self, variable: Variable) -> str:
        """Return a scalar expression of a variable without dimensions."""
        value = self.value(variable)
        if value.scalar:
            return value.name
        if variable not in self._scalars:
            name = self.name("s")
            self.body.append(f"{name} = {self.element(variable, [])}")
            self._scalars[variable] = name
        return self._scalars[variable]

    def array(self, variable: Variable) -> str:
        """Return the name of an array, boxing or materializing it if need be."""
        value = self.value(variable)
        in_memory = value.source is None and not value.scalar
        if in_memory or isinstance(variable.type, ScalarType):
            return value.name
        if variable not in self._arrays:
            self._arrays[variable] = self._box(variable) if value.scalar else self._show(variable)
        return self._arrays[variable]

    def _box(self, variable: Variable) -> str:
        """Return the name of an array that holds a number; its axes, if any, have length one."""
        name, axes = self.name("box"), ["0"] * variable.type.ndim
        shape = tuple_of(["1"] * len(axes))
        self.setup.append(f"{name} = np.empty({shape}, np.{variable.type.dtype})")
        self.body.append(f"{name}{subscript(axes)} = {self.value(variable).name}")
        return name

    def _show(self, variable: Variable) -> str:
        """Return the name of a view: a copy if it is made of a few elements, else a view."""
        value = self.value(variable)
        source: Any = value.source
        if self._is_copied(variable):
            return self.copy(variable, lambda lengths: self.scratch(variable, lengths))
        shown = {place.axis: axis for axis, place in enumerate(value.places)}
        order = [shown.get(axis, "x") for axis in range(variable.type.ndim)]
        op = DimShuffle(input_ndim=source.type.ndim, new_order=order)
        name = self.name("a")
        argument = self.array(source)
        self.body.append(f"{name} = {self.call(op, op.make_node(source))}({argument})")
        return name

    def _is_copied(self, variable: Variable) -> bool:
        """Return whether a view becomes a copy where an array is asked for."""
        return is_small(variable) and self.value(variable).source not in self.invariant

    def copy(self, variable: Variable, allocate: Callable[[list[str]], str]) -> str:
        """Return the name of an array with the elements of a variable.

        Parameters
        ----------
        variable
            What is copied.
        allocate
            Returns the name of the array, given its lengths.
        """
        lengths = [self.length(variable, axis) for axis in range(variable.type.ndim)]
        indices = [self.name("j") for _ in lengths]
        element = self.element(variable, indices)
        out = allocate(lengths)
        line = f"{out}{subscript(indices)} = {element}"
        self.body += nested_loops(indices, lengths, [*([] for _ in lengths), [line]])
        return out

    def memory(self, variable: Variable) -> str:
        """Return the name of the array whose elements a variable shows."""
        value = self.value(variable)
        return value.name if value.source is None else self.memory(value.source)

    def is_scratch(self, variable: Variable) -> bool:
        """Return whether the next step may overwrite the memory of an array."""
        value = self.value(variable)
        if value.source is not None:
            return self._is_copied(variable) or self.is_scratch(value.source)
        if value.scalar or value.owned:
            return True
        node = variable.owner
        if node is None:
            return False
        position = node.outputs.index(variable)
        views = [
            *node.op.view_map.get(position, ()),
            *node.op.destroy_map.get(position, ()),
        ]
        return any(self.is_scratch(node.inputs[i]) for i in views)

    def contiguous(self, variable: Variable) -> str:
        """Return the name of an array, made contiguous if it is the same in every step."""
        if variable not in self.invariant:
            return self.array(variable)
        if variable not in self._contiguous:
            owner, name = self.name("kept"), self.name("inv")
            self.setup.append(f"{owner} = contiguous({self.value(variable).name})")
            self.head.append(f"{name} = {borrowed(owner, variable)}")
            self._contiguous[variable] = name
        return self._contiguous[variable]

    def element(self, variable: Variable, indices: Sequence[str]) -> str:
        """Return the expression of one element of a variable."""
        value = self.value(variable)
        if value.scalar:
            return value.name
        pairs = zip(indices, variable.type.shape, strict=True)
        indices = ["0" if length == 1 else index for index, length in pairs]  # it broadcasts
        if value.source is not None:
            return self.element(value.source, [p.subscript(indices) for p in value.places])
        if isinstance(variable, Constant) and all(index.isdigit() for index in indices):
            return literal(variable.data[tuple(map(int, indices))])
        return f"{self.contiguous(variable)}{subscript(indices)}"

    def length(self, variable: Variable, axis: int) -> str:
        """Return the expression of one length of a variable."""
        if variable.type.shape[axis] is not None:
            return str(variable.type.shape[axis])
        value = self.value(variable)
        if value.source is not None:
            [shown] = [a for a, place in enumerate(value.places) if place.axis == axis]
            return self.length(value.source, shown)
        return f"{value.name}.shape[{axis}]"

    def scratch(self, variable: Variable, lengths: Sequence[str]) -> str:
        """Return the name of scratch space of these lengths."""
        out = self.name("out")
        self.body += self.scratch_lines(out, variable, lengths)
        return out

    def scratch_lines(self, out: str, variable: Variable, lengths: Sequence[str]) -> list[str]:
        """Return the lines that make a name scratch space, which is allocated once."""
        self.values[variable] = Value(out, owned=True)
        shape, dtype = tuple_of(lengths), f"np.{variable.type.dtype}"
        known = all(length.isdigit() for length in lengths)
        if known and prod(map(int, lengths)) <= ON_STACK:
            self.setup.append(f"{out} = stack_array({shape}, {dtype})")
            return []
        memory = self.owners[out] = self.name("tmp")
        if known:
            self.setup.append(f"{memory} = np.empty({shape}, {dtype})")
            return [f"{out} = borrow({memory}, {shape})"]
        self.setup.append(f"{memory} = np.empty({tuple_of(['0'] * len(lengths))}, {dtype})")
        return [
            f"if {memory}.shape != {shape}:",
            f"    {memory} = np.empty({shape}, {dtype})",
            f"{out} = borrow({memory}, {memory}.shape)",
        ]


def borrowed(name: str, variable: Variable) -> str:
    """Return the expression that borrows the array of a variable."""
    shape = variable.type.shape
    known = None not in shape
    return f"borrow({name}, {tuple_of([str(n) for n in shape]) if known else f'{name}.shape'})"
