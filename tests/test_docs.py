"""The code in the documentation runs."""

import re
from pathlib import Path

import pytest


DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("page", ["from-jax.md"])
def test_the_python_blocks_of_a_page_run_one_after_the_other(page):
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(), re.M | re.S)
    assert blocks
    exec("\n".join(blocks), {})
