"""What is measured of one case: in a process of its own, which knows no other case."""

import timeit
from functools import cached_property, lru_cache
from typing import NamedTuple

import jax
import numpy as np
from implementations import IMPLEMENTATIONS
from memory import peak_growth
from problems import PROBLEMS


class Case(NamedTuple):
    """A variant of a problem in one implementation, all by name."""

    problem: str
    variant: str
    implementation: str


class Measured:
    """A case and its questions; times are in seconds.

    Parameters
    ----------
    case
        What to measure.
    """

    def __init__(self, case):
        self.case = case
        self.problem = PROBLEMS[case.problem]
        self.implementation = IMPLEMENTATIONS[case.implementation]
        self.implementation.warm_up()
        # The last length only: a million rows need not be kept.
        self.values = lru_cache(maxsize=1)(self._values)
        self.number = lru_cache(maxsize=1)(self._number)

    def _values(self, n_steps):
        return [self.implementation.convert(v) for v in self.problem.values(n_steps)]

    def _build(self):
        values = self.values(self.problem.n_steps)
        return self.implementation.build(self.problem, self.case.variant, values)

    def build(self):
        """Return the time to make a program."""
        self.values(self.problem.n_steps)
        return timeit.timeit(self._build, number=1)

    @cached_property
    def _compiled(self):
        """The function, and how long it took: with its first call, less what a call takes."""
        values, program = self.values(self.problem.n_steps), self._build()
        start = timeit.default_timer()
        function = self.implementation.compile(program)
        function(*values)
        first = timeit.default_timer() - start
        return function, first - timeit.timeit(lambda: function(*values), number=1)

    def compile(self):
        """Return the time to compile; only once, since the next time would not be cold."""
        return self._compiled[1]

    def _call(self, n_steps):
        function, values = self._compiled[0], self.values(n_steps)
        return lambda: function(*values)

    def result(self):
        """Return the results as a list of NumPy arrays."""
        return [np.asarray(leaf) for leaf in jax.tree.leaves(self._call(self.problem.n_steps)())]

    def _number(self, n_steps, seconds=0.02):
        once = min(timeit.repeat(self._call(n_steps), repeat=2, number=1))
        return max(1, round(seconds / once))

    def run(self, n_steps):
        """Return the time of a call: the mean of a batch, since the clock has a grain."""
        number = self.number(n_steps)
        return timeit.timeit(self._call(n_steps), number=number) / number

    def once(self, n_steps):
        """Return the time of a single call, where more of them would take long."""
        return timeit.timeit(self._call(n_steps), number=1)

    def peak(self, n_steps):
        """Return the growth of memory during a call that is not the first, in bytes."""
        call = self._call(n_steps)
        call()
        return peak_growth(call)

    def trace(self, n_steps):
        """Return the size of all rows of a loop whose rows are those of its first argument."""
        return self.values(n_steps)[0].nbytes
