"""What the examples share: numbers beside their reference, and pictures."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure


def beside(title: str, numbers: Mapping[str, tuple[float, float]], form: str = ".10g") -> None:
    """Print each number beside the one that someone else found."""
    print(title)
    print(f"  {'':24} {'this loop':>20} {'reference':>20}")
    for name, (ours, theirs) in numbers.items():
        print(f"  {name:24} {ours:>20{form}} {theirs:>20{form}}")


@contextmanager
def picture(name: str, *, rows: int = 1, columns: int = 1, height: float = 2.6) -> Iterator[Any]:
    """Hand out axes to draw on, then write the picture to ``out/`` under the current folder."""
    figure = Figure(figsize=(8, height * rows), layout="constrained")
    yield figure.subplots(rows, columns)
    path = Path("out") / f"{name}.png"
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=120)
    print(f"picture: {path}")
