"""One Python file: its tree, who is called what, and edits of its text."""

import dataclasses
import functools
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

import libcst as cst
from libcst.metadata import (
    Assignment,
    MetadataWrapper,
    ParentNodeProvider,
    PositionProvider,
    QualifiedNameProvider,
    Scope,
    ScopeProvider,
)


@dataclasses.dataclass(frozen=True)
class Edit:
    """Replace ``text[start:end]``."""

    start: int
    end: int
    text: str


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return `text` with all `edits`, which do not overlap."""
    # At one offset an insertion comes out in front of the text that replaces what stood there.
    for edit in sorted(edits, key=lambda e: (e.start, e.end), reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


class _Listing(cst.CSTVisitor):
    """All nodes in the order of the text, and which stretch of them each node holds."""

    def __init__(self) -> None:
        super().__init__()
        self.order: list[cst.CSTNode] = []
        self.extents: dict[cst.CSTNode, tuple[int, int]] = {}

    def on_visit(self, node: cst.CSTNode) -> bool:
        self.extents[node] = (len(self.order), 0)
        self.order.append(node)
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        self.extents[original_node] = (self.extents[original_node][0], len(self.order))


class Source:
    """A parsed file, and questions about its names and places."""

    def __init__(self, text: str) -> None:
        self.text = text
        wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
        self.module = wrapper.module
        self._positions = wrapper.resolve(PositionProvider)
        self._parents = wrapper.resolve(ParentNodeProvider)
        self._scopes = wrapper.resolve(ScopeProvider)
        self._qualified = wrapper.resolve(QualifiedNameProvider)
        listing = _Listing()
        self.module.visit(listing)
        self._order, self._extents = listing.order, listing.extents
        lengths = [len(line) for line in text.splitlines(keepends=True)]
        self._line_starts = [sum(lengths[:i]) for i in range(len(lengths) + 1)]

    # -- places ------------------------------------------------------------------------------

    def line(self, node: cst.CSTNode) -> int:
        """Return the line on which `node` starts, from 1."""
        return int(self._positions[node].start.line)

    def start(self, node: cst.CSTNode) -> int:
        """Return the offset at which `node` starts."""
        at = self._positions[node].start
        return self._line_starts[at.line - 1] + int(at.column)

    def end(self, node: cst.CSTNode) -> int:
        """Return the offset just after `node`."""
        at = self._positions[node].end
        return self._line_starts[at.line - 1] + int(at.column)

    def indent(self, node: cst.CSTNode) -> str:
        """Return the white space in front of the line on which `node` starts."""
        begin = self._line_starts[self.line(node) - 1]
        line = self.text[begin:].split("\n", 1)[0]
        return line[: len(line) - len(line.lstrip())]

    def line_start(self, node: cst.CSTNode) -> int:
        """Return the offset of the line on which `node` starts."""
        return self._line_starts[self.line(node) - 1]

    def removal(self, statement: cst.CSTNode) -> Edit:
        """Return the edit that removes `statement` with its lines."""
        start = self.line_start(statement)
        end = self.text.find("\n", self.end(statement)) + 1 or len(self.text)
        first_in_block = self.text[:start].endswith(":\n")
        return Edit(start, end + (first_in_block and self.text.startswith("\n", end)), "")

    @property
    def indent_unit(self) -> str:
        """One level of indentation, as this file writes it."""
        return self.module.default_indent

    def code(self, node: cst.CSTNode) -> str:
        """Return `node` as it is written, with continuation lines moved to the left."""
        code = self.module.code_for_node(node).strip()
        first, newline, rest = code.partition("\n")
        return first + newline + textwrap.dedent(rest)

    # -- relatives ---------------------------------------------------------------------------

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """Return the node that `node` sits in."""
        return self._parents.get(node)

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Yield what `node` sits in, from the inside out."""
        above = self.parent(node)
        while above is not None:
            yield above
            above = self.parent(above)

    def walk(self, node: cst.CSTNode | None = None) -> list[cst.CSTNode]:
        """Return `node` (by default the module) and all that is in it, in the order of the text."""
        if node is None or node is self.module:
            return self._order
        begin, end = self._extents[node]
        return self._order[begin:end]

    def statement(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """Return the simple statement line that holds `node`, if it has a line of its own."""
        for above in self.ancestors(node):
            if isinstance(above, cst.SimpleStatementLine):
                return above
            if isinstance(above, cst.BaseCompoundStatement):
                return None
        return None

    def home(self, node: cst.CSTNode) -> cst.CSTNode:
        """Return the function, or else the module, whose names `node` sees as local."""
        for above in self.ancestors(node):
            if isinstance(above, cst.FunctionDef):
                return above
        return self.module

    # -- names -------------------------------------------------------------------------------

    def qualified(self, node: cst.CSTNode) -> set[str]:
        """Return the full names that `node` may stand for, as far as imports tell."""
        found: Any = self._qualified.get(node, ())
        names = found() if callable(found) else found
        return {name.name for name in names}

    def scope(self, node: cst.CSTNode) -> Scope | None:
        """Return the scope that `node` is evaluated in."""
        found: Any = self._scopes.get(node)
        return found() if callable(found) else found

    def bindings(self, name: cst.Name) -> list[Assignment]:
        """Return the places where `name`, as it is read or written here, gets its value."""
        scope = self.scope(name)
        found = scope[name.value] if scope is not None else ()
        return [binding for binding in found if isinstance(binding, Assignment)]

    def values_of(self, name: cst.Name) -> list[cst.BaseExpression]:
        """Return every expression that is assigned to `name`; none if some value is unseen."""
        values = [self._assigned(binding.node) for binding in self.bindings(name)]
        known = [value for value in values if value is not None]
        return known if len(known) == len(values) else []

    def value_of(self, name: cst.Name) -> cst.BaseExpression | None:
        """Return the one expression that is ever assigned to `name`, if it is that simple."""
        values = self.values_of(name)
        return values[0] if len(values) == 1 else None

    def _assigned(self, target: cst.CSTNode) -> cst.BaseExpression | None:
        holder = self.parent(target)
        assign = self.parent(holder) if isinstance(holder, cst.AssignTarget) else None
        return assign.value if isinstance(assign, cst.Assign) else None

    def is_read(self, name: str, node: cst.CSTNode) -> bool:
        """Return whether anybody reads the variable `name` that is visible at `node`."""
        scope = self.scope(node)
        found = scope[name] if scope is not None else ()
        return any(isinstance(binding, Assignment) and binding.references for binding in found)

    def visible_names(self, node: cst.CSTNode) -> set[str]:
        """Return the names around `node` that already mean something there."""
        scope = self.scope(node)
        names = self.identifiers(self.home(node))
        return names if scope is None else {name for name in names if name in scope}

    @functools.cached_property
    def tensor(self) -> str:
        """How this file calls the module `pytensor.tensor`; ``pt`` if it does not import it."""
        for alias in ("pt", "at", "T", "tt", "tensor"):
            if self._names_tensor(alias):
                return alias
        return "pt"

    @property
    def imports_tensor(self) -> bool:
        """Whether `tensor` is there to be used."""
        return self._names_tensor(self.tensor)

    def _names_tensor(self, alias: str) -> bool:
        scope = self.scope(self.module)
        found = scope.get_qualified_names_for(alias) if scope is not None else ()
        return "pytensor.tensor" in {name.name for name in found}

    def identifiers(self, node: cst.CSTNode | None = None) -> set[str]:
        """Return every identifier that occurs in `node` (without one: in the file)."""
        return {part.value for part in self.walk(node) if isinstance(part, cst.Name)}

    @functools.cached_property
    def all_identifiers(self) -> set[str]:
        """Every identifier in the file."""
        return self.identifiers()


def identifiers_in(code: str) -> set[str]:
    """Return every identifier in a piece of code; nothing at all in what is no expression."""
    try:
        tree: cst.CSTNode = cst.parse_expression(f"({code}\n)")
    except cst.ParserSyntaxError:
        tree = cst.parse_expression(f"[{code}\n]")
    todo, found = [tree], set()
    while todo:
        node = todo.pop()
        todo.extend(node.children)
        if isinstance(node, cst.Name):
            found.add(node.value)
    return found
