"""The old functions give what ``pytensor.scan`` gives, and advise code that gives it too."""

import importlib
from typing import Any

import numpy as np
import pytensor
import pytest
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import explicit_graph_inputs
from pytensor.tensor.type import TensorType

from pytensor_loop import legacy
from tests.legacy.cases import CASES, VALUES, namespace, quietly, run


OLD = vars(importlib.import_module("pytensor.scan"))
NAMES = ["scan", "map", "reduce", "foldl", "foldr", "scan_checkpoints", "until"]
OLD_FUNCTIONS = {name: OLD[name] for name in NAMES}
SHIMS = {name: getattr(legacy, name) for name in NAMES}


def advised_code(text: str) -> str:
    lines = text.split("\n\n", 1)[1].splitlines()
    return "\n".join(line.removeprefix("    ") for line in lines)


def results_by_three_ways(sentence: str) -> tuple[list[Variable], list[Variable], list[Variable]]:
    """Return what the old function, the shim, and the code that the shim advises return."""
    case, names = CASES[sentence], namespace()
    old, _ = quietly(run, case, OLD_FUNCTIONS, names)
    new, caught = quietly(run, case, SHIMS, names)
    advice = next(w for w in caught if "this call is" in str(w.message))
    quietly(exec, advised_code(str(advice.message)), names)
    words = ["out"] if "out" in names else [f"out_{i}" for i in range(len(new))]
    return old, new, [names[word] for word in words]


def evaluate_all(variables: list[Variable], mode: str) -> list[Any]:
    inputs = [v for v in explicit_graph_inputs(variables) if v.name in VALUES]
    function = pytensor.function(inputs, variables, mode=mode)
    return function(*(VALUES[str(v.name)] for v in inputs))


@pytest.mark.parametrize("sentence", CASES)
def test_results_are_those_of_pytensor_and_of_the_advised_code(sentence):
    old, new, advised = results_by_three_ways(sentence)
    assert [str(v.dtype) for v in new if isinstance(v.type, TensorType)] == [
        str(v.dtype) for v in old if isinstance(v.type, TensorType)
    ]
    values = evaluate_all([*old, *new, *advised], "FAST_COMPILE")
    assert len(old) == len(new) == len(advised)
    for i in range(len(old)):
        want, *others = values[i :: len(old)]
        for got in others:
            _assert_same(got, want, f"output {i}")


@pytest.mark.parametrize("compiled", ["NUMBA", pytest.param("CVM", marks=pytest.mark.slow)])
def test_results_are_the_same_on_compiled_backends(compiled):
    names = [name for name in CASES if name != "a generator"]
    pairs = [
        (name, *pair)
        for name in names
        for pair in zip(*results_by_three_ways(name)[:2], strict=True)
    ]
    variables = [v for _, old, new in pairs for v in (old, new)]
    values = evaluate_all(variables, compiled)
    for (name, _, _), want, got in zip(pairs, values[::2], values[1::2], strict=True):
        _assert_same(got, want, name)


def _assert_same(got: Any, want: Any, what: str) -> None:
    if isinstance(want, np.random.Generator):
        assert got.bit_generator.state == want.bit_generator.state, what
        return
    assert got.shape == want.shape, what
    np.testing.assert_allclose(got, want, rtol=1e-12, err_msg=what)
