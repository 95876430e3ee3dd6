"""PyMC is an extra: without it there is nothing to test here."""

import importlib.util
import warnings


collect_ignore_glob = []
if importlib.util.find_spec("pymc") is None:
    collect_ignore_glob.append("*")
else:
    with warnings.catch_warnings(action="ignore"):
        # PyMC imports from places that PyTensor has deprecated.
        import pymc  # noqa: F401
