"""Unified diffs that `git apply` accepts, as bytes: any encoding, any line end, no final newline, odd file names."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

NO_NEWLINE = b"\\ No newline at end of file\n"


def unified(path: str, before: bytes, after: bytes, *, context: int = 3) -> bytes:
    """The patch of one file, b"" where nothing changed. Lines are git's: they end at \\n only."""
    if before == after:
        return b""
    # latin-1 maps every byte to one character and back, so difflib works on bytes
    old, new = _lines(before), _lines(after)
    out = [f"diff --git {quoted('a/' + path)} {quoted('b/' + path)}\n".encode()]
    end = "\t\n" if " " in path else "\n"  # as git does: a name with blanks ends at a tab
    out += [f"--- {quoted('a/' + path)}{end}".encode(), f"+++ {quoted('b/' + path)}{end}".encode()]
    for row in list(difflib.unified_diff(old, new, n=context))[2:]:
        data = row.encode("latin-1")
        out.append(data if data.endswith(b"\n") else data + b"\n" + NO_NEWLINE)
    return b"".join(out)


def _lines(data: bytes) -> list[str]:
    return [line.decode("latin-1") for line in _split(data)]


def _split(data: bytes) -> list[bytes]:
    parts = data.split(b"\n")
    lines = [p + b"\n" for p in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\a": "\\a", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\v": "\\v", "\f": "\\f", "\r": "\\r"}


def quoted(path: str) -> str:
    """A path as git writes it in a patch: C-quoted where it holds a control character, a quote, or bytes that are no text."""
    plain = "".join(_ESCAPES.get(c) or (c if _is_plain(c) else _octal(c)) for c in path)
    return path if plain == path else f'"{plain}"'


def _is_plain(c: str) -> bool:
    return ord(c) >= 32 and ord(c) != 127 and not 0xDC80 <= ord(c) <= 0xDCFF


def _octal(c: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in c.encode("utf-8", "surrogateescape"))


def patch(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> bytes:
    """The patch of several files, by path."""
    return b"".join(unified(path, before[path], after[path]) for path in sorted(after))
