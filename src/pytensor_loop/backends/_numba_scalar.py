"""Scalar Ops as source: an expression where Numba means the same as PyTensor, else a call.

A Composite becomes one statement per node, so that a fused graph costs one compilation of the whole
step and not one per node.
"""

# PyTensor's own annotations are partial: graphs and nodes are Any throughout.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs

import numpy as np
from pytensor.graph.basic import Constant
from pytensor.scalar import basic as ps
from pytensor.scalar import math as psm

from pytensor_loop.backends import _numba_math


_EXPRESSIONS = {
    ps.Identity: "{0}",
    ps.Neg: "-{0}",
    ps.Sqr: "{0} * {0}",
    ps.Sub: "{0} - {1}",
    ps.Second: "{1}",
    ps.LT: "{0} < {1}",
    ps.GT: "{0} > {1}",
    ps.LE: "{0} <= {1}",
    ps.GE: "{0} >= {1}",
    ps.EQ: "{0} == {1}",
    ps.NEQ: "{0} != {1}",
    ps.Abs: "abs({0})",
    ps.Maximum: "{0} if ({0} >= {1}) | ({0} != {0}) else {1}",  # NaN wins, as in NumPy
    ps.Minimum: "{0} if ({0} <= {1}) | ({0} != {0}) else {1}",
}
_BOOL_EXPRESSIONS = {ps.AND: "{0} & {1}", ps.OR: "{0} | {1}", ps.Invert: "not {0}"}
_FLOAT_EXPRESSIONS = {ps.TrueDiv: "{0} / {1}", ps.Reciprocal: "1.0 / {0}", ps.Sqrt: "np.sqrt({0})"}
_N_ARY = {ps.Add: " + ", ps.Mul: " * "}
_FLOAT_FUNCTIONS = {
    ps.Exp: "exp",
    ps.Expm1: "expm1",
    ps.Log: "log",
    ps.Tanh: "tanh",
    psm.Sigmoid: "sigmoid",
}
_ARITHMETIC = {ps.Cast, ps.Switch, *_EXPRESSIONS, *_BOOL_EXPRESSIONS, *_FLOAT_EXPRESSIONS, *_N_ARY}
_SAME_IN_NUMBA = {"float64", "int64"}


def literal(value):
    """Return a Numba expression of a NumPy scalar, of its own dtype."""
    value = np.asarray(value)
    dtype = value.dtype.name
    if dtype == "bool":
        return str(bool(value))
    if value.dtype.kind == "f" and not np.isfinite(value):
        text = "np.nan" if np.isnan(value) else ("np.inf" if value > 0 else "(-np.inf)")
    else:
        text = f"({value.item()!r})"
    return text if dtype in {"float64", "int64", "complex128"} else f"np.{dtype}({text})"


def cast(expression, dtype):
    """Return the expression converted to a dtype."""
    return f"np.{'bool_' if dtype == 'bool' else dtype}({expression})"


def is_arithmetic(op):
    """Return whether a scalar Op is written as an expression of a few instructions."""
    if isinstance(op, ps.Composite):
        return all(is_arithmetic(node.op) for node in op.fgraph.apply_nodes)
    return type(op) in _ARITHMETIC


class ScalarCode:
    """Writes scalar Ops into a body of statements.

    Parameters
    ----------
    names
        Callable that returns a name not used before, given a prefix.
    call
        Callable that returns the name of a compiled function, given an Op and its node.
    use
        Callable that makes a Python object available to the generated code under a name.
    """

    def __init__(self, names, call, use):
        self.names = names
        self.call = call
        self.use = use

    def write(self, op, node, inputs, body):
        """Append the statements of one scalar node; return an expression for each output.

        Parameters
        ----------
        op
            The scalar Op.
        node
            An application of it, for the types of its inputs and outputs.
        inputs
            Expressions of the inputs.
        body
            List of lines; appended to.
        """
        if isinstance(op, ps.Composite):
            return self._write_composite(op, inputs, body)
        expression = self._expression(op, node, inputs)
        if expression is not None:
            name = self.names("s")
            body.append(f"{name} = {expression}")
            return [name]
        outputs = [self.names("s") for _ in node.outputs]
        body.append(f"{', '.join(outputs)} = {self.call(op, node)}({', '.join(inputs)})")
        return outputs

    def _write_composite(self, op, inputs, body):
        values = dict(zip(op.fgraph.inputs, inputs, strict=True))

        def value(variable):
            return literal(variable.data) if isinstance(variable, Constant) else values[variable]

        for node in op.fgraph.toposort():
            outputs = self.write(node.op, node, [value(v) for v in node.inputs], body)
            values.update(zip(node.outputs, outputs, strict=True))
        return [value(v) for v in op.fgraph.outputs]

    def _expression(self, op, node, inputs):
        if len(node.outputs) != 1:
            return None
        dtype = node.outputs[0].type.dtype
        dtypes = {v.type.dtype for v in node.inputs}
        if isinstance(op, ps.Cast):
            simple = not any("complex" in d for d in (dtype, *dtypes))
            return cast(inputs[0], dtype) if simple else None
        if isinstance(op, ps.Switch):
            return self._switch(node, inputs)
        if not dtypes <= _SAME_IN_NUMBA | {"bool"}:
            return None
        return self._arithmetic(type(op), dtype, dtypes, inputs)

    @staticmethod
    def _switch(node, inputs):
        dtype = node.outputs[0].type.dtype
        if "complex" in dtype:
            return None
        chosen, other = (
            x if v.type.dtype == dtype else cast(x, dtype)
            for x, v in zip(inputs[1:], node.inputs[1:], strict=True)
        )
        return f"{chosen} if {inputs[0]} else {other}"

    def _arithmetic(self, kind, dtype, dtypes, inputs):  # noqa: PLR0911  (one rule a return)
        if dtypes == {"bool"} and dtype == "bool" and kind in _BOOL_EXPRESSIONS:
            return _BOOL_EXPRESSIONS[kind].format(*inputs)
        if "bool" in dtypes and dtype != "float64":
            return None
        if kind in _EXPRESSIONS and dtype in _SAME_IN_NUMBA | {"bool"}:
            return _EXPRESSIONS[kind].format(*inputs)
        if kind in _N_ARY and dtype in _SAME_IN_NUMBA:
            return _N_ARY[kind].join(inputs)
        if dtype != "float64":
            return None
        if kind in _FLOAT_EXPRESSIONS:
            return _FLOAT_EXPRESSIONS[kind].format(*inputs)
        if kind in _FLOAT_FUNCTIONS:
            name = _FLOAT_FUNCTIONS[kind]
            function = self.use(f"fast_{name}", getattr(_numba_math, name))
            return f"{function}(np.float64({inputs[0]}))"
        return None
