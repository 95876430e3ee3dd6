"""PyMC learns of our loops when a program that uses it builds one: it need not be installed."""

import importlib
import sys


def teach_pymc() -> None:
    """Register what PyMC's log-probabilities need, if PyMC has been imported."""
    if "pymc" in sys.modules:
        importlib.import_module("pytensor_loop.backends.pymc")
