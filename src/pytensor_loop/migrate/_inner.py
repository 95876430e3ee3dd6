"""Plan the inside of the loop: the old step with other ends, or a wrapper around it."""

import dataclasses
import re

import libcst as cst

from pytensor_loop.migrate._arguments import Arguments, name_arguments
from pytensor_loop.migrate._names import Names, grouped, is_identifier
from pytensor_loop.migrate._outer import Outer
from pytensor_loop.migrate._record import Output, Return, Site
from pytensor_loop.migrate._returns import own_nodes
from pytensor_loop.migrate._source import Source, identifiers_in
from pytensor_loop.migrate._values import parenthesized


@dataclasses.dataclass(frozen=True)
class Inner:
    """The new step."""

    argument: str  # what scan() gets
    prelude: tuple[str, ...] = ()  # statements that this definition needs:
    lines: tuple[str, ...] = ()  # a definition to go in front of the call
    params: str | None = None  # new parameters of the old definition,
    prologue: tuple[str, ...] = ()  # its new first lines,
    returns: tuple[tuple[cst.CSTNode, tuple[str, ...]], ...] = ()  # and its new return statements


def plan_inner(source: Source, site: Site, outer: Outer) -> Inner:
    """Settle everything inside the step."""
    step = site.step
    n_args = sum(len(seq.taps) for seq in site.sequences.entries) + len(site.non_sequences)
    n_past = sum(len(output.names) for output in site.outputs or ())
    fits = step.params is not None and len(step.params) == n_args + n_past
    if not (step.rewritable and fits and site.sequences.spread is None):
        return _wrapped(source, site, outer)
    others = _bound_others(source, site)
    if others is None:
        return _wrapped(source, site, outer)
    return _rewritten(source, site, outer, others)


# -- a wrapper -----------------------------------------------------------------------------------


def _wrapped(source: Source, site: Site, outer: Outer) -> Inner:
    """Define a new step that calls the old one."""
    code = " ".join([f"({site.step.call})", *(f"f({other})" for other in site.non_sequences)])
    taken = {source.tensor} | identifiers_in(f"[{code.replace(') f(', '), f(')}]")
    names = Names(taken | {"isinstance", "list", "tuple", "len"})
    args = name_arguments(site, outer, names, own=False)
    outside = Names(source.identifiers(source.home(site.call)))
    call, prelude = site.step.call, list[str]()
    if call.startswith("lambda"):
        call = f"({call})"
    elif not re.fullmatch(r"[\w.]+", call):
        call = outside.fresh("old_step")
        prelude = [f"{call} = {parenthesized(site.step.call)}"]
    inside = ", ".join([*args.sequences, *args.past, *site.non_sequences])
    values, stop, lines = _called(site, names, f"{call}({inside})")
    end = _return(site, outer, args, values, stop)
    name = outside.fresh("step_fn")
    unit = source.indent_unit
    body = [*args.prologue, *lines, end]
    return Inner(
        name,
        tuple(prelude),
        (f"def {name}({', '.join(args.params)}):", *(unit + line for line in body)),
    )


def _called(site: Site, names: Names, call: str) -> tuple[list[str], str | None, list[str]]:
    """Name the old step's outputs and its stop condition, and write the lines that assign them."""
    form = next(iter(site.step.returns), None)
    if site.outputs is None:
        y = names.fresh("y")
        # One output in a list was one variable to the old scan, and several came back as a list.
        lines = [
            f"{y} = {call}",
            f"if isinstance({y}, list | tuple):",
            f"    {y} = {y}[0] if len({y}) == 1 else list({y})",
        ]
        return [y], None, lines
    values = [names.fresh(*_new_names(site, i)) for i in range(len(site.outputs))]
    inside = ", ".join(values)
    if len(values) == 1 and form is not None and form.outputs is not None:
        inside = f"{inside},"
    stops = form is not None and form.until is not None
    if form is None or not (stops or form.has_updates):
        return values, None, [f"{inside} = {call}"]
    inside = f"({inside})" if "," in inside else inside
    stop = names.fresh("stop") if stops else None
    parts = [inside, *(["_"] if form.has_updates else []), *([stop] if stop else [])]
    return values, f"{stop}.condition" if stop else None, [f"{', '.join(parts)} = {call}"]


def _new_names(site: Site, i: int) -> list[str]:
    """Return wishes for the name of output `i` in the step: the step's own, or the result's."""
    output = (site.outputs or ())[i]
    wishes = []
    n_outputs = len(site.outputs or ())
    returned = {ret.outputs[i] if ret.outputs else ret.whole for ret in site.step.returns}
    if len(returned) == 1 and (n_outputs == 1 or site.step.returns[0].outputs):
        wishes += [code for code in returned if is_identifier(code)]
    if output.names:
        wishes.append(_next_name(output))
    targets = site.result.targets
    if len(targets) > i and is_identifier(targets[i]) and targets[i] != "_":
        wishes.append(targets[i])
    return [*wishes, "new_state" if output.recurrent else "y"]


