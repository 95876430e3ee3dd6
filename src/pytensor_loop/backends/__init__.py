"""What each backend needs to run a loop: one module a backend, no user-facing logic.

A backend is imported when a function with a loop is first compiled for it, not before: Numba and
JAX take seconds to import, and JAX need not be installed.
"""

import importlib

from pytensor.compile.mode import optdb
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import GraphRewriter
from pytensor.scan.op import Scan

from pytensor_loop import _first_rows, _last_row, _passed_on, _zero_steps  # noqa: F401 - rewrites
from pytensor_loop._agree import AgreeingLengths
from pytensor_loop.backends import _jax_until, _numba_sequences  # noqa: F401 - rewrites too


class _ImportBackend(GraphRewriter):
    """Import the modules of a backend if the graph holds a loop, and change nothing."""

    def __init__(self, *modules: str) -> None:
        self.modules = modules

    def apply(self, fgraph: FunctionGraph) -> None:
        if any(isinstance(node.op, Scan | AgreeingLengths) for node in fgraph.apply_nodes):
            for module in self.modules:
                importlib.import_module(f"{__name__}.{module}")


_BACKENDS = {"numba": ["_numba_lengths", "numba"], "jax": ["_jax_lengths", "jax"]}

for _backend, _modules in _BACKENDS.items():
    optdb.register(
        f"pytensor_loop_import_{_backend}",
        _ImportBackend(*_modules),
        # The linker of each backend asks for the rewrites that are tagged with its name.
        _backend,
        use_db_name_as_tag=False,
        position=0,
    )
