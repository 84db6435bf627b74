"""What a loop goes through, as text: two loops over the same things have as many rounds."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.names import dotted, last

_KEEPS_THE_LENGTH = frozenset({"enumerate", "list", "tuple", "sorted", "reversed", "tqdm", "track"})
_VIEWS = frozenset({"items", "keys", "values"})


def gone_through(head: ast.expr) -> Iterator[str]:
    """The things that a loop goes through in step: both of `zip(a, b)`, `d` of `d.items()`."""
    if isinstance(head, ast.Call):
        name = last(dotted(head.func))
        if name == "zip":
            for part in head.args:
                yield from gone_through(part)
            return
        if name in _KEEPS_THE_LENGTH and head.args:
            yield from gone_through(head.args[0])
            return
        if name in _VIEWS and isinstance(head.func, ast.Attribute) and not head.args:
            yield from gone_through(head.func.value)
            return
    yield ast.unparse(head)
