"""A loop for PyTensor and PyMC: ``final, ys = scan(step_fn, init, xs, n_steps)``."""

from pytensor_loop._scan import scan as scan
from pytensor_loop._taps import CarryTaps as CarryTaps
from pytensor_loop._taps import PushedTap as PushedTap
from pytensor_loop._taps import Taps as Taps
from pytensor_loop._taps import XsTaps as XsTaps
from pytensor_loop._taps import taps as taps


__all__ = ["CarryTaps", "PushedTap", "Taps", "XsTaps", "scan", "taps"]
__version__ = "0.1.0"
