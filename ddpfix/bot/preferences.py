"""What a repository asks of the bot: `.github/ddpfix.toml`, and of its ordinary settings those that are data.

Nothing that a repository says makes the bot run anything: its format command, and whatever setting may be added that names
code, is not taken over.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from ddpfix import settings
from ddpfix.settings import Settings, SettingsError

PLACES = (".github/ddpfix.toml", ".gitlab/ddpfix.toml")
OPT_OUT_TOPIC = "no-ddpfix"
SETTINGS = ("ddpfix.toml", "pyproject.toml")
# settings that choose and leave out; every other one is the bot's own to decide
_DATA = ("select", "ignore", "extend_select", "exclude", "per_file_ignores", "rewrites", "bot", "check_copies")


@dataclass(frozen=True, slots=True)
class Preferences:
    """enabled: false turns the bot off. topics: `safe`, `unsafe`, codes, or `per-rule` for a pull request a codemod.

    max_open: pull requests that may be open at a time. draft: open all of them as drafts, which ask no code owner. labels: put
    on a new one. ignored_authors: addresses of programs (a formatter, say) whose commits on a branch of the bot do not count.
    signed: the forge makes the commits, and signs them. dashboard: an issue says what is open and what was closed.
    """

    enabled: bool = True
    topics: tuple[str, ...] = ("safe", "unsafe")
    max_open: int = 2
    draft: bool = False
    labels: tuple[str, ...] = ()
    ignored_authors: tuple[str, ...] = ()
    signed: bool = False
    dashboard: bool = False


def read(contents: Callable[[str], bytes | None]) -> tuple[Settings, Preferences]:
    """Both, out of a reader of committed files. Raises SettingsError."""
    return _settings(contents), _preferences(contents)


def _settings(contents: Callable[[str], bytes | None]) -> Settings:
    stored = Settings()
    for name, keys in zip(SETTINGS, ((), ("tool", "ddpfix")), strict=True):
        data = contents(name)
        if data is None:
            continue
        table = _table(name, data, broken_is_empty=bool(keys))
        for key in keys:
            table = inner if isinstance(inner := table.get(key), dict) else {}
        if table or not keys:
            stored = settings.parse(table, name)
            break
    return Settings(**{name: getattr(stored, name) for name in _DATA})


def _preferences(contents: Callable[[str], bytes | None]) -> Preferences:
    name, data = next(((n, d) for n in PLACES if (d := contents(n)) is not None), ("", b""))
    known = {f.name.replace("_", "-"): f for f in fields(Preferences)}
    values: dict[str, Any] = {}
    for key, value in _table(name, data).items():
        field = known.get(key.replace("_", "-"))
        if field is None:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.4)
            raise SettingsError(f"{name}: unknown key {key!r}; " + (f"did you mean {near[0]!r}?" if near else "see docs/bot.md"))
        default = field.default
        if isinstance(default, tuple):
            if not (isinstance(value, list) and all(isinstance(v, str) for v in value)):
                raise SettingsError(f"{name}: {key} is a list of texts")
            value = tuple(value)
        elif type(value) is not type(default):
            raise SettingsError(f"{name}: {key} is {'true or false' if isinstance(default, bool) else 'a number'}")
        elif type(value) is int and value < 0:
            raise SettingsError(f"{name}: {key} is a number from 0 on, not {value}")
        values[field.name] = value
    return Preferences(**values)


def _table(name: str, data: bytes, *, broken_is_empty: bool = False) -> dict[str, Any]:
    try:
        return settings.toml(data)
    except ValueError as error:
        if broken_is_empty and not settings.holds_ours(data):  # somebody else's file: what is wrong in it is not ours to judge
            return {}
        raise SettingsError(f"{name}: {error}") from None
