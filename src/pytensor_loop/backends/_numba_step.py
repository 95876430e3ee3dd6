"""The inner graph of a loop as straight-line source, one statement group per node.

A value without dimensions lives in a scalar variable and is boxed into an array only for an Op that asks for one.
Elementwise Ops, small products and vectors made of scalars are written as loops into a target: the row
of the buffer that keeps the result if that is safe, else scratch space allocated once. Every other Op is
called as PyTensor lowers it.
"""

from dataclasses import dataclass

import numpy as np
from pytensor.graph.basic import Constant, Variable
from pytensor.link.numba.dispatch.basic import (
    cache_key_for_constant,
    numba_funcify_ensure_cache,
    numba_typify,
)
from pytensor.scalar.basic import ScalarType
from pytensor.tensor.basic import MakeVector, ScalarFromTensor, TensorFromScalar
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Dot
from pytensor.tensor.rewriting.scalarize import ScalarizedElemwise, ScalarizedJoin
from pytensor.tensor.type import DenseTensorType

from pytensor_loop.backends import _numba_products
from pytensor_loop.backends._numba_scalar import ScalarCode, cast, literal


MAX_LOOPS = 4


@dataclass(frozen=True)
class Value:
    """What the generated code knows about one variable of the inner graph.

    Parameters
    ----------
    name
        The Python name that holds it; empty for a view that is not materialized yet.
    scalar
        Whether that name holds a Numba scalar.
    owned
        Whether the array is scratch space that the next step overwrites.
    source, order
        For a view: the variable that it shows, and for each axis the axis of the source, or -1 for an axis of length one.
    """

    name: str
    scalar: bool = False
    owned: bool = False
    source: Variable | None = None
    order: tuple[int, ...] = ()


@dataclass(frozen=True)
class Target:
    """Where a result is kept.

    Parameters
    ----------
    row
        Expression of the borrowed row that the result may be written into.
    allowed
        Expression of whether that row may be written before the step has read everything.
    shape
        Expressions of the lengths of the row.
    allocate
        Statement that allocates the buffer on the first step, with ``{shape}`` for the lengths of a row; empty if it exists.
    overwritten
        The inner inputs whose memory the row may be; None stands for one that forbids it.
    """

    row: str
    allowed: str
    shape: tuple[str, ...]
    allocate: str = ""
    overwritten: tuple[Variable | None, ...] = ()


