"""The peak of a process's resident memory during one call, as Linux counts it."""

import ctypes
import gc
from pathlib import Path


STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def peak_growth(run):
    """Return by how many bytes the resident memory grows, at most, while `run` is called."""
    _give_back()
    CLEAR.write_text("5")  # resets the peak: see proc(5)
    before = _status("VmRSS")
    result = run()  # noqa: F841  (what a call returns is a part of what it needs)
    return _status("VmHWM") - before


def _give_back():
    """Return free memory to the system: a call that took it again would seem to need none."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it
    if trim is not None:
        trim(0)


def _status(key):
    lines = (line.split() for line in STATUS.read_text().splitlines())
    return next(int(words[1]) * 1024 for words in lines if words[0] == f"{key}:")
