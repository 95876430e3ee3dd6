"""What all tests share: every backend by one fixture."""

from collections.abc import Iterator

import pytensor
import pytest


MODES = ["NUMBA", "CVM", "FAST_COMPILE", "JAX"]


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> Iterator[str]:
    """Compile with each backend in turn; JAX only where it is installed."""
    yield from _use(request.param)


@pytest.fixture(params=[mode for mode in MODES if mode != "JAX"])
def native_mode(request: pytest.FixtureRequest) -> Iterator[str]:
    """Compile with each backend that takes lengths as they come: all but JAX."""
    yield from _use(request.param)


@pytest.fixture
def python_mode() -> Iterator[str]:
    """Compile nothing: for tests of what does not depend on the backend."""
    yield from _use("FAST_COMPILE")


def _use(mode: str) -> Iterator[str]:
    if mode == "JAX":
        pytest.importorskip("jax")
    # Without a compiler this mode runs everything in Python, which CVM does not show.
    compiler = "" if mode == "FAST_COMPILE" else pytensor.config.cxx
    with pytensor.config.change_flags(cxx=compiler):
        yield mode
