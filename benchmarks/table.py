"""Print one line a case: best times in milliseconds, and ratios of ours to the others.

``python benchmarks/table.py [part of a name] ...``
"""

import sys
import time

import numpy as np
from implementations import IMPLEMENTATIONS, available, flat
from problems import PROBLEMS


def best_time(run, seconds=0.3):
    """Return the shortest of some runs, in milliseconds."""
    run()
    best, end = np.inf, time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best * 1e3


def measure(problem, variant):
    """Return the best time of each implementation, after comparing their results."""
    times, results = {}, {}
    for name, make in IMPLEMENTATIONS.items():
        if available(problem, variant, name):
            run = make(problem, variant)
            results[name] = flat(run())
            times[name] = best_time(run)
    if not problem.random:
        for name, result in results.items():
            for a, b in zip(results["pytensor"], result, strict=True):
                np.testing.assert_allclose(b, a, rtol=1e-6, atol=1e-280, err_msg=name)
    return times


def main(wanted):
    """Measure every case whose name contains one of the words."""
    print(f"{'case':24s}{'ours':>9s}{'pytensor':>10s}{'jax':>9s}{'hand':>9s}   ours / each")
    for problem in PROBLEMS.values():
        for variant in ("trace", "final", "grad"):
            case = f"{problem.name} {variant}"
            if variant not in problem.graph()[1] or (wanted and not any(w in case for w in wanted)):
                continue
            times = measure(problem, variant)
            columns = [f"{times.get(k, np.nan):9.3f}" for k in ("ours", "pytensor", "jax", "hand")]
            ratios = [f"{times['ours'] / times.get(k, np.nan):7.2f}" for k in list(times)[1:]]
            print(f"{case:24s}{' '.join(columns)}  {' '.join(ratios)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
