"""What the benchmarks share: a process for each case, and how an answer gets into the results."""

import os
from importlib.metadata import version

import pytest
from remote import STOPWATCH, Remote


LOAD_BEFORE = os.getloadavg()[0]


@pytest.fixture(scope="module")
def remote(request):
    """Return the process of a case, which the measurements of one module share."""
    with Remote(request.param) as remote:
        yield remote


@pytest.fixture
def measure(benchmark, remote):
    """Return a function that asks for a time and files it, with whatever else is known."""

    def measure(question, *args, rounds=1, **extra):
        benchmark.extra_info |= remote.case._asdict() | extra
        benchmark.pedantic(lambda: STOPWATCH.add(remote.ask(question, *args)), rounds=rounds)

    return measure


def pytest_benchmark_update_machine_info(machine_info):
    """Add what the table says about the machine and what ran on it."""
    machine_info["versions"] = {name: version(name) for name in ("pytensor", "numba", "jax")}
    machine_info["load"] = [LOAD_BEFORE, os.getloadavg()[0]]
