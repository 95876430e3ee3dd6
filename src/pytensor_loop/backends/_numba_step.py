"""The inner graph of a loop as straight-line source, one statement group per node.

A value without dimensions lives in a scalar variable and is boxed into an array only for an Op that
asks for one. Elementwise Ops, small products and vectors made of scalars are written as loops into
a target: the row of the buffer that keeps the result if that is safe, else scratch space allocated
once. Every other Op is called as PyTensor lowers it.
"""

# PyTensor's own annotations are partial: graphs and nodes are Any throughout.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs

from dataclasses import dataclass
from typing import Any

from pytensor.compile.ops import DeepCopyOp, ViewOp
from pytensor.graph.basic import Constant, Variable
from pytensor.link.numba.dispatch.basic import (
    cache_key_for_constant,
    numba_funcify_ensure_cache,
    numba_typify,
)
from pytensor.scalar.basic import Add, ScalarType
from pytensor.tensor.basic import MakeVector, ScalarFromTensor, TensorFromScalar
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Dot
from pytensor.tensor.rewriting.fused_elemwise import FusedElemwise
from pytensor.tensor.rewriting.scalarize import ScalarizedElemwise, ScalarizedJoin
from pytensor.tensor.type import DenseTensorType

from pytensor_loop.backends import _numba_products
from pytensor_loop.backends._numba_scalar import ScalarCode, cast, literal
from pytensor_loop.backends._numba_sums import BLOCK, LEAST, add_products, find_outer_sum


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
        For a view: the variable that it shows, and for each axis the axis of the source, or -1 for
        an axis of length one.
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
        Statement that allocates the buffer on the first step, with ``{shape}`` for the lengths of a
        row; empty if it exists.
    overwritten
        The inner inputs whose memory the row may be; None stands for one that forbids it.
    single
        Expression of whether every step writes this same row; empty if none does.
    """

    row: str
    allowed: str
    shape: tuple[str, ...]
    allocate: str = ""
    overwritten: tuple[Variable | None, ...] = ()
    single: str = ""


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
        self.finish: list[str] = []
        self._done: set[object] = set()
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
            self._done.add(node)

    def _write_node(self, node):
        op = node.op
        if isinstance(op, TensorFromScalar | ScalarFromTensor) or self._copies_scalar(node):
            self.values[node.outputs[0]] = Value(self.scalar(node.inputs[0]), scalar=True)
        elif isinstance(op, DimShuffle):
            self._write_view(node)
        elif isinstance(op, Elemwise):
            self._write_elemwise(node, node.op, node.inputs, node.outputs)
        elif isinstance(op, ScalarizedElemwise) or _is_sum_of_elements(op):
            self._write_wrapped(node)
        elif self._is_scalar_node(node):
            self._write_scalar(node, op, node, node.inputs)
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

    def _copies_scalar(self, node):
        copies = isinstance(node.op, DeepCopyOp | ViewOp)
        return copies and _is_zero_dim(node.inputs[0]) and self.value(node.inputs[0]).scalar

    @staticmethod
    def _joins_scalars(node):
        return all(v.type.ndim == 0 for v in node.inputs if not isinstance(v.type, ScalarType))

    def _write_scalar(self, node, op, scalar_node, inputs):
        elements = [self.scalar(v) for v in inputs]
        outputs = self._scalar_code.write(op, scalar_node, elements, self.body)
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

    def _write_wrapped(self, node):
        """Write an elementwise Op with scalar inputs or with results that are summed."""
        [inner] = [n for n in node.op.fgraph.apply_nodes if isinstance(n.op, Elemwise)]
        outer = dict(zip(node.op.fgraph.inputs, node.inputs, strict=True))

        def behind(variable):
            while variable not in outer and not isinstance(variable, Constant):
                [variable] = variable.owner.inputs
            return outer.get(variable, variable)

        self._write_elemwise(node, inner.op, [behind(v) for v in inner.inputs], inner.outputs)

    def _write_elemwise(self, node, op, inputs, core_outputs):
        """Write an elementwise Op.

        Parameters
        ----------
        node
            The node, whose outputs are the results or sums of them.
        op, inputs, core_outputs
            The Elemwise itself, what it reads, and its own results.
        """
        outputs = node.outputs
        ndim = core_outputs[0].type.ndim
        scalar_node = op.make_scalar_node(*_dimensioned(inputs, ndim))
        if ndim == 0:
            self._write_scalar(node, op.scalar_op, scalar_node, inputs)
            return
        arrays = [v for v in inputs if not isinstance(v.type, ScalarType) and v.type.ndim]
        if ndim > MAX_LOOPS or not arrays:
            self._write_call(node)
            return
        lengths = [self._common_length(arrays, axis) for axis in range(ndim)]
        indices = [self.name("j") for _ in range(ndim)]
        levels: list[list[Any]] = [[] for _ in range(ndim + 1)]
        elements = [
            self.scalar(v) if v not in arrays else self._element_name(v, indices, levels)
            for v in inputs
        ]
        results = self._scalar_code.write(op.scalar_op, scalar_node, elements, levels[-1])
        sum_ = self._outer_sum(op, inputs, outputs)
        if sum_ is not None:
            self._write_outer_sum(
                node, outputs[0], lengths, (indices, levels, results), sum_, inputs
            )
            return
        for variable, core, result in zip(outputs, core_outputs, results, strict=True):
            if variable.type.ndim < core.type.ndim or core.type.ndim == 0:
                levels[-1].append(f"{self._sum(variable)} += {result}")
            else:
                out, subscript = self._elementwise_target(node, variable, lengths, indices)
                levels[-1].append(f"{out}[{subscript}] = {result}")
        self.body += _nested(indices, lengths, levels)

    def _sum(self, variable):
        """Return the name of a scalar that starts at zero."""
        name = self.name("sum")
        self.body.append(f"{name} = {cast('0', variable.type.dtype)}")
        self.values[variable] = Value(name, scalar=True)
        return name

    def _elementwise_target(self, node, variable, lengths, indices):
        """Return the array for a result and the subscript of an element, without axes of one."""
        shape = variable.type.shape
        kept = [axis for axis, length in enumerate(shape) if length != 1]
        if variable in self.targets or not kept or len(kept) == len(shape):
            return self._target(node, variable, lengths), ", ".join(indices)
        core = variable.type.clone(shape=tuple(shape[axis] for axis in kept))()
        out = self._target(node, core, [lengths[axis] for axis in kept])
        order = tuple(kept.index(axis) if axis in kept else -1 for axis in range(len(shape)))
        self.values[variable] = Value("", source=core, order=order)
        return out, ", ".join(indices[axis] for axis in kept)

    def _outer_sum(self, op, inputs, outputs):
        """Return the roles of the inputs if partial sums of outer products need not be seen."""
        if len(outputs) != 1:
            return None
        [output] = outputs
        target = self.targets.get(output)
        roles = find_outer_sum(op, inputs, output)
        if target is None or not target.single or roles is None:
            return None
        total = inputs[roles[0]]
        private = len(self.fgraph.clients[total]) == 1 and len(self.fgraph.clients[output]) == 1
        return roles if private and target.overwritten == (total,) else None

    def _write_outer_sum(self, node, output, lengths, loop, roles, inputs):
        """Write a sum of outer products that adds a block of them at a time where that pays."""
        target = self.targets[output]
        defer, count, left, right = (self.name(p) for p in ("defer", "count", "left", "right"))
        dtype = output.type.dtype
        self.setup.append(f"{count} = 0")
        for name in (left, right):
            self.setup.append(f"{name} = np.empty((0, 0), np.{dtype})")
        fits = [f"{a} == {b}" for a, b in zip(target.shape, lengths, strict=True)]
        large = f"{lengths[0]} * {lengths[1]} >= {LEAST}"
        self.body.append(f"{defer} = {' and '.join([target.single, large, *fits])}")
        self.body.append(f"if {defer}:")
        collect = []
        for axis, (name, factors) in enumerate(((left, roles[1]), (right, roles[2]))):
            empty = f"{name} = np.empty(({BLOCK}, {lengths[axis]}), np.{dtype})"
            collect += [f"if {name}.shape[1] != {lengths[axis]}:", f"    {empty}"]
            collect += self._collect(f"{name}[{count}, ", lengths[axis], axis, factors, inputs)
        add = f"add_products({target.row}, {left}, {right}, {count})"
        collect += [f"{count} += 1", f"if {count} == {BLOCK}:", f"    {add}", f"    {count} = 0"]
        self.body += [f"    {line}" for line in collect]
        self.finish += [f"if {count} > 0:", f"    {add}"]
        self.use("add_products", add_products)
        before, self.body = self.body, []
        indices, levels, results = loop
        out = self._target(node, output, lengths)
        levels[-1].append(f"{out}[{', '.join(indices)}] = {results[0]}")
        otherwise = [*self.body, *_nested(indices, lengths, levels)]
        direct = self.written[output]
        before += [f"    {direct} = True", f"    {out} = {target.row}"]
        self.body = [*before, "else:", *(f"    {line}" for line in otherwise)]

    def _collect(self, row, length, axis, factors, inputs):
        """Return the lines that put a product of vectors along an axis into a row."""
        index = self.name("j")
        product = " * ".join(self._factor(inputs[f], axis, index) for f in factors)
        return [f"for {index} in range({length}):", f"    {row}{index}] = {product}"]

    def _factor(self, variable, axis, index):
        if isinstance(variable.type, ScalarType) or not variable.type.ndim:
            return self.scalar(variable)
        indices = ["0", "0"]
        indices[axis] = index
        return self.element(variable, indices)

    def _element_name(self, variable, indices, levels):
        """Return the name of an element, read in the outermost loop that knows where it is."""
        element = self.element(variable, indices)
        name = self.name("s")
        depth = max((k + 1 for k, index in enumerate(indices) if index in element), default=0)
        levels[depth].append(f"{name} = {element}")
        return name

    def _common_length(self, arrays, axis):
        """Return the length of the result along an axis, checked when the loop runs."""
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
        """Return whether nobody needs the memory of a target any more once this node has run."""
        return all(
            v is not None and self._is_last_reader(node, v, variable)
            for v in self.targets[variable].overwritten
        )

    def _is_last_reader(self, node, read, result):
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


def _views(node, position):
    """Return the outputs of a node that may share memory with one of its inputs."""
    if isinstance(node.op, DimShuffle):
        return node.outputs
    maps = (node.op.view_map, node.op.destroy_map)
    return [node.outputs[i] for m in maps for i, inputs in m.items() if position in inputs]


def _is_sum_of_elements(op):
    """Return whether an Op is elementwise, and some of its results are summed to a number."""
    if not isinstance(op, FusedElemwise) or op.indexed_inputs or op.indexed_outputs:
        return False
    [inner] = [n for n in op.fgraph.apply_nodes if isinstance(n.op, Elemwise)]
    every = tuple(range(inner.outputs[0].type.ndim))
    return all(
        spec is None
        or (isinstance(spec[0], Add) and spec[1] == every and spec[3] in {"float64", "int64"})
        for spec in op.reduced_outputs
    )


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


def _nested(indices, lengths, levels):
    """Return one loop per index, around the lines that belong at each depth."""
    body = list(levels[0])
    for depth, (index, length) in enumerate(zip(indices, lengths, strict=True)):
        body.append(f"{'    ' * depth}for {index} in range({length}):")
        body += [f"{'    ' * (depth + 1)}{line}" for line in levels[depth + 1]]
    return body
