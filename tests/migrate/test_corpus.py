"""Every loop of the corpus gives the same numbers before and after its conversion."""

import ast
import importlib.util
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytensor
import pytest


pytest.importorskip("libcst")

from pytensor_loop.migrate._convert import Conversion, convert


CORPUS = sorted(Path(__file__).with_name("corpus").glob("*.py"))
VERDICTS = {
    "case": "converted",
    "mode": "converted with a TODO",
    "todo": "left with a TODO",
    "left": "left alone",
}


def functions(text):
    return [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]


def names(path):
    found = [function.name for function in functions(path.read_text())]
    return [name for name in found if name.split("_")[0] in VERDICTS]


@cache
def conversion(path) -> Conversion:
    return convert(path.read_text())


@cache
def module(path, tmp_path, converted):
    target = tmp_path / f"{path.stem}_{'new' if converted else 'old'}.py"
    target.write_text(conversion(path).text if converted else path.read_text())
    spec = importlib.util.spec_from_file_location(target.stem, target)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("converted")


def evaluate(function, *, converted):
    with warnings.catch_warnings():
        if not converted or function.__name__.split("_")[0] in {"todo", "left"}:
            warnings.simplefilter("ignore")
        outputs = function()
        return pytensor.function([], list(outputs), mode="FAST_COMPILE")()


CASES = [
    pytest.param(path, name, id=f"{path.stem}-{name}") for path in CORPUS for name in names(path)
]


@pytest.mark.parametrize(("path", "name"), CASES)
def test_a_converted_loop_gives_the_same_numbers(path, name, place):
    old = evaluate(getattr(module(path, place, False), name), converted=False)
    new = evaluate(getattr(module(path, place, True), name), converted=True)
    assert len(old) == len(new)
    for before, after in zip(old, new, strict=True):
        np.testing.assert_allclose(after, before, rtol=1e-12)
        assert np.shape(after) == np.shape(before)
        assert np.asarray(after).dtype == np.asarray(before).dtype


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_every_call_site_gets_the_verdict_that_its_function_is_named_for(path):
    found = {}
    for function in ast.walk(ast.parse(path.read_text())):
        if isinstance(function, ast.FunctionDef | ast.ClassDef):
            verdict = VERDICTS.get(function.name.split("_")[0])
            lines = range(function.lineno, function.end_lineno + 1)
            found |= dict.fromkeys(lines, verdict) if verdict else {}
    got = [(o.line, o.verdict, o.remarks) for o in conversion(path).outcomes]
    assert got
    assert [g for g in got if g[1] != found.get(g[0], "converted")] == []


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_converting_again_changes_nothing(path):
    assert convert(conversion(path).text).text == conversion(path).text
