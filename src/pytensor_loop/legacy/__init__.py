"""The functions of ``pytensor.scan`` by their old signatures, for code that is not rewritten yet.

Replace ``from pytensor.scan import scan`` by ``from pytensor_loop.legacy import scan`` and nothing
else. Each call warns with the same call in the new API, ready to paste.

Where ``pytensor.scan`` went on with wrong numbers, these functions do not:

- An ``n_steps`` that is more than a sequence has rows for is a ValueError on every backend.
- So are fewer initial rows than taps look back.
- ``n_steps=1`` with ``go_backwards=True`` reads the last row, not the first.
- Python numbers in ``outputs_info`` take the dtype that the step settles on, not int8.
- A random generator that a step uses without an update or a place in ``outputs_info`` gives every
  step the same draw, as it did; now there is a UserWarning.
- ``scan_checkpoints`` with ``until`` is a ValueError; it went on after the loop had stopped.

Some calls that failed now work: an update or a condition may use an input that was not passed, the
new value of what is fed back is cast where nothing is lost, and static shapes that are known on one
side only are checked when the function runs.
"""

from pytensor_loop.legacy._checkpoints import scan_checkpoints as scan_checkpoints
from pytensor_loop.legacy._scan import scan as scan
from pytensor_loop.legacy._until import until as until
from pytensor_loop.legacy._views import foldl as foldl
from pytensor_loop.legacy._views import foldr as foldr
from pytensor_loop.legacy._views import map as map
from pytensor_loop.legacy._views import reduce as reduce


__all__ = ["foldl", "foldr", "map", "reduce", "scan", "scan_checkpoints", "until"]
