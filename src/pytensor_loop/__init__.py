"""A loop for PyTensor and PyMC: ``final, ys = scan(step_fn, init, xs, n_steps)``."""

from pytensor_loop._derived import accumulate as accumulate
from pytensor_loop._derived import fold as fold
from pytensor_loop._derived import fori_loop as fori_loop
from pytensor_loop._derived import iterate as iterate
from pytensor_loop._derived import map as map
from pytensor_loop._derived import while_loop as while_loop
from pytensor_loop._scan import scan as scan
from pytensor_loop._taps import CarryTaps as CarryTaps
from pytensor_loop._taps import PushedTap as PushedTap
from pytensor_loop._taps import Taps as Taps
from pytensor_loop._taps import XsTaps as XsTaps
from pytensor_loop._taps import taps as taps


__all__ = [
    "CarryTaps",
    "PushedTap",
    "Taps",
    "XsTaps",
    "accumulate",
    "fold",
    "fori_loop",
    "iterate",
    "map",
    "scan",
    "taps",
    "while_loop",
]
__version__ = "0.1.0"
