"""Run time of every problem.

``pytest benchmarks/test_runtime.py --benchmark-group-by=param:case``
"""

import numpy as np
import pytest
from implementations import IMPLEMENTATIONS, available, flat
from problems import PROBLEMS


CASES = [
    pytest.param((name, variant), implementation, id=f"{name}-{variant}-{implementation}")
    for name, problem in PROBLEMS.items()
    for variant in ("trace", "final", "grad")
    for implementation in IMPLEMENTATIONS
    if available(problem, variant, implementation)
]


@pytest.mark.parametrize(("case", "implementation"), CASES)
def test_run_time(benchmark, case, implementation):
    name, variant = case
    problem = PROBLEMS[name]
    run = IMPLEMENTATIONS[implementation](problem, variant)
    result = flat(run())
    if not problem.random and implementation != "pytensor":
        reference = flat(IMPLEMENTATIONS["pytensor"](problem, variant)())
        for ours, theirs in zip(result, reference, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-280)
    benchmark.pedantic(run, rounds=15, iterations=1, warmup_rounds=2)
