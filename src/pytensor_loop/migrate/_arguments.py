"""Plan the arguments of the new step, and how those of the old one come out of them."""

import dataclasses

from pytensor_loop.migrate._names import Names, is_identifier
from pytensor_loop.migrate._outer import Outer
from pytensor_loop.migrate._record import Site


@dataclasses.dataclass(frozen=True)
class Arguments:
    """What the new step gets, and how the old step's arguments come out of it."""

    params: tuple[str, str]
    prologue: tuple[str, ...]
    sequences: tuple[str, ...]
    past: tuple[str, ...]
    holders: dict[int, str]  # by position of the output: the taps on which to push


def name_arguments(site: Site, outer: Outer, names: Names, own: bool) -> Arguments:
    """Name the arguments; `own`: they are the old step's parameters, and keep their names."""

    def name(*wishes: str) -> str:
        return wishes[0] if own else names.fresh(*wishes)

    params = site.step.params or ()
    at, entries, sequences, prologue = 0, [], [], []
    for seq in site.sequences.entries:
        known = params[at : at + len(seq.taps)] or (_row_name(seq.code),) * len(seq.taps)
        at += len(seq.taps)
        each = [name(wish, "x") for wish in known]
        sequences += each
        entries.append(each[0] if len(each) == 1 else f"({', '.join(each)})")
    leaves, past, holders = [], [], {}
    for i in outer.carried:
        output = (site.outputs or ())[i]
        if output.taps is None:
            wish = output.names[0] if output.names else _past_name(site, i)
            past.append(name(wish, *([f"prev_{wish}"] if output.names else []), "state"))
            leaves.append(past[-1])
        else:
            holders[i] = names.fresh("past")
            leaves.append(holders[i])
            each = [name(wish) for wish in output.names]
            past += each or [f"*{holders[i]}"]
            inside = ", ".join(each) if len(each) != 1 else f"({each[0]},)"
            prologue += [f"{inside} = {holders[i]}"] if each else []
    carry, lines = _param(leaves, names, "carry")
    x, x_lines = _param(entries, names, "x")
    if site.sequences.spread is not None:
        x = names.fresh("x")
        sequences = [f"*{x}"]
    return Arguments(
        (carry, x), (*lines, *prologue, *x_lines), tuple(sequences), tuple(past), holders
    )


def _param(entries: list[str], names: Names, wish: str) -> tuple[str, list[str]]:
    """Return the parameter that holds `entries`, and the line that takes them out."""
    if not entries:
        return names.fresh("_"), []
    if len(entries) == 1 and is_identifier(entries[0]):
        return entries[0], []
    holder = names.fresh(wish)
    inside = ", ".join(entries) if len(entries) > 1 else entries[0].strip("()")
    return holder, [f"{inside} = {holder}"]


def _row_name(code: str) -> str:
    return f"{code}_t" if is_identifier(code) else "x"


def _past_name(site: Site, i: int) -> str:
    if (site.outputs or ())[i].generator:
        return "rng"
    targets = site.result.targets
    name = targets[i] if i < len(targets) and len(targets) > i else "_"
    return f"prev_{name}" if is_identifier(name) and not name.startswith("_") else "state"
