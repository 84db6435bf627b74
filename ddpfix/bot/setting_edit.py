"""Codes added to `ignore` in a repository's settings, with every other byte as it was."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Sequence

from ddpfix.settings import SettingsError

_LIST = re.compile(r"^(ignore\s*=\s*\[)([^\]]*)(\])", re.M)


def with_ignored(contents: Callable[[str], bytes | None], codes: Sequence[str]) -> tuple[str, bytes]:
    """(path, new bytes) of the settings file with `codes` ignored; ddpfix.toml is made where there are none.

    Raises SettingsError where the list cannot be changed without a doubt.
    """
    pyproject = contents("pyproject.toml") or b""
    own = contents("ddpfix.toml")
    if own is None and re.search(rb"^\[tool\.ddpfix\]\s*$", pyproject, re.M):
        return "pyproject.toml", _changed("pyproject.toml", pyproject, "[tool.ddpfix]", codes)
    return "ddpfix.toml", _changed("ddpfix.toml", own or b"", "", codes)


def _changed(path: str, data: bytes, header: str, codes: Sequence[str]) -> bytes:
    text = data.decode("utf-8")
    start = text.index(header) + len(header) if header else 0
    following = re.search(r"^\s*\[", text[start:], re.M)
    end = start + following.start() if following else len(text)
    section = text[start:end]
    listed = ", ".join(f'"{code}"' for code in codes)
    if _LIST.search(section):
        section = _LIST.sub(lambda m: m[1] + _longer(m[2], listed) + m[3], section, count=1)
    elif header:
        section = f"\nignore = [{listed}]" + section
    else:
        section = f"ignore = [{listed}]\n" + section
    new = text[:start] + section + text[end:]
    if _ignored(path, new, header) != [*_ignored(path, text, header), *codes]:
        raise SettingsError(f"{path}: the list `ignore` could not be changed by itself; change it by hand")
    return new.encode()


def _longer(items: str, listed: str) -> str:
    """The inside of a list with more at its end: on lines of their own where the others are, comments left where they stand."""
    *lines, end = items.split("\n")
    held = [i for i, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#")]
    if not held:
        kept = items.rstrip()
        return f"{kept.rstrip(',')}, {listed}{items[len(kept) :]}" if kept else listed
    last = lines[held[-1]]
    indent = last[: len(last) - len(last.lstrip())]
    lines[held[-1]] = re.sub(r"^(\s*(?:[\"'][^\"']*[\"']\s*,?\s*)*?[\"'][^\"']*[\"'])\s*(#.*)?$", r"\1,  \2", last).rstrip()
    return "\n".join([*lines, f"{indent}{listed},", end])


def _ignored(path: str, text: str, header: str) -> list[str]:
    try:
        table = tomllib.loads(text)
        return list((table["tool"]["ddpfix"] if header else table).get("ignore", []))
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        raise SettingsError(f"{path}: it could not be changed; change it by hand") from None
