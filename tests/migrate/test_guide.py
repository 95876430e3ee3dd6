"""The examples of the guide run, and each old loop gives the numbers of the new one."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytensor
import pytest


GUIDE = Path(__file__).parents[2] / "docs" / "from-pytensor-scan.md"
SETUP, *EXAMPLES = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
NAMES = ["out", "total", "square", "fib", "diff"]


def values(namespace):
    found = [namespace[name] for name in NAMES if name in namespace]
    return pytensor.function([], found, mode="FAST_COMPILE")()


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_both_halves_of_an_example_give_the_same_numbers(example):
    namespace = {}
    exec(SETUP, namespace)
    old, _, new = example.partition("# new\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(old, namespace)
    before = values(namespace)
    exec(new, namespace)
    for a, b in zip(before, values(namespace), strict=True):
        np.testing.assert_allclose(a, b)
