"""The examples are scripts in a folder of their own; each test imports the one it is named for."""

import sys
from pathlib import Path

import pytest


# They share a module, and find it as they do when they are run: in the folder that they are in.
sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    """Write pictures where nobody minds."""
    monkeypatch.chdir(tmp_path)
