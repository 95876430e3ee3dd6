"""One loop, said to ``pytensor_loop.scan`` and to ``pytensor.scan`` as each wants it said.

``loop`` of both modules takes ``step(carry, x, *captured)``, which returns the new carry: a leaf or
a tuple of leaves. It returns the first leaf: its last value, or all its rows with ``traced=True``.
They are apart because importing this package teaches its rewrites to PyTensor.
"""


def leaves(carry):
    """Return a carry as a list."""
    return list(carry) if isinstance(carry, tuple | list) else [carry]
