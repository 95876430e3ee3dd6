"""What all tests share: every backend by one fixture."""

import pytest


MODES = ["NUMBA", "CVM", "FAST_COMPILE", "JAX"]


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    """Compile with each backend in turn; JAX only where it is installed."""
    if request.param == "JAX":
        pytest.importorskip("jax")
    return request.param


@pytest.fixture(params=[mode for mode in MODES if mode != "JAX"])
def native_mode(request: pytest.FixtureRequest) -> str:
    """Compile with each backend that takes lengths as they come: all but JAX."""
    return request.param
