"""Names that are free, and code for tuples of them."""

import keyword
from collections.abc import Iterable, Sequence


class Names:
    """Names in one scope."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)

    def fresh(self, *wishes: str) -> str:
        """Return, and take, the first of `wishes` that is free, or the last with a number."""
        usable = [wish for wish in wishes if wish.isidentifier() and not keyword.iskeyword(wish)]
        name = next((wish for wish in usable if wish not in self._taken), None)
        number = 2
        while name is None:
            candidate = f"{usable[-1]}_{number}"
            name = candidate if candidate not in self._taken else None
            number += 1
        self._taken.add(name)
        return name


def grouped(items: Sequence[str], nothing: str = "None", as_list: bool = False) -> str:
    """Return code for no item, for one item as it is, or for several as a tuple or a list."""
    if len(items) < 2:
        return items[0] if items else nothing
    inside = ", ".join(items)
    return f"[{inside}]" if as_list else f"({inside})"


def is_identifier(code: str) -> bool:
    """Whether `code` is a plain name."""
    return code.isidentifier() and not keyword.iskeyword(code)
