"""The public names are exactly these."""

import pytensor_loop
from pytensor_loop import testing


def test_public_names() -> None:
    """A name is public by decision, not by accident."""
    public = {name for name in vars(pytensor_loop) if not name.startswith("_")}
    submodules = {"backends", "legacy", "migrate", "testing"}

    assert public - submodules == set(pytensor_loop.__all__)
    assert set(pytensor_loop.__all__) == {
        "CarryTaps",
        "PushedTap",
        "Taps",
        "XsTaps",
        "accumulate",
        "fold",
        "fori_loop",
        "iterate",
        "map",
        "scan",
        "taps",
        "while_loop",
    }


def test_taps_is_also_scan_taps() -> None:
    """The two spellings are one function."""
    assert pytensor_loop.scan.taps is pytensor_loop.taps


def test_the_oracle_is_public() -> None:
    """Users test their own steps with it."""
    assert callable(testing.scan_reference)
