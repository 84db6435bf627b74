"""Settings: what `[tool.ddpfix]` or `ddpfix.toml` says, and what the command line adds."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from codemods.runtime.record import names, record, replace
from ddpfix.catalog import Selection


class SettingsError(Exception):
    """A settings file that cannot be used. The text says which, why, and the nearest right key."""


@record
class Settings:
    """select, ignore, extend_select: codes, names, topics. exclude: globs of paths. per_file_ignores: glob -> codes.

    rewrites: kind -> old name -> new name. target_lightning: the version of Lightning that the code is brought to.
    launched: its programs are started on several processes, whether its texts say so or not.
    check_copies: vendored folders and copies of packages are checked as the project's own code.
    plugins: Python files of the project with codemods of its own; they are the project's code, so whether they may run is said by
    the user (`allow_plugins`), never by the file; so is it for format_command.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    unsafe_fixes: bool = False
    exclude: tuple[str, ...] = ()
    per_file_ignores: Mapping[str, tuple[str, ...]] | None = None
    fail_on: str = "unsafe"
    branch: str = "ddpfix/fixes"
    format_command: str = ""
    bot: bool = True
    rewrites: Mapping[str, Mapping[str, str]] | None = None
    plugins: tuple[str, ...] = ()
    allow_plugins: bool = False
    allow_format_command: bool = False
    target_lightning: str = ""
    launched: bool = False
    check_copies: bool = False

    @property
    def targets(self) -> Mapping[str, str]:
        """The versions that the project is upgraded to, by package: see `Project.targets`."""
        return {"lightning": self.target_lightning} if self.target_lightning else {}

    @property
    def formatter(self) -> str:
        """The format command where the user lets it run: it is a program that the repository names."""
        return self.format_command if self.allow_format_command else ""

    @property
    def selection(self) -> Selection:
        return Selection(self.select, self.ignore, self.extend_select)

    def digest(self) -> str:
        return repr([(name, getattr(self, name)) for name in names(self)])


IN_FILES = tuple(name for name in names(Settings) if name not in ("allow_plugins", "allow_format_command"))
FAIL_ON = ("display", "unsafe", "safe")


def load(root: Path) -> Settings:
    """The settings of a project: `ddpfix.toml` wins over pyproject.toml. Raises SettingsError."""
    return read(path) if (path := source(root)) else Settings()


def source(root: Path) -> Path | None:
    """The file that a project's settings come from. Raises SettingsError."""
    if (own := root / "ddpfix.toml").is_file():
        return own
    if own.is_symlink() or own.exists():
        raise SettingsError(f"{own}: no ordinary file")
    shared = root / "pyproject.toml"
    if not shared.is_file() or b"ddpfix" not in (data := _bytes(shared)):
        return None
    try:
        return shared if _table(shared) else None
    except ValueError as error:
        if holds_ours(data):
            raise SettingsError(f"{shared}: {error}") from None
        return None  # somebody else's file: what is wrong in it is not ours to judge


def holds_ours(data: bytes) -> bool:
    """Whether a pyproject.toml that cannot be read has settings of ours in it."""
    quoted = rb"[\"']?%s[\"']?"
    ours = quoted % b"tool" + rb"\s*\.\s*" + quoted % b"ddpfix"
    return re.search(rb"^\s*\[*\s*" + ours, data, re.M) is not None


def toml(data: bytes) -> dict[str, Any]:
    """The tables of a TOML file. Raises ValueError, also for a number too long and for arrays too deep to be read."""
    import tomllib

    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except RecursionError:
        raise ValueError("its arrays or tables are nested too deeply") from None


def read(path: Path) -> Settings:
    """The settings of one file: `[tool.ddpfix]` of a pyproject.toml, the whole of any other. Raises SettingsError."""
    try:
        return parse(_table(path), str(path))
    except ValueError as error:  # no UTF-8, or no TOML
        raise SettingsError(f"{path}: {error}") from None


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror or error}") from None


