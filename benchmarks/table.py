"""Print a table: one line a case, ratios of our best time to those of the others first.

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


OTHERS = {"hand": "hand-written Numba", "jax": "jax.lax.scan", "pytensor": "PyTensor's Numba"}


def main(wanted):
    """Measure every case whose name contains one of the words."""
    columns = ["case", *(f"to {other}" for other in OTHERS.values())]
    columns += ["ours (ms)", *(f"{other} (ms)" for other in OTHERS.values())]
    print("| " + " | ".join(columns) + " |")
    print("| " + " | ".join(["---"] + ["---:"] * (len(columns) - 1)) + " |")
    for problem in PROBLEMS.values():
        for variant in ("trace", "final", "grad"):
            case = f"{problem.name} {variant}"
            if variant not in problem.graph()[1] or (wanted and not any(w in case for w in wanted)):
                continue
            print(row(case, measure(problem, variant)), flush=True)


def row(case, times):
    """Return a line of the table; what was not measured is a dash."""
    ratios = [f"{times['ours'] / times[key]:.2f}" if key in times else "-" for key in OTHERS]
    shown = [f"{times[key]:.3f}" if key in times else "-" for key in ("ours", *OTHERS)]
    return "| " + " | ".join([case, *ratios, *shown]) + " |"


if __name__ == "__main__":
    main(sys.argv[1:])
