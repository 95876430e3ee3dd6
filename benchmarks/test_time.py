"""The time to build, to compile and to run every case, apart."""

import numpy as np
import pytest
from cases import cases
from measured import Measured
from problems import PROBLEMS
from remote import STOPWATCH


every_case = pytest.mark.parametrize("remote", cases(), indirect=True)


@pytest.fixture(scope="module")
def references():
    """Return the first results of each loop, which those of others are compared with."""
    return {}


@every_case
@pytest.mark.benchmark(group="build", timer=STOPWATCH.read)
def test_build(measure, remote):
    if remote.case.implementation == "hand":
        pytest.skip("a loop written by hand is not built")
    measure(Measured.build, rounds=30)


@every_case
@pytest.mark.benchmark(group="compile", timer=STOPWATCH.read)
def test_compile(measure):
    measure(Measured.compile)


@every_case
@pytest.mark.benchmark(group="run", timer=STOPWATCH.read)
def test_run(measure, remote, references):
    problem = PROBLEMS[remote.case.problem]
    results = remote.ask(Measured.result)
    if not problem.random:
        reference = references.setdefault(remote.case[:2], (remote.case, results))
        _compare(results, *reference, remote.case)
    measure(Measured.run, problem.n_steps, rounds=25)


def _compare(results, other, references, case):
    for result, reference in zip(results, references, strict=True):
        np.testing.assert_allclose(
            result, reference, rtol=1e-6, atol=1e-280, err_msg=f"{case} and {other} disagree"
        )