class StepCode:
    """Writes the statements of one step.

    Parameters
    ----------
    fgraph
        The inner graph.
    compile_options
        Passed to PyTensor's dispatch for Ops that are called.
    """

    def __init__(self, fgraph, compile_options):
        self.fgraph = fgraph
        self.compile_options = compile_options
        self.values: dict[Variable, Value] = {}
        self.targets: dict[Variable, Target] = {}
        self.written: dict[Variable, str] = {}
        self.invariant: set[Variable] = set()
        self.env: dict[str, object] = {}
        self.keys: list[str | None] = []
        self.setup: list[str] = []
        self.head: list[str] = []
        self.body: list[str] = []
        self._scalars: dict[Variable, str] = {}
        self._boxes: dict[Variable, str] = {}
        self._contiguous: dict[Variable, str] = {}
        self._counter = 0
        self._scalar_code = ScalarCode(self.name, self.call, self.use)

    def name(self, prefix):
        """Return a name that was not used before."""
        self._counter += 1
        return f"{prefix}{self._counter}"

    def use(self, name, thing):
        """Make a Python object available to the generated code."""
        self.env[name] = thing
        return name

    def call(self, op, node):
        """Return the name of the function that PyTensor makes for a node."""
        function, key = numba_funcify_ensure_cache(op, node=node, **self.compile_options)
        self.keys.append(key)
        return self.use(self.name("f"), function)

    def write(self):
        """Write every node of the graph."""
        for node in self.fgraph.toposort():
            self._write_node(node)

    def _write_node(self, node):
        op = node.op
        if isinstance(op, TensorFromScalar | ScalarFromTensor):
            self.values[node.outputs[0]] = Value(self.scalar(node.inputs[0]), scalar=True)
        elif isinstance(op, DimShuffle):
            self._write_view(node)
        elif isinstance(op, Elemwise):
            self._write_elemwise(node, node.op, node.inputs, node.outputs)
        elif isinstance(op, ScalarizedElemwise):
            self._write_scalarized(node)
        elif self._is_scalar_node(node):
            self._write_scalar(node, op, node)
        elif isinstance(op, MakeVector | ScalarizedJoin) and self._joins_scalars(node):
            self._write_vector(node)
        elif isinstance(op, Dot) and _numba_products.is_supported(node):
            self._write_dot(node)
        else:
            self._write_call(node)

    def remember_scalar(self, variable, name):
        """Name the scalar that a 0-d array holds."""
        self._scalars[variable] = name

    # What a variable is called, in the form that a statement needs

    def value(self, variable):
        """Return what is known of a variable; constants are met here first."""
        if variable not in self.values:
            self.values[variable] = self._constant(variable)
        return self.values[variable]

    def _constant(self, variable):
        if not isinstance(variable, Constant):
            msg = f"{variable} is read before it is computed"
            raise NotImplementedError(msg)
        if _is_zero_dim(variable) and not isinstance(variable.data, str):
            return Value(literal(variable.data), scalar=True)
        self.keys.append(cache_key_for_constant(variable.data))
        name = self.name("c")
        return Value(self.use(name, numba_typify(variable.data, variable=variable)))

    def scalar(self, variable):
        """Return a scalar expression of a variable without dimensions."""
        value = self.value(variable)
        if value.scalar:
            return value.name
        if variable not in self._scalars:
            name = self.name("s")
            self.body.append(f"{name} = {self.array(variable)}[()]")
            self._scalars[variable] = name
        return self._scalars[variable]

    def array(self, variable):
        """Return the name of an array, boxing or materializing it if need be."""
        value = self.value(variable)
        if value.scalar and not isinstance(variable.type, ScalarType):
            return self._box(variable)
        if value.source is not None:
            return self._materialize(variable)
        return value.name

    def _box(self, variable):
        if variable not in self._boxes:
            name = self.name("box")
            self.setup.append(f"{name} = np.empty((), np.{variable.type.dtype})")
            self.body.append(f"{name}[()] = {self.value(variable).name}")
            self._boxes[variable] = name
        return self._boxes[variable]

    def _materialize(self, variable):
        if variable not in self._boxes:
            value = self.value(variable)
            order = ["x" if axis < 0 else axis for axis in value.order]
            op = DimShuffle(input_ndim=value.source.type.ndim, new_order=order)
            name = self.name("a")
            argument = self.array(value.source)
            function = self.call(op, op.make_node(value.source))
            self.body.append(f"{name} = {function}({argument})")
            self._boxes[variable] = name
        return self._boxes[variable]

    def is_scratch(self, variable):
        """Return whether the next step may overwrite the memory of an array."""
        value = self.value(variable)
        if value.source is not None:
            return self.is_scratch(value.source)
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

    def contiguous(self, variable):
        """Return the name of an array, made contiguous if it is the same in every step."""
        if variable not in self.invariant:
            return self.array(variable)
        if variable not in self._contiguous:
            owner, name = self.name("kept"), self.name("inv")
            self.setup.append(f"{owner} = contiguous({self.value(variable).name})")
            self.head.append(f"{name} = borrow({owner})")
            self._contiguous[variable] = name
        return self._contiguous[variable]

    def element(self, variable, indices):
        """Return the expression of one element of a variable."""
        value = self.value(variable)
        if value.scalar:
            return value.name
        if value.source is not None:
            places = {axis: indices[i] for i, axis in enumerate(value.order) if axis >= 0}
            inner = [places.get(axis, "0") for axis in range(value.source.type.ndim)]
            return self.element(value.source, inner)
        pairs = zip(indices, variable.type.shape, strict=True)
        subscript = ", ".join("0" if length == 1 else i for i, length in pairs)
        return f"{self.contiguous(variable)}[{subscript or '()'}]"

    def length(self, variable, axis):
        """Return the expression of one length of a variable."""
        if variable.type.shape[axis] is not None:
            return str(variable.type.shape[axis])
        value = self.value(variable)
        if value.source is not None:
            return self.length(value.source, value.order[axis])
        return f"{value.name}.shape[{axis}]"

    # The kinds of node

    @staticmethod
    def _is_scalar_node(node):
        variables = [*node.inputs, *node.outputs]
        return all(isinstance(v.type, ScalarType) for v in variables)

    @staticmethod
    def _joins_scalars(node):
        return all(v.type.ndim == 0 for v in node.inputs if not isinstance(v.type, ScalarType))

    def _write_scalar(self, node, op, scalar_node):
        inputs = [self.scalar(v) for v in node.inputs]
        outputs = self._scalar_code.write(op, scalar_node, inputs, self.body)
        for variable, name in zip(node.outputs, outputs, strict=True):
            self.values[variable] = Value(name, scalar=True)

    def _write_call(self, node):
        arguments = [self.array(v) for v in node.inputs]
        outputs = [self.name("a") for _ in node.outputs]
        function = self.call(node.op, node)
        self.body.append(f"{', '.join(outputs)} = {function}({', '.join(arguments)})")
        for variable, name in zip(node.outputs, outputs, strict=True):
            self.values[variable] = Value(name, scalar=isinstance(variable.type, ScalarType))

    def _write_view(self, node):
        [source], [output] = node.inputs, node.outputs
        value = self.value(source)
        order = tuple(-1 if axis == "x" else axis for axis in node.op.new_order)
        if value.scalar and not order:
            self.values[output] = value
            return
        if any(source.type.shape[axis] != 1 for axis in node.op.drop):
            self._write_call(node)  # it checks the length of what it drops
            return
        if value.source is not None:
            order = tuple(value.order[axis] if axis >= 0 else -1 for axis in order)
            source = value.source
        if order == tuple(range(source.type.ndim)):
            self.values[output] = self.value(source)
        elif not order and not self.value(source).source:
            name = self.name("s")
            self.body.append(f"{name} = {self.element(source, ['0'] * source.type.ndim)}")
            self.values[output] = Value(name, scalar=True)
        else:
            self.values[output] = Value("", source=source, order=order)

    def _write_scalarized(self, node):
        """Write an elementwise Op some of whose inputs are scalars."""
        [inner] = [n for n in node.op.fgraph.apply_nodes if isinstance(n.op, Elemwise)]
        outer = dict(zip(node.op.fgraph.inputs, node.inputs, strict=True))

        def behind(variable):
            while variable not in outer and not isinstance(variable, Constant):
                [variable] = variable.owner.inputs
            return outer.get(variable, variable)

        self._write_elemwise(node, inner.op, [behind(v) for v in inner.inputs], node.outputs)

    def _write_elemwise(self, node, op, inputs, outputs):
        scalar_node = op.make_scalar_node(*_dimensioned(inputs, outputs[0].type.ndim))
        ndim = outputs[0].type.ndim
        if ndim == 0:
            self._write_scalar(node, op.scalar_op, scalar_node)
            return
        arrays = [v for v in inputs if not isinstance(v.type, ScalarType) and v.type.ndim]
        if ndim > MAX_LOOPS or not arrays:
            self._write_call(node)
            return
        lengths = [self._common_length(arrays, axis) for axis in range(ndim)]
        targets = [self._target(node, v, lengths) for v in outputs]
        indices = [self.name("j") for _ in range(ndim)]
        lines = []
        elements = [
            self.scalar(v) if v not in arrays else self._element_name(v, indices, lines)
            for v in inputs
        ]
        results = self._scalar_code.write(op.scalar_op, scalar_node, elements, lines)
        subscript = ", ".join(indices)
        lines += [f"{t}[{subscript}] = {r}" for t, r in zip(targets, results, strict=True)]
        self.body += _nested(indices, lengths, lines)

    def _element_name(self, variable, indices, lines):
        name = self.name("s")
        lines.append(f"{name} = {self.element(variable, indices)}")
        return name

    def _common_length(self, arrays, axis):
        """Return the length of the result along an axis; the generated code checks that all agree."""
        full = [v for v in arrays if v.type.shape[axis] != 1]
        lengths = list(dict.fromkeys(self.length(v, axis) for v in full))
        if not lengths:
            return "1"
        known = [length for length in lengths if length.isdigit()]
        first = known[0] if known else lengths[0]
        for other in lengths:
            if other != first:
                self.body.append(f"if {other} != {first}:")
                self.body.append(
                    f'    raise ValueError("Incompatible vectorized shapes along axis {axis}")'
                )
        return first

    def _target(self, node, variable, lengths):
        """Return the name of an array of these lengths to write a result into."""
        out, scratch = self.name("out"), self.name("tmp")
        shape = f"({', '.join(lengths)},)"
        self.setup.append(f"{scratch} = np.empty({(0,) * len(lengths)}, np.{variable.type.dtype})")
        to_scratch = [
            f"if {scratch}.shape != {shape}:",
            f"    {scratch} = np.empty({shape}, np.{variable.type.dtype})",
            f"{out} = borrow({scratch})",
        ]
        self.values[variable] = Value(out, owned=True)
        target = self.targets.get(variable)
        if target is None:
            self.body += to_scratch
            return out
        if target.allocate:
            self.body.append("if i == 0:")
            self.body.append(f"    {target.allocate.format(shape=', '.join(lengths) + ',')}")
        allowed = "True" if self._is_in_place(node, variable) else target.allowed
        fits = [f"{a} == {b}" for a, b in zip(target.shape, lengths, strict=True)]
        direct = self.name("direct")
        self.body.append(f"{direct} = {' and '.join([allowed, *fits])}")
        self.body.append(f"if {direct}:")
        self.body.append(f"    {out} = {target.row}")
        self.body.append("else:")
        self.body += [f"    {line}" for line in to_scratch]
        self.written[variable] = direct
        return out

    def _is_in_place(self, node, variable):
        """Return whether writing a result over the row that the loop overwrites is safe at this node."""
        return isinstance(node.op, Elemwise) and all(
            v in node.inputs
            and [n for n, _ in self.fgraph.clients[v]] == [node]
            and v.type.broadcastable == variable.type.broadcastable
            for v in self.targets[variable].overwritten
        )

    def _write_vector(self, node):
        [output] = node.outputs
        elements = [self.scalar(v) for v in node.inputs]
        out = self._target(node, output, [str(len(elements))])
        for i, element in enumerate(elements):
            self.body.append(f"{out}[{i}] = {cast(element, output.type.dtype)}")

    def _write_dot(self, node):
        left, right = node.inputs
        [output] = node.outputs
        row = self._as_vector(left, axis=1)
        column = self._as_vector(right, axis=0)
        if row is not None and column is not None:
            name = self.name("s")
            self._product("inner", [row, column], f"{name} = ")
            self.values[output] = Value(name, scalar=True)
        elif column is not None:
            self._product_vector(node, "matvec", [left, column], self.length(left, 0), 0)
        elif row is not None:
            self._product_vector(node, "vecmat", [row, right], self.length(right, 1), 1)
        else:
            lengths = [self.length(left, 0), self.length(right, 1)]
            out = self._target(node, output, lengths)
            self._product("matmul", [left, right], "", out)

    def _product_vector(self, node, kind, operands, length, axis):
        """Write a product that is a vector, and show it as a matrix with one row or one column."""
        [output] = node.outputs
        vector = output.type.clone(shape=(output.type.shape[axis],))()
        out = self._target(node, vector, [length])
        self._product(kind, operands, "", out)
        order = (0, -1) if axis == 0 else (-1, 0)
        self.values[output] = Value("", source=vector, order=order)

    def _product(self, kind, operands, assign, *out):
        arguments = [*(self.contiguous(v) for v in operands), *out]
        function = self.use(kind, getattr(_numba_products, kind))
        self.body.append(f"{assign}{function}({', '.join(arguments)})")

    def _as_vector(self, variable, axis):
        """Return the vector that a matrix shows along one axis, or None."""
        value = self.value(variable)
        order = (-1, 0) if axis == 1 else (0, -1)
        if value.source is not None and value.order == order and value.source.type.ndim == 1:
            return value.source
        return None


def _is_zero_dim(variable):
    if isinstance(variable.type, ScalarType):
        return True
    return isinstance(variable.type, DenseTensorType) and variable.type.ndim == 0


def _dimensioned(inputs, ndim):
    """Return the inputs as tensors, scalars as tensors of length-one axes, for their types only."""
    from pytensor.tensor.type import TensorType

    return [
        TensorType(v.type.dtype, (1,) * ndim)() if isinstance(v.type, ScalarType) else v
        for v in inputs
    ]


def _nested(indices, lengths, lines):
    """Return the lines inside one loop per index."""
    body = []
    for depth, (index, length) in enumerate(zip(indices, lengths, strict=True)):
        body.append(f"{'    ' * depth}for {index} in range({length}):")
    return [*body, *(f"{'    ' * len(indices)}{line}" for line in lines)]
