"""What a graph is being compiled for."""

from pytensor.graph.fg import FunctionGraph
from pytensor.link.basic import Linker


def compiles_with(fgraph: FunctionGraph, *linkers: type[Linker]) -> bool:
    """Whether the graph that is being rewritten is compiled with one of these linkers."""
    mode = getattr(fgraph, "_compile_mode", None)
    return mode is not None and isinstance(mode.linker, linkers)
