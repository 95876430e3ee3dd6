"""The tables: ratios of ours to the others first, and a dash for what there is not.

They are made of what `report.read_results` returns, or of parts of it.
"""

from implementations import IMPLEMENTATIONS


LABELS = {name: implementation.label for name, implementation in IMPLEMENTATIONS.items()}
OTHERS = [name for name in LABELS if name != "ours"]
BUILT = [name for name in LABELS if name != "hand"]


def run_table(results):
    """Return the times to run."""
    header = ["case", *_named("to {}", OTHERS), *_named("{} (ms)", LABELS)]
    rows = [
        [loop, *_ratios(found, OTHERS), *_times(found, LABELS, 1e3)]
        for (loop, _), found in results["run"].items()
    ]
    return _table(header, rows)


def compile_table(results):
    """Return the times to build and to compile."""
    build, compilation = results.get("build", {}), results.get("compile", {})
    header = ["case", *(f"{stage}, to PyTensor's Numba" for stage in ("build", "compile"))]
    header += [*_named("build: {} (ms)", BUILT), *_named("compile: {} (s)", LABELS)]
    rows = []
    for case in build | compilation:
        built, compiled = build.get(case, {}), compilation.get(case, {})
        ratios = _ratios(built, ["pytensor"]) + _ratios(compiled, ["pytensor"])
        rows.append([case[0], *ratios, *_times(built, BUILT, 1e3), *_times(compiled, LABELS, 1)])
    return _table(header, rows)


def memory_table(results):
    """Return the peaks of memory, in multiples of all rows of the loop."""
    rows = []
    for (loop, n_steps), found in results["memory"].items():
        trace = next(iter(found.values()))["trace"]
        peaks = {name: entry["peak"] / trace for name, entry in found.items()}
        rows.append([loop, f"{n_steps:,}", f"{trace / 1e6:.0f}", *_cells(peaks, LABELS, "{:.2f}")])
    return _table(["case", "steps", "all rows (MB)", *LABELS.values()], rows)


def growth_table(results):
    """Return our times for one step, after the ratios at the greatest length."""
    loops = by_length(results["growth"])
    lengths = sorted({n_steps for found in loops.values() for n_steps in found})
    rows = []
    for loop, found in loops.items():
        each = {n: times["ours"]["seconds"] / n for n, times in found.items() if "ours" in times}
        scaled = {n: seconds * 1e9 for n, seconds in each.items()}
        rows.append([loop, *_ratios(found[max(found)], OTHERS), *_cells(scaled, lengths, "{:.2f}")])
    header = ["case", *_named("to {}", OTHERS), *(f"{n:,} steps (ns each)" for n in lengths)]
    return _table(header, rows)


def by_length(growth):
    """Return ``found[loop][n_steps]``."""
    loops = {}
    for (loop, n_steps), found in growth.items():
        loops.setdefault(loop, {})[n_steps] = found
    return loops


def _named(pattern, names):
    return [pattern.format(LABELS[name]) for name in names]


def _ratios(found, others):
    ours = [found["ours"]["seconds"]] if "ours" in found else []
    ratios = {name: our / entry["seconds"] for our in ours for name, entry in found.items()}
    return _cells(ratios, others, "{:.2f}")


def _times(found, names, scale):
    return _cells({n: entry["seconds"] * scale for n, entry in found.items()}, names, "{:.3f}")


def _cells(numbers, names, pattern):
    return [pattern.format(numbers[name]) if name in numbers else "-" for name in names]


def _table(header, rows):
    rule = ["---"] + ["---:"] * (len(header) - 1)
    return "\n".join(f"| {' | '.join(row)} |" for row in [header, rule, *rows])


TABLES = {
    "run": run_table,
    "compile": compile_table,
    "memory": memory_table,
    "growth": growth_table,
}
