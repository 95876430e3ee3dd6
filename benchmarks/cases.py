"""The cases that there are."""

import re

import pytest
from implementations import IMPLEMENTATIONS
from measured import Case
from problems import PROBLEMS


def cases(names=PROBLEMS, variants=("trace", "final", "grad"), implementations=IMPLEMENTATIONS):
    """Return every case of some problems, as parameters of `remote`."""
    return [
        pytest.param(
            Case(name, variant, implementation), id=f"{_word(name)}-{variant}-{implementation}"
        )
        for name in names
        for variant in variants
        for implementation in implementations
        if variant in PROBLEMS[name].variants
        and variant in IMPLEMENTATIONS[implementation].variants(PROBLEMS[name])
    ]


def _word(name):
    """Return a name that pytest's -k understands."""
    return re.sub("[^A-Za-z0-9 ]", "", name).replace(" ", "-")
