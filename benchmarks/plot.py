"""The plot of growth: a panel for each loop, a line for each implementation."""

import matplotlib.pyplot as plt
from implementations import IMPLEMENTATIONS
from tables import by_length


STYLES = {"ours": "o-", "hand": "s--", "jax": "^-.", "pytensor": "d:"}


def draw_growth(growth, path):
    """Write a picture of the time for one step against the number of steps."""
    loops = by_length(growth)
    figure, axes = plt.subplots(
        2, -(-len(loops) // 2), figsize=(10, 6), sharex=True, sharey="row", layout="constrained"
    )
    for panel, (loop, found) in zip(axes.flat, loops.items(), strict=True):
        _draw_loop(panel, loop, found)
    for panel in axes[:, 0]:
        panel.set_ylabel("time for one step (ns)")
    for panel in axes[-1]:
        panel.set_xlabel("number of steps")
    figure.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    figure.savefig(path, dpi=100)


def _draw_loop(panel, loop, found):
    for name, implementation in IMPLEMENTATIONS.items():
        steps = sorted(n for n in found if name in found[n])
        each = [found[n][name]["seconds"] / n * 1e9 for n in steps]
        panel.loglog(steps, each, STYLES[name], label=implementation.label)
    panel.set_title(loop)
    panel.grid(alpha=0.3)
