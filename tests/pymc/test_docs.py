"""The page about PyMC: its code runs, block after block."""

import re
from pathlib import Path

import pytest


PAGE = Path(__file__).parents[2] / "docs" / "pymc.md"


@pytest.mark.slow
# Two hundred draws are few, and the samplers say so.
@pytest.mark.filterwarnings("ignore")
def test_the_code_of_the_page_runs(capsys):
    text = PAGE.read_text(encoding="utf-8")
    names = {}
    for block in re.finditer(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        line = text[: block.start(1)].count("\n")
        code = compile("\n" * line + block[1], str(PAGE), "exec")
        exec(code, names)
    assert capsys.readouterr().out.startswith("PyMC cannot derive the log-probability of this loop")