def _next_name(output: Output) -> str:
    """Return a name for the value that follows: `x` after `x_tm1` or `prev_x`."""
    past = output.names[-1]
    stripped = re.sub(
        r"^(prev(ious)?|old|last)_|_(prev(ious)?|old|last|tm?_?\d|t_?minus_?\d)$", "", past
    )
    return f"new_{stripped}" if stripped == past else stripped


# -- the old step with other ends ----------------------------------------------------------------


def _bound_others(source: Source, site: Site) -> list[str] | None:
    """Return lines that give the old step its non-sequences; None if that cannot be done inside."""
    params = site.step.params or ()
    names = params[len(params) - len(site.non_sequences) :] if site.non_sequences else ()
    assigned = _assigned(source, site)
    aliases = []
    for name, code in zip(names, site.non_sequences, strict=True):
        if code.startswith("*"):
            return None
        if name == code and name not in assigned:
            continue
        if identifiers_in(code) & ({*params} | assigned):
            return None
        aliases.append((name, code))
    together = ", ".join(name for name, _ in aliases), ", ".join(code for _, code in aliases)
    if len(aliases) > 1 and len(" = ".join(together)) < 80 and "\n" not in together[1]:
        return [" = ".join(together)]
    return [f"{name} = {parenthesized(code)}" for name, code in aliases]


def _assigned(source: Source, site: Site) -> set[str]:
    """Return the names to which the old step assigns."""
    assert site.step.node is not None
    holders = (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.For, cst.NamedExpr, cst.AsName)
    found: set[str] = set()
    for node in own_nodes(source, site.step.node):
        if isinstance(node, holders):
            target = node.name if isinstance(node, cst.AsName) else node.target
            found |= source.identifiers(target)
        elif isinstance(node, cst.FunctionDef | cst.ClassDef) and node is not site.step.node:
            found.add(node.name.value)
    return found


def _rewritten(source: Source, site: Site, outer: Outer, others: list[str]) -> Inner:
    node = site.step.node
    assert node is not None
    names = Names(source.identifiers(node))
    args = name_arguments(site, outer, names, own=True)
    prologue = (*args.prologue, *others)
    returns = [(ret, _new_return(site, outer, args, names, ret)) for ret in site.step.returns]
    if isinstance(node, cst.FunctionDef):
        changed = tuple((ret.node, tuple(lines)) for ret, lines in returns)
        return Inner(site.step.call, (), (), ", ".join(args.params), prologue, changed)
    ((_, lines),) = returns
    if not prologue and len(lines) == 1 and "\n" not in lines[0]:
        body = lines[0].removeprefix("return ")
        return Inner(f"lambda {', '.join(args.params)}: ({body})")
    name = Names(source.identifiers(source.home(site.call))).fresh("step", "step_fn")
    unit = source.indent_unit
    return Inner(
        name,
        (),
        (f"def {name}({', '.join(args.params)}):", *(unit + line for line in (*prologue, *lines))),
    )


def _new_return(site: Site, outer: Outer, args: Arguments, names: Names, ret: Return) -> list[str]:
    """Return the lines that take the place of `ret`."""
    if site.outputs is None:
        values, _, lines = _called(site, names, parenthesized(ret.whole))
        return [*lines, _return(site, outer, args, values, None)]
    n_outputs = len(site.outputs)
    lines, values = [], list(ret.outputs or ())
    if ret.outputs is None and n_outputs > 1:
        values = [names.fresh(*_new_names(site, i)) for i in range(n_outputs)]
        lines = [f"{', '.join(values)} = {parenthesized(ret.whole)}"]
    elif ret.outputs is None:
        values = [ret.whole]
    for i in sorted(set(outer.carried) & set(outer.stacked)):
        if not is_identifier(values[i]):
            name = names.fresh(*_new_names(site, i))
            lines.append(f"{name} = {parenthesized(values[i])}")
            values[i] = name
    return [*lines, _return(site, outer, args, values, ret.until)]


def _return(site: Site, outer: Outer, args: Arguments, values: list[str], stop: str | None) -> str:
    """Return the return statement of the new step."""
    carry = [
        f"{args.holders[i]}.push_tap({values[i]})" if i in args.holders else values[i]
        for i in outer.carried
    ]
    stacked = values if site.outputs is None else [values[i] for i in outer.stacked]
    parts = [grouped(carry), grouped(stacked, as_list=outer.stacked_as_list)]
    return f"return {', '.join([*parts, *([] if stop is None else [stop])])}"
