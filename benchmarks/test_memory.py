"""The peak of memory during a call, in multiples of all rows of the loop.

The arguments exist before the call and are not counted. A gradient needs all states of the way
forward, so its least is 1.
"""

import memory
import pytest
from cases import cases
from measured import Measured
from remote import STOPWATCH


LENGTHS = {
    ("AR(1)", "final"): [10**6, 10**7],
    ("AR(1)", "grad"): [10**7],
    ("tanh d=32", "final"): [10**5, 4 * 10**5],
    ("tanh d=32", "grad"): [4 * 10**5],
}
CASES = [
    pytest.param(*case.values, n_steps, id=f"{case.id}-{n_steps}")
    for (name, variant), lengths in LENGTHS.items()
    for case in cases([name], [variant])
    for n_steps in lengths
]


@pytest.mark.skipif(not memory.CLEAR.exists(), reason="only Linux tells the peak of one call")
@pytest.mark.parametrize(("remote", "n_steps"), CASES, indirect=["remote"])
@pytest.mark.benchmark(group="memory", timer=STOPWATCH.read)
def test_memory(measure, remote, n_steps):
    peak, trace = remote.ask(Measured.peak, n_steps), remote.ask(Measured.trace, n_steps)
    measure(Measured.once, n_steps, n_steps=n_steps, peak=peak, trace=trace)
