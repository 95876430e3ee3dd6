"""Old calls of every kind, as code: what comes before the call, and the call."""

import dataclasses
import warnings
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt


@dataclasses.dataclass(frozen=True)
class Case:
    """One old call."""

    before: str
    call: str


VALUES = {
    "x": np.arange(1.0, 8.0),
    "y": np.arange(5.0) / 3,
    "k": np.arange(1, 5, dtype="int32"),
    "a": np.array(0.5),
    "v": np.array([0.1, 0.2, 0.3]),
    "m": np.arange(6.0).reshape(3, 2),
    "n": np.array(4, dtype="int64"),
    "w": np.array(1.5),
}

ADD = "def fn(row, acc): return row * acc + 1.0"
PLAIN = "def fn(row): return row ** 2"

CASES = {
    "one sequence": Case(PLAIN, "scan(fn, x)"),
    "sequences cut to the shortest": Case("def fn(p, q): return p * q", "scan(fn, [x, y])"),
    "sequences cut to n_steps": Case("def fn(p, q): return p * q", "scan(fn, [x, y], n_steps=n)"),
    "sequences cut to a known n_steps": Case(PLAIN, "scan(fn, [x], n_steps=3)"),
    "three sequences": Case("def fn(p, q, r): return p * q - r", "scan(fn, [x, y, k])"),
    "state without sequences": Case("def fn(acc): return 2 * acc", "scan(fn, None, a, n_steps=n)"),
    "state and sequence": Case(ADD, "scan(fn, x, a)"),
    "state and an output that is not fed back": Case(
        "def fn(row, acc): return [row + acc, row * 2]", "scan(fn, x, [a, None])"
    ),
    "output that is not fed back first": Case(
        "def fn(row, acc): return row * 2, row + acc", "scan(fn, x, [None, dict(initial=a)])"
    ),
    "two states, one a vector": Case(
        "def fn(s, t): return [s + 1, t * s]", "scan(fn, outputs_info=[a, v], n_steps=4)"
    ),
    "taps of a state": Case(
        "early = v[:2]\ndef fn(before, last): return before + last",
        "scan(fn, outputs_info=dict(initial=early, taps=[-2, -1]), n_steps=5)",
    ),
    "taps of a state in no order and with gaps": Case(
        "def fn(p, q): return p - q / 2",
        "scan(fn, outputs_info=[dict(initial=v, taps=[-1, -3])], n_steps=5)",
    ),
    "more initial rows than taps": Case(
        "def fn(p): return p + 1", "scan(fn, outputs_info=[dict(initial=x, taps=[-2])], n_steps=5)"
    ),
    "a tuple of the tap -1": Case(
        "def fn(p): return p + 1", "scan(fn, outputs_info=[dict(initial=v, taps=(-1,))], n_steps=2)"
    ),
    "taps of a sequence": Case(
        "def fn(p, q): return p - q", "scan(fn, dict(input=x, taps=[1, -1]))"
    ),
    "positive taps of a sequence": Case(
        "def fn(p): return p * 2", "scan(fn, dict(input=x, taps=3))"
    ),
    "negative taps of a sequence": Case(
        "def fn(p, q): return p - q", "scan(fn, dict(input=x, taps=[-3, -1]))"
    ),
    "taps of a sequence and another": Case(
        "def fn(p, q, r): return p - q * r", "scan(fn, [dict(input=x, taps=[-2, 1]), y])"
    ),
    "taps of a sequence and n_steps": Case(
        "def fn(p, q, r): return p - q * r",
        "scan(fn, [dict(input=x, taps=[-2, -1]), y], n_steps=n)",
    ),
    "backwards": Case(ADD, "scan(fn, x, a, go_backwards=True)"),
    "backwards and cut to the shortest": Case(
        "def fn(p, q, acc): return p * q + acc / 2", "scan(fn, [x, y], a, go_backwards=True)"
    ),
    "backwards and n_steps": Case(ADD, "scan(fn, x, a, n_steps=n, go_backwards=True)"),
    "backwards with taps": Case(
        "def fn(p, q, r): return [p - q, q * r]",
        "scan(fn, [dict(input=x, taps=[-2, 1]), y], go_backwards=True)",
    ),
    "backwards with negative taps": Case(
        "def fn(p, q): return p - q", "scan(fn, [dict(input=x, taps=-2), y], go_backwards=True)"
    ),
    "non_sequences": Case(
        "def fn(row, acc, p, q): return row * p + acc * q", "scan(fn, x, a, [w, 2.0])"
    ),
    "a closure": Case("def fn(row, acc): return row * w + acc", "scan(fn, x, a)"),
    "until": Case(
        "def fn(acc): return acc * 2, until(acc > 3)", "scan(fn, outputs_info=a, n_steps=20)"
    ),
    "until and two outputs": Case(
        "def fn(row, acc): return [acc + row, acc], until(acc > 5)", "scan(fn, x, [a, None])"
    ),
    "until backwards": Case(
        "def fn(row, acc): return acc + row, until(acc > 10)", "scan(fn, x, a, go_backwards=True)"
    ),
    "an empty dict of updates": Case(
        "def fn(row, acc): return [row + acc], {}", "scan(fn, x, [a])"
    ),
    "one step": Case(ADD, "scan(fn, x, a, n_steps=1)"),
    "one step with taps": Case(
        "def fn(p, q, s, t): return [p + q * s, t]",
        "scan(fn, dict(input=x, taps=[-1, 1]), [dict(initial=v, taps=[-3, -1]), None], n_steps=1)",
    ),
    "return_list": Case(PLAIN, "scan(fn, x, return_list=True)"),
    "a matrix": Case(
        "first = m[0]\ndef fn(row, acc): return row + acc.sum()", "scan(fn, m, first, name='rows')"
    ),
    "truncated gradient": Case(ADD, "scan(fn, x, a, truncate_gradient=2)"),
    "a generator": Case(
        "rng = pytensor.shared(np.random.default_rng(3))\n"
        "def fn(level, rng):\n"
        "    next_rng, draw = pt.random.normal(level, rng=rng, return_next_rng=True)\n"
        "    return draw, next_rng",
        "scan(fn, outputs_info=[a, rng], n_steps=3)",
    ),
    "map": Case(PLAIN, "map(fn, x)"),
    "map of two": Case("def fn(p, q, c): return p * q + c", "map(fn, [x, y], w)"),
    "map backwards": Case(PLAIN, "map(fn, x, go_backwards=True)"),
    "map to two": Case("def fn(p): return [p, 2 * p]", "map(fn, x)"),
    "reduce": Case(ADD, "reduce(fn, x, a)"),
    "reduce backwards": Case(ADD, "reduce(fn, x, a, go_backwards=True)"),
    "reduce of two": Case(
        "def fn(p, s, t, c): return [p + s, t * c]", "reduce(fn, x, [a, v], non_sequences=w)"
    ),
    "reduce with taps and a map": Case(
        "def fn(p, s, t): return [p + s, p * t, p]",
        "reduce(fn, x, [dict(initial=v, taps=[-3]), a, None], go_backwards=True)",
    ),
    "foldl": Case(ADD, "foldl(fn, x, a)"),
    "foldr": Case(ADD, "foldr(fn, [x], [a])"),
    "checkpoints": Case(
        "def fn(row, acc, c): return row * acc / c",
        "scan_checkpoints(fn, z, a, w, n_steps=6, save_every_N=2)",
    ),
    "checkpoints of two outputs": Case(
        "def fn(row, acc, c): return [row * acc, row + c]",
        "scan_checkpoints(fn, [z], [a, None], w, save_every_N=3)",
    ),
}


def namespace() -> dict[str, Any]:
    """Return what the code of the cases may use: symbolic inputs by the names of `VALUES`."""
    inputs = {
        name: pt.tensor(name, dtype=value.dtype, shape=(None,) * value.ndim)
        for name, value in VALUES.items()
    }
    z = inputs["x"][:6]
    z.name = "z"
    return {**inputs, "z": z, "pt": pt, "np": np, "pytensor": pytensor}


def run(case: Case, functions: dict[str, Any], names: dict[str, Any]) -> list[Any]:
    """Run an old call with these functions, without updates; return its results in a list."""
    names.update(functions)
    exec(case.before, names)
    end = case.call.rindex(")")
    result = eval(f"{case.call[:end]}, return_updates=False{case.call[end:]}", names)
    return list(result) if isinstance(result, list | tuple) else [result]


def quietly(function: Any, *args: Any) -> Any:
    """Return what a function returns, and the warnings that it gave."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function(*args)
    return result, [w for w in caught if issubclass(w.category, DeprecationWarning)]
