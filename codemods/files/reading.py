"""The bytes of a Python file as text and as a syntax tree, or the reason why they cannot be read."""

from __future__ import annotations

import ast
import re
import warnings

from codemods.runtime.lazy_pattern import lazy

BOM = b"\xef\xbb\xbf"
# PEP 263: a cookie stands in the first or second line.
_COOKIE = lazy(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", re.ASCII)


class Unreadable(Exception):
    """A file that cannot be analysed. `reason` is one line for the user."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path, self.reason = path, reason

    def __reduce__(self) -> tuple[type[Unreadable], tuple[str, str]]:
        return Unreadable, (self.path, self.reason)


def _normal(encoding: str) -> str:
    """The name as Python's own tokenizer takes it: `utf-8-unix` and `Latin_1` are what Emacs and others write."""
    plain = encoding[:12].lower().replace("_", "-")
    if plain == "utf-8" or plain.startswith("utf-8-"):
        return "utf-8"
    if plain.startswith(("latin-1", "iso-8859-1", "iso-latin-1")) and plain.rpartition("1")[2][:1] in ("", "-"):
        return "iso-8859-1"
    return encoding


def _declared(data: bytes) -> str:
    """The encoding that a coding line names, "" without one."""
    for line in re.split(rb"\r\n|\r|\n", data[:1024], maxsplit=2)[:2]:
        if cookie := _COOKIE.match(line):
            return _normal(cookie.group(1).decode("ascii"))
        if line.strip(b" \t\f") and not line.lstrip(b" \t\f").startswith(b"#"):
            break
    return ""


def decode(path: str, data: bytes) -> tuple[str, str, bytes]:
    """(text, encoding, byte order mark) of a source file, line endings kept. Raises Unreadable."""
    mark = BOM if data.startswith(BOM) else b""
    declared = _declared(data[len(mark) :]) if b"coding" in data[:1024] else ""
    if mark and declared not in ("", "utf-8"):
        raise Unreadable(path, f"its byte order mark says utf-8, its coding line {declared}")
    encoding = declared or "utf-8"
    try:
        text = data[len(mark) :].decode(encoding)
        if text.encode(encoding) != data[len(mark) :]:
            raise Unreadable(path, f"its bytes are not what {encoding} would write, so they could not be kept")
    except LookupError:
        raise Unreadable(path, f"unknown encoding {encoding!r} in its coding line") from None
    except UnicodeError as error:
        raise Unreadable(path, f"not {encoding}: {error.__class__.__name__}") from None
    return text, encoding, mark


_NEWER = (
    (lazy(r"^[ \t]*type[ \t]+\w+[ \t]*(\[[^\]]*\])?[ \t]*=", re.M), "3.12 (type statement)"),
    (lazy(r"^[ \t]*(async[ \t]+def|def|class)[ \t]+\w+[ \t]*\[", re.M), "3.12 (type parameters)"),
    (lazy(r"\bt[\"']"), "3.14 (template strings)"),
    (lazy(r"^[ \t]*except[ \t]+\w+[ \t]*,[ \t]*\w+[ \t]*:", re.M), "3.14 (except without parentheses), or Python 2"),
)


def _syntax_reason(text: str, error: SyntaxError) -> str:
    import sys

    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    where = f"line {error.lineno}: {error.msg}"
    if re.search(r"^[ \t]*print[ \t]+[\"'\w]", text, re.M) or (error.msg or "").startswith("Missing parentheses in call"):
        return f"{where}; it looks like Python 2"
    for pattern, version in _NEWER:
        if pattern.search(text) and not running >= version[:4]:
            return f"{where}; it may need Python {version}, this is Python {running}"
    if (error.msg or "").startswith("f-string"):
        return f"{where}; it may need Python 3.12 (nested quotes in f-strings), this is Python {running}"
    return f"{where} (read with Python {running})"


def parse_text(path: str, text: str) -> ast.Module:
    """The syntax tree of `text`. Raises Unreadable where the running Python cannot read it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        raise Unreadable(path, _syntax_reason(text, error)) from None
    except ValueError as error:
        raise Unreadable(path, str(error)) from None
    except (RecursionError, MemoryError):
        raise Unreadable(path, "an expression is nested too deeply for Python's own parser") from None
