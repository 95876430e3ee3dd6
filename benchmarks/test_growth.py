"""The time to run from a thousand steps to a million."""

import pytest
from cases import cases
from measured import Measured
from remote import STOPWATCH


@pytest.mark.parametrize("remote", cases(["AR(1)", "tanh d=4"]), indirect=True)
@pytest.mark.parametrize("n_steps", [10**3, 10**4, 10**5, 10**6])
@pytest.mark.benchmark(group="growth", timer=STOPWATCH.read)
def test_growth(measure, n_steps):
    measure(Measured.run, n_steps, rounds=5, n_steps=n_steps)
