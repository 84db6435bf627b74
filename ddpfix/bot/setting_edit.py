"""Codes added to `ignore` in a repository's settings, with every other byte as it was: tomlkit keeps them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import tomlkit
from tomlkit.container import Container
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Array, Table

from ddpfix.settings import SettingsError


def with_ignored(contents: Callable[[str], bytes | None], codes: Sequence[str]) -> tuple[str, bytes]:
    """(path, new bytes) of the settings file with `codes` ignored; ddpfix.toml is made where there are none.

    Raises SettingsError where the file is no TOML, or `ignore` no list of codes.
    """
    pyproject = contents("pyproject.toml") or b""
    own = contents("ddpfix.toml")
    if own is None and re.search(rb"^\[tool\.ddpfix\]\s*$", pyproject, re.M):
        return "pyproject.toml", _changed("pyproject.toml", pyproject, ("tool", "ddpfix"), codes)
    return "ddpfix.toml", _changed("ddpfix.toml", own or b"", (), codes)


def _changed(path: str, data: bytes, at: Sequence[str], codes: Sequence[str]) -> bytes:
    try:
        document = tomlkit.parse(data)
        table: object = document
        for key in at:
            table = table[key] if isinstance(table, (Container, Table)) else None
        if not isinstance(table, (Container, Table)):
            raise TypeError
        if "ignore" in table:
            _extend(table["ignore"], codes)
        else:
            table["ignore"] = list(codes)
        return tomlkit.dumps(document).encode()
    except (TOMLKitError, ValueError, RecursionError, TypeError):
        raise SettingsError(f"{path}: the list `ignore` could not be changed; change it by hand") from None


def _extend(listed: object, codes: Sequence[str]) -> None:
    """On lines of their own where the others are, else behind the last."""
    if not isinstance(listed, Array) or not all(isinstance(code, str) for code in listed):
        raise TypeError
    indent = re.search(r"\n([ \t]*)[\"'#]", listed.as_string())
    for code in codes:
        if indent:
            listed.add_line(code, indent=indent[1])
        else:
            listed.append(code)
