"""Trees: nested tuples, lists, dicts, namedtuples, dataclasses and classes registered with optree.

The only module that imports optree. Everybody else sees a `Tree`: named leaves and a way back.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import optree


# Plain dataclasses are registered here when first met: they stay leaves for others who use optree.
_NAMESPACE = "pytensor_loop"
_known_dataclasses: set[type] = set()

type Accessor = optree.PyTreeAccessor


@dataclasses.dataclass(frozen=True)
class Tree:
    """A tree taken apart: its leaves in order, where each one sits, and how to build it again."""

    leaves: tuple[Any, ...]
    accessors: tuple[Accessor, ...]
    spec: optree.PyTreeSpec

    @classmethod
    def of(cls, tree: Any) -> "Tree":
        """Take `tree` apart."""
        accessors, leaves, spec = optree.tree_flatten_with_accessor(
            tree, is_leaf=_meet_dataclass, namespace=_NAMESPACE
        )
        return cls(tuple(leaves), tuple(accessors), spec)

    def build(self, leaves: Iterable[Any]) -> Any:
        """Return a tree of this structure, and these classes, with other leaves."""
        return optree.tree_unflatten(self.spec, leaves)

    def paths(self, root: str) -> tuple[str, ...]:
        """Return where each leaf sits, as code: ``root['level'][0]``."""
        return tuple(accessor.codify(root) for accessor in self.accessors)

    def align(self, tree: Any) -> list[Any]:
        """Return the leaves of `tree`, known to have this structure, in this order of leaves."""
        return list(self.spec.flatten_up_to(tree))


def map_tree(function: Callable[..., Any], tree: Any) -> Any:
    """Return `tree` with every leaf replaced by ``function(leaf)``."""
    taken = Tree.of(tree)
    return taken.build(map(function, taken.leaves))


def structure_differences(expected: Any, got: Any, path: str) -> Iterator[str]:
    """Yield one sentence for every place at which `got` is not built like `expected`.

    Dicts are compared by their keys alone: neither the order of the keys nor the class of the
    mapping matters, since what is handed back is of the class that went in.
    """
    want, have = _open(expected), _open(got)
    if want is None or have is None:
        if (want is None) != (have is None):
            yield f"{path} should be {_describe(expected, want)}, not {_describe(got, have)}"
        return
    if want.kind is not have.kind:
        yield f"{path} should be {_describe(expected, want)}, not {_describe(got, have)}"
        return
    missing = [key for key in want.children if key not in have.children]
    extra = [key for key in have.children if key not in want.children]
    if missing or extra:
        yield f"{path} {_key_difference(want.kind, missing, extra)}"
        return
    for key, (child, accessor) in want.children.items():
        other, _ = have.children[key]
        yield from structure_differences(child, other, accessor.codify(path))


@dataclasses.dataclass(frozen=True)
class _Node:
    """One inner node of a tree: its class (`dict` for every mapping) and its children by key."""

    kind: type
    children: dict[Any, tuple[Any, Accessor]]


def _open(tree: Any) -> _Node | None:
    """Return the node at the top of `tree`, or None if it is a leaf."""
    if optree.tree_is_leaf(tree, is_leaf=_meet_dataclass, namespace=_NAMESPACE):
        return None
    one_level = optree.tree_flatten_one_level(tree, is_leaf=_meet_dataclass, namespace=_NAMESPACE)
    kind = dict if isinstance(tree, dict) else type(tree)
    accessors = [
        optree.PyTreeAccessor((one_level.path_entry_type(entry, type(tree), one_level.kind),))
        for entry in one_level.entries
    ]
    children = zip(one_level.children, accessors, strict=True)
    return _Node(kind, dict(zip(one_level.entries, children, strict=True)))


def _describe(tree: Any, node: _Node | None) -> str:
    if tree is None:
        return "None"
    if node is None:
        return f"one leaf ({type(tree).__name__})"
    if node.kind is dict:
        return f"a dict with keys {list(node.children)!r}"
    return f"a {node.kind.__name__} of length {len(node.children)}"


def _key_difference(kind: type, missing: Sequence[Any], extra: Sequence[Any]) -> str:
    if kind is not dict:
        return f"should have {_count(missing, extra)}"
    parts = []
    if missing:
        parts.append("lacks " + ", ".join(f"key {key!r}" for key in missing))
    if extra:
        parts.append("has the extra " + ", ".join(f"key {key!r}" for key in extra))
    return " and ".join(parts)


def _count(missing: Sequence[Any], extra: Sequence[Any]) -> str:
    surplus = len(extra) or len(missing)
    return f"{surplus} {'fewer' if extra else 'more'} {'entry' if surplus == 1 else 'entries'}"


def _meet_dataclass(tree: Any) -> bool:
    """Register the class of a plain dataclass before optree looks it up; never call it a leaf."""
    cls = type(tree)
    if dataclasses.is_dataclass(cls) and cls not in _known_dataclasses:
        _known_dataclasses.add(cls)
        if optree.register_pytree_node.get(cls, namespace=_NAMESPACE) is None:
            _register_dataclass(cls)
    return False


def _register_dataclass(cls: type) -> None:
    names = tuple(field.name for field in dataclasses.fields(cls))

    def build(_: Any, children: Iterable[Any]) -> Any:
        # `__init__` is passed over: it may check or convert values, and placeholders are neither.
        instance: Any = object.__new__(cls)
        for name, child in zip(names, children, strict=True):
            object.__setattr__(instance, name, child)
        return instance

    optree.register_pytree_node(
        cls,
        lambda instance: ([getattr(instance, name) for name in names], None, names),
        build,
        path_entry_type=optree.GetAttrEntry,
        namespace=_NAMESPACE,
    )
