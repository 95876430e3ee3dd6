"""Print the tables of the last measurements; with ``--write``, put them and the plot in README.md.

``python benchmarks/report.py [--write]``
"""

import json
import sys
from datetime import datetime
from pathlib import Path

from plot import draw_growth
from tables import TABLES


HERE = Path(__file__).parent
VERSIONS = {"pytensor": "PyTensor", "numba": "Numba", "jax": "JAX"}


def read_results(report):
    """Return ``results[group][loop, n_steps][implementation]``, the best of all rounds."""
    results = {}
    for benchmark in report["benchmarks"]:
        info = benchmark["extra_info"]
        case = f"{info['problem']} {info['variant']}", info.get("n_steps")
        found = results.setdefault(benchmark["group"], {}).setdefault(case, {})
        found[info["implementation"]] = {"seconds": benchmark["stats"]["min"], **info}
    return results


def machine(report):
    """Return where and when the measurements were taken."""
    info = report["machine_info"]
    before, after = info["load"]
    parts = [
        f"{datetime.fromisoformat(report['datetime']):%B %Y}",
        f"{info['cpu']['count']} cores of {info['cpu']['brand_raw']}",
        f"load {before:.1f} before and {after:.1f} after, of which 1 is the benchmarks' own",
        f"Python {info['python_version']}",
        *(f"{label} {info['versions'][name]}" for name, label in VERSIONS.items()),
    ]
    return f"Measured: {', '.join(parts)}."


def write(blocks):
    """Put a text between the comments that mark each block of README.md."""
    page = (HERE / "README.md").read_text()
    for name, text in blocks.items():
        start, end = f"<!-- {name}: written by report.py -->\n", "<!-- end -->"
        before, after = page.split(start)
        page = f"{before}{start}{text}\n{end}" + after.split(end, 1)[1]
    (HERE / "README.md").write_text(page)


def main(arguments):
    """Report the last measurements."""
    report = json.loads((HERE / "results.json").read_text())
    results = read_results(report)
    tables = {name: table(results) for name, table in TABLES.items() if name in results}
    print(machine(report), *tables.values(), sep="\n\n")
    if "--write" in arguments:
        absent = dict.fromkeys(TABLES, "Not measured on this machine.")
        write({"machine": machine(report), **absent, **tables})
        draw_growth(results["growth"], HERE / "growth.png")


if __name__ == "__main__":
    main(sys.argv[1:])