def _table(path: Path) -> Mapping[str, object]:
    data = toml(_bytes(path))
    if path.name != "pyproject.toml":
        return data
    tools = data.get("tool", {})
    table = tools.get("ddpfix", {}) if isinstance(tools, dict) else {}
    if not isinstance(table, dict):
        raise SettingsError(f"{path}: tool.ddpfix is a table")
    return table


def as_toml(settings: Settings) -> str:
    """The settings as lines of a settings file."""
    rows = []
    for name in IN_FILES:
        rows.append(f"{name.replace('_', '-')} = {_toml(getattr(settings, name))}")
    return "\n".join(rows) + "\n"


def _toml(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_toml(v) for v in value)}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_toml(k)} = {_toml(v)}" for k, v in value.items()) + " }" if value else "{}"
    import json

    return "{}" if value is None else json.dumps(value, ensure_ascii=False)


def parse(data: Mapping[str, object], source: str) -> Settings:
    """Settings from a table. Raises SettingsError for an unknown key or a value of the wrong kind."""
    known = {name.replace("_", "-"): name for name in IN_FILES}
    values: dict[str, object] = {}
    for key, value in data.items():
        name = known.get(key.replace("_", "-"))
        if name is None:
            near = _near(key.replace("_", "-"), known)
            hint = f"; did you mean {near[0]!r}?" if near else f"; the keys are {', '.join(known)}"
            raise SettingsError(f"{source}: unknown key {key!r}{hint}")
        values[name] = _value(name, key, value, source)
    return replace(Settings(), **values)  # type: ignore[arg-type]


def _near(word: str, known: Iterable[str]) -> list[str]:
    import difflib

    return difflib.get_close_matches(word, list(known), n=1, cutoff=0.4)


def _value(name: str, key: str, value: object, source: str) -> object:
    if name == "rewrites":
        return _rewrites(key, value, source)
    if name in ("select", "ignore", "extend_select", "exclude", "plugins"):
        if isinstance(value, list) and _is_texts(value):
            return tuple(value)
        raise SettingsError(f"{source}: {key} is a list of texts")
    if name == "per_file_ignores":
        if isinstance(value, dict) and all(_is_texts(v) for v in value.values()):
            return {k: tuple(v) for k, v in value.items()}
        raise SettingsError(f"{source}: {key} is a table of path patterns, each with a list of codes")
    if name in ("unsafe_fixes", "bot", "launched", "check_copies"):
        if isinstance(value, bool):
            return value
        raise SettingsError(f"{source}: {key} is true or false")
    if not isinstance(value, str):
        raise SettingsError(f"{source}: {key} is a text")
    if name == "fail_on" and value not in FAIL_ON:
        raise SettingsError(f"{source}: {key} is one of {', '.join(FAIL_ON)}")
    if name == "target_lightning" and not re.fullmatch(r"(\d+(\.\d+)*)?", value):
        raise SettingsError(f'{source}: {key} is a version, like "2"')
    return value


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) for v in value)


def _rewrites(key: str, value: object, source: str) -> Mapping[str, Mapping[str, str]]:
    """The tables of renames. Raises SettingsError for a table that is none of the five, or a name that is no name."""
    from codemods.analysis.mention_places import KINDS

    if not isinstance(value, dict):
        raise SettingsError(f"{source}: {key} is a table of tables: {', '.join(KINDS)}")
    for kind, table in value.items():
        if kind not in KINDS:
            near = _near(kind, KINDS)
            hint = f"did you mean {near[0]!r}?" if near else f"the tables are {', '.join(KINDS)}"
            raise SettingsError(f"{source}: unknown table {kind!r} in {key}; {hint}")
        if not isinstance(table, dict):
            raise SettingsError(f"{source}: {key}.{kind} is a table of old names and new ones")
        for old, new in table.items():
            if not isinstance(new, str) or not all(map(_is_name, str(old).split("."))):
                raise SettingsError(f"{source}: {key}.{kind}: {old!r} and what it becomes are names, dotted where they need be")
            if not all(map(_is_name, new.split("."))) or ("." in new and kind != "modules"):
                raise SettingsError(f"{source}: {key}.{kind}: {old!r} cannot become {new!r}: give the new name alone")
    return value


def _is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)
