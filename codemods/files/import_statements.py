"""What a file imports, and the name by which it is imported: told from bytes and path, and nothing is parsed for it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codemods.runtime.lazy_pattern import lazy

_PLAIN = lazy(rb"[ \t]*import[ \t]+([\w., \t]+)")
_FROM = lazy(rb"[ \t]*from[ \t]+([\w.]+)[ \t]+import[ \t]*(\([^)]*\)?|(?:[^\n\\]|\\\r?\n)*)")
_COMMENT = lazy(rb"#[^\n]*")
_IDENTIFIER = lazy(rb"\w+")
_STATEMENT = lazy(rb"^[ \t]*(?:import|from)[ \t]", re.MULTILINE)


def stem_of(path: str) -> str:
    """The name by which a file is imported: that of its folder for a package."""
    return path.removesuffix(".py").removesuffix("/__init__").rpartition("/")[2]


def imported_names(data: bytes) -> frozenset[str]:
    """The dotted names that the import statements of a file bring in, as `SourceModule.imports` has them; `import a.b` is `a.b`.

    A line of a docstring that reads like an import counts too.
    """
    return frozenset(name.decode("ascii", "replace") for at in _STATEMENT.finditer(data) for name in _names(data, at.start()))


def _names(data: bytes, at: int) -> Iterator[bytes]:
    if found := _FROM.match(data, at):
        source = found.group(1)
        joint = b"" if source.endswith(b".") else b"."
        listed = _COMMENT.sub(b"", found.group(2)).replace(b"(", b" ").replace(b")", b" ").replace(b"\\", b" ")
        for part in listed.split(b";")[0].split(b","):
            if named := _IDENTIFIER.search(part):
                yield source + joint + named.group()
        if b"*" in listed:
            yield source
    elif found := _PLAIN.match(data, at):
        for part in found.group(1).split(b","):
            yield part.split()[0] if part.split() else b""
