"""The same call in the new API, as code to paste in its place."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from pytensor_loop.legacy._arguments import OldOutput, OldSequence, as_list
from pytensor_loop.legacy._build import Built, OldCall
from pytensor_loop.legacy._names import Names


def advise_scan(call: OldCall, built: Built, names: Names) -> str:
    """Return the text of the warning of `scan`."""
    new = _describe(call, built, names)
    return _text("scan", [*_loop(new), *_turned(new)], names)


def advise_map(call: OldCall, built: Built, names: Names) -> str:
    """Return the text of the warning of `map`."""
    new = _describe(call, built, names)
    if not new.is_simple:
        return _text("map", [*_loop(new), *_turned(new)], names)
    code = f"out = pytensor_loop.map({', '.join([new.as_lambda('x'), new.xs, *new.named])})"
    return _text("map", [*_imports(new, "map"), code, *_turned(new)], names)


def advise_reduce(function: str, call: OldCall, built: Built, names: Names) -> str:
    """Return the text of the warning of `reduce`, `foldl` and `foldr`."""
    new = _describe(call, built, names)
    if not (new.is_simple and [leaf.has_taps for leaf in new.fed_back] == [False]):
        return _text(function, [*_loop(new), *_last_rows(new)], names)
    reverse = ["reverse=True"] if call.go_backwards else []
    arguments = [new.as_lambda("acc, x"), new.init, new.xs, *reverse, *new.named]
    return _text(function, [*_imports(new, "fold"), f"out = fold({', '.join(arguments)})"], names)


def advise_checkpoints(call: OldCall, built: Built, names: Names, every: Any) -> str:
    """Return the text of the warning of `scan_checkpoints`: a loop in the step of another."""
    new = _describe(call, built, names)
    size = names.of(every, "save_every_N")
    plain = {leaf.out: j for j, leaf in enumerate(new.fed_back)}
    kept = [
        new.carried("last", plain[out])
        if out in plain
        else f"{_entry('ys', i, len(new.stacked))}[-1]"
        for i, out in enumerate(new.stacked)
    ]
    steps = "xs=chunk" if new.rows else f"n_steps={size}"
    inner = [
        f"# in chunks of {size} steps, which the gradient computes again; the number of steps must",
        f"# be a multiple of {size}",
        f"def steps(carry, {'chunk' if new.rows else '_'}):",
        f"    last, ys = scan({new.step}, carry, {steps})",
        f"    return last, {_tree(kept)}",
    ]
    chunked = [f"{row}.reshape((-1, {size}, *{row}.shape[1:]))" for row in new.rows]
    outer = dataclasses.replace(
        new,
        loop_over="steps",
        rows=tuple(chunked),
        n_steps=None if new.rows else f"{new.n_steps} // {size}",
    )
    return _text("scan_checkpoints", [*_step(new), *inner, *_call(outer)], names)


@dataclasses.dataclass(frozen=True)
class _FedBack:
    """A value that is fed back: which output it is, and how to write its initial value."""

    out: str
    initial: str
    has_taps: bool


@dataclasses.dataclass(frozen=True)
class _NewCall:
    """One call in the words of the new API."""

    call: OldCall
    built: Built
    fn: str
    rows: tuple[str, ...]
    """For each sequence, the leaf of xs."""
    row_has_taps: tuple[bool, ...]
    outs: tuple[str, ...]
    """The names of the outputs."""
    stacked: tuple[str, ...]
    """The names of those that have rows."""
    fed_back: tuple[_FedBack, ...]
    constants: tuple[str, ...]
    shared: tuple[str, ...]
    n_steps: str | None
    preparation: tuple[str, ...]
    """What has to be computed before the loop."""
    loop_over: str | None = None
    """The function that the loop runs, if it is another than the step."""

    @property
    def step(self) -> str:
        """The name of the step to be written, which is not that of the old function."""
        return "step_fn" if self.fn != "step_fn" else "new_step_fn"

    @property
    def is_simple(self) -> bool:
        """Whether the step is a function of values to one value and nothing else."""
        returned = self.built.returned
        return returned.bare and not (returned.condition or returned.has_updates or self.shared)

    @property
    def xs(self) -> str:
        """The argument xs."""
        return _tree(self.rows)

    @property
    def init(self) -> str:
        """The argument init."""
        return _tree([*(leaf.initial for leaf in self.fed_back), *self.shared])

    @property
    def named(self) -> list[str]:
        """The name of the loop as an argument."""
        return [f"name={self.call.name!r}"] if self.call.name else []

    def carried(self, root: str, position: int) -> str:
        """Return where one leaf is found in the carry, or in what came out of it."""
        return _entry(root, position, len(self.fed_back) + len(self.shared))

    def arguments(self, carry: str, x: str) -> str:
        """Return what ``fn`` is called with."""
        rows = [
            f"{'*' * has_taps}{_entry(x, i, len(self.rows))}"
            for i, has_taps in enumerate(self.row_has_taps)
        ]
        past = [
            f"{'*' * leaf.has_taps}{self.carried(carry, j)}" for j, leaf in enumerate(self.fed_back)
        ]
        now = [self.carried(carry, len(past) + k) for k in range(len(self.shared))]
        return ", ".join([*rows, *past, *self.constants, *now])

    def as_lambda(self, parameters: str) -> str:
        """Return the step as a function of these parameters."""
        return f"lambda {parameters}: {self.fn}({self.arguments('acc', 'x')})"


def _describe(call: OldCall, built: Built, names: Names) -> _NewCall:
    sequences, outputs = built.arguments.sequences, built.arguments.outputs
    fn = names.of(call.fn, "fn")
    words = [
        names.of(entry["input"] if isinstance(entry, dict) else entry, f"sequences[{i}]")
        for i, entry in enumerate(as_list(call.sequences))
    ]
    outs = ["out"] if len(outputs) == 1 else [f"out_{i}" for i in range(len(outputs))]
    fed_back = [
        _fed_back(output, out, names.of(output.initial, f"outputs_info[{i}]"))
        for i, (output, out) in enumerate(zip(outputs, outs, strict=True))
        if output.state is not None
    ]
    constants = [
        names.of(value, f"non_sequences[{i}]")
        for i, value in enumerate(as_list(call.non_sequences))
    ]
    n_steps = None if call.n_steps is None else names.of(call.n_steps, "n_steps")
    preparation, count = _cut(sequences, words, n_steps)
    return _NewCall(
        call=call,
        built=built,
        fn=fn,
        rows=tuple(
            _rows(leaf, word, count, backwards=call.go_backwards)
            for leaf, word in zip(sequences, words, strict=True)
        ),
        row_has_taps=tuple(leaf.taps != (0,) for leaf in sequences),
        outs=tuple(outs),
        stacked=tuple(
            out
            for output, out in zip(outputs, outs, strict=True)
            if output.state is None or output.state.traced
        ),
        fed_back=tuple(fed_back),
        constants=tuple(constants),
        shared=tuple(names.of(variable, f"shared_{i}") for i, variable in enumerate(built.updates)),
        n_steps=n_steps,
        preparation=preparation,
    )


def _cut(
    sequences: Sequence[OldSequence], words: Sequence[str], n_steps: str | None
) -> tuple[tuple[str, ...], str | None]:
    """Return the code that finds the number of steps, and the word for it to cut sequences by."""
    lengths = [leaf.values.type.shape[0] for leaf in sequences]
    steps = {
        "?" if length is None else str(length - leaf.surplus)
        for leaf, length in zip(sequences, lengths, strict=True)
    }
    if n_steps is not None:
        return (), None if steps <= {n_steps} else n_steps
    if len(sequences) < 2 or (len(steps) == 1 and "?" not in steps):
        return (), None
    claims = ", ".join(
        f"{word}.shape[0]{f' - {leaf.surplus}' if leaf.surplus else ''}"
        for leaf, word in zip(sequences, words, strict=True)
    )
    least = f"pt.minimum({claims})" if len(sequences) == 2 else f"pt.stack([{claims}]).min()"
    return (f"n = {least}  # or drop this and the cuts, if the lengths agree",), "n"


def _rows(leaf: OldSequence, word: str, count: str | None, *, backwards: bool) -> str:
    """Return a leaf of xs: as many rows as the steps read, with taps of zero and more."""
    taps = [tap + leaf.origin for tap in leaf.taps]
    # Where all taps look back, the last rows are read by no step.
    unread = leaf.surplus - max(taps)
    stop = f"-{unread}" if unread else ""
    if count is None:
        cut = f"{word}[:{stop}]" if unread else word
    elif backwards:
        cut = f"{word}[{word}.shape[0] - {_minus(count, leaf.surplus)}:{stop}]"
    else:
        cut = f"{word}[:{_plus(count, max(taps))}]"
    return cut if taps == [0] and leaf.taps == (0,) else f"taps({cut}, taps={taps})"


def _fed_back(output: OldOutput, out: str, word: str) -> _FedBack:
    state = output.state
    assert state is not None
    if state.offsets is None:
        return _FedBack(out, word, has_taps=False)
    whole = getattr(output.initial, "type", None) == state.initial.type
    cut = word if whole else f"{word}[:{state.depth}]"
    return _FedBack(out, f"taps({cut}, taps={list(state.offsets)})", has_taps=True)


def _loop(new: _NewCall) -> list[str]:
    """Return the step and the call of the new `scan`."""
    return [*_step(new), *_call(new)]


def _step(new: _NewCall) -> list[str]:
    returned = new.built.returned
    carry = "carry" if new.fed_back or new.shared else "_"
    x = "x" if new.rows else "_x" if carry == "_" else "_"
    nexts = [f"next_{name}" for name in new.shared]
    new_carry = [
        f"{new.carried(carry, j)}.push_tap({leaf.out})" if leaf.has_taps else leaf.out
        for j, leaf in enumerate(new.fed_back)
    ]
    stop = ["stop.condition"] if returned.condition is not None else []
    results = [_tree([*new_carry, *nexts]), _tree(new.stacked), *stop]
    return [
        *_imports(new, "scan"),
        *([_CHANGE_FN.format(fn=new.fn, names=", ".join(new.shared))] if new.shared else []),
        f"def {new.step}({carry}, {x}):",
        f"    {_targets(new, nexts)} = {new.fn}({new.arguments(carry, x)})",
        f"    return {', '.join(results)}",
    ]


def _targets(new: _NewCall, nexts: Sequence[str]) -> str:
    """Return what the results of ``fn`` are assigned to."""
    returned = new.built.returned
    outs = new.outs[0] if returned.bare else f"[{', '.join(new.outs)}]"
    updates = [_tree(nexts)] if nexts else ["_"] if returned.has_updates else []
    stop = ["stop"] if returned.condition is not None else []
    return ", ".join([*([outs] if new.outs else []), *updates, *stop])


def _call(new: _NewCall) -> list[str]:
    call = new.call
    arguments = [
        new.loop_over or new.step,
        new.init,
        *([f"xs={new.xs}"] if new.rows else []),
        *([f"n_steps={new.n_steps}"] if new.n_steps is not None else []),
        *(["reverse=True"] if call.go_backwards else []),
        *([f"truncate_gradient={call.truncate_gradient}"] if call.truncate_gradient != -1 else []),
        *new.named,
    ]
    done = ["done"] if new.built.returned.condition is not None else []
    targets = ", ".join(["final", _tree(new.stacked, "_"), *done])
    carried = [leaf.out for leaf in new.fed_back]
    last = [
        f"{out} = {new.carried('final', carried.index(out))}"
        for out in new.outs
        if out not in new.stacked
    ]
    updated = [
        f"{name}: {new.carried('final', len(carried) + k)}" for k, name in enumerate(new.shared)
    ]
    return [
        f"{targets} = scan({', '.join(arguments)})",
        *last,
        *([f"updates = {{{', '.join(updated)}}}"] if updated else []),
    ]


def _turned(new: _NewCall) -> list[str]:
    """Return what brings rows that line up with xs into the order of the steps."""
    if not new.call.go_backwards:
        return []
    return [f"{out} = {out}[::-1]  # or drop this: the rows line up with xs" for out in new.stacked]


def _last_rows(new: _NewCall) -> list[str]:
    """Return what takes the last value of each output: from the carry, where it is there."""
    plain = {leaf.out: j for j, leaf in enumerate(new.fed_back) if not leaf.has_taps}
    last_row = "0" if new.call.go_backwards else "-1"
    return [
        f"{out} = {new.carried('final', plain[out])}"
        if out in plain
        else f"{out} = {out}[{last_row}]"
        for out in new.stacked
    ]


def _imports(new: _NewCall, function: str) -> list[str]:
    initial = [leaf.initial for leaf in new.fed_back]
    names = [function] if function != "map" else []
    if any(word.startswith("taps(") for word in [*new.rows, *initial]):
        names.append("taps")
    return [
        *(["import pytensor.tensor as pt"] if new.preparation else []),
        *(["import pytensor_loop"] if function == "map" else []),
        *([f"from pytensor_loop import {', '.join(names)}"] if names else []),
        *new.preparation,
    ]


def _text(function: str, code: Iterable[str], names: Names) -> str:
    notes = [f"# {note}" for note in dict.fromkeys(names.notes)]
    body = "\n".join(f"    {line}" for line in [*notes, *code])
    return (
        f"pytensor_loop.legacy.{function} is for old code. In the new API this call is\n\n{body}\n"
    )


def _tree(words: Sequence[str], empty: str = "None") -> str:
    if not words:
        return empty
    return words[0] if len(words) == 1 else f"({', '.join(words)})"


def _entry(root: str, position: int, count: int) -> str:
    return root if count == 1 else f"{root}[{position}]"


def _plus(word: str, number: int) -> str:
    if word.isdigit():
        return str(int(word) + number)
    return f"{word} + {number}" if number else word


def _minus(word: str, number: int) -> str:
    """Return what is left to subtract after subtracting `word`: ``n - 2``."""
    if word.isdigit():
        return str(int(word) + number)
    return f"{word} - {number}" if number else word


_CHANGE_FN = (
    "# {fn} has to change: let it take {names} as its last arguments,\n"
    "    # and return the next values in the place of the updates"
)
