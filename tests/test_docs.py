"""The code in the documentation runs."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_loop import scan, taps


ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def blocks_of(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)


@pytest.mark.parametrize("page", ["from-jax.md"])
def test_the_python_blocks_of_a_page_run_one_after_the_other(page):
    blocks = blocks_of(DOCS / page)
    assert blocks
    exec("\n".join(blocks), {})


def test_the_readme_says_what_its_first_lines_print(capsys):
    first, *_ = blocks_of(ROOT / "README.md")
    exec(first, {})
    [promised] = re.findall(r"# (.*)$", first, re.M)
    assert capsys.readouterr().out.strip() == promised


def test_the_two_loops_of_the_readme_are_one():
    _, old, new = blocks_of(ROOT / "README.md")
    inputs = {
        "phi1": pt.constant(0.5),
        "phi2": pt.constant(-0.2),
        "y0": pt.constant(np.array([1.0, 2.0])),
        "level0": pt.constant(np.float64(0.1)),
        "x": pt.constant(np.arange(4.0)),
        "pytensor": pytensor,
        "scan": scan,
        "taps": taps,
    }
    theirs, ours = dict(inputs), dict(inputs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        exec(old, theirs)
    exec(new, ours)

    final = [ours["final"]["y"].values, ours["final"]["level"]]
    got = pytensor.function([], [ours["ys"], ours["levels"], *final])()
    names = ["ys", "levels", "last_two", "last_level"]
    expected = pytensor.function([], [theirs[name] for name in names])()
    for mine, theirs_ in zip(got, expected, strict=True):
        np.testing.assert_allclose(mine, theirs_)
