"""Ask a fresh process about a case, and let pytest-benchmark write down its answers."""

import os
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context


class Remote:
    """A process for one case, with an empty folder for what PyTensor compiles.

    Parameters
    ----------
    case
        What it measures.
    """

    def __init__(self, case):
        self.case = case
        self._folder = tempfile.TemporaryDirectory()
        self._pool = ProcessPoolExecutor(1, get_context("spawn"), _start, (self._folder.name,))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._pool.shutdown()
        self._folder.cleanup()

    def ask(self, question, *args):
        """Return the answer to a question, which is a method of `Measured`."""
        return self._pool.submit(_answer, self.case, question, args).result()


def _start(folder):
    """Set what NumPy, PyTensor and JAX read when they are imported.

    One thread for all: a loop is sequential, and a BLAS of more threads waits for every one of them
    in every step, a hundred times as long once another program needs one of the cores.
    """
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    flags = [os.environ.get("PYTENSOR_FLAGS", ""), f"base_compiledir={folder}"]
    os.environ["PYTENSOR_FLAGS"] = ",".join(filter(None, flags))


@cache
def _measured(case):
    from measured import Measured  # after `_start`

    return Measured(case)


def _answer(case, question, args):
    return question(_measured(case), *args)


class Stopwatch:
    """A clock that stands still but for the seconds that a process has measured itself."""

    def __init__(self):
        self._seconds = 0.0

    def read(self):
        """Return the time."""
        return self._seconds

    def add(self, seconds):
        """Let time pass."""
        self._seconds += seconds


STOPWATCH = Stopwatch()
