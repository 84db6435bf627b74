"""docs/cli.md: every command and option, as the parser of the command line knows them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, get_type_hints

import typer

from ddpfix.cli import program  # noqa: F401  (it registers the commands)
from ddpfix.cli.app import app
from ddpfix.summary.markdown import code, table

HEAD = """\
# Command line

Every command and every option, made from the program's own parser. `ddpfix COMMAND --help` prints the same.

An option that may be given several times is marked with …; `--flag / --no-flag` switches on and off.
"""
STATUS = """\
## Exit statuses

| command | exit 0 | exit 1 | exit 2 |
| --- | --- | --- | --- |
| `check` | nothing to fix | findings that can be fixed (`--fail-on display\\|unsafe\\|safe`) | an error |
| `diff` | no change | there is a patch | an error |
| `apply`, `undo` | did its work, or had none | | an error |
| `review` | stopped, or all gone through | | an error, or no terminal |
| `diagnose` | a cause is named, or nothing failed | failed, and no known message says why | an error |
| `probe` | evidence is written | the program's own status where it fails | an error, or nothing was seen |
| `prove` | right after the fixes | something is wrong | an error, or it cannot run on the CPU |
"""


def page() -> str:
    root: Any = typer.main.get_command(app)
    out = [HEAD, *_section(root, "ddpfix", 2, common=True), STATUS]
    for words, command in _commands(root, "ddpfix"):
        out += _section(command, words, 2)
    return "\n".join(out).rstrip() + "\n"


def _commands(group: Any, words: str) -> Iterator[tuple[str, Any]]:
    """The commands in the order of `--help`, those of a group behind it."""
    for name in group.list_commands(None):
        command = group.commands[name]
        if command.hidden:
            continue
        yield f"{words} {name}", command
        if hasattr(command, "commands"):
            yield from _commands(command, f"{words} {name}")


def _section(command: Any, words: str, depth: int, *, common: bool = False) -> list[str]:
    parameters = [p for p in command.params if not getattr(p, "hidden", False)]
    arguments = [p for p in parameters if p.param_type_name == "argument"]
    options = [p for p in parameters if p.param_type_name == "option"]
    usage = " ".join([words, *(["[OPTIONS]"] if options else []), *map(_argument, arguments)])
    out = [f"{'#' * depth} {words}", "", "" if common else command.help or "", "", f"`{usage}`", ""]
    rows = [(code(_argument(p)), p.help or "", "") for p in arguments]
    kinds = get_type_hints(inspect.unwrap(command.callback)) if command.callback else {}
    rows += [(code(_names(p, kinds.get(p.name))), p.help or "", _default(p)) for p in options]
    return [*out, *table(("option", "what it does", "default"), rows), ""] if rows else out


def _argument(argument: Any) -> str:
    name = argument.name.upper() + ("…" if argument.nargs != 1 else "")
    return name if argument.required else f"[{name}]"


def _names(option: Any, kind: Any) -> str:
    """The names, and what follows them, by the type of the function's argument: typer's own word for it changes with typer."""
    names = ", ".join(option.opts)
    if option.is_flag:
        return f"{names} / {', '.join(option.secondary_opts)}" if option.secondary_opts else names
    said = str(kind)
    value = "PATH" if "Path" in said else "NUMBER" if "int" in said or "float" in said else "TEXT"
    return f"{names} {value}{'…' if option.multiple else ''}"


def _default(option: Any) -> str:
    value = option.default
    return "" if value in (None, "", False, ()) or callable(value) else code(str(value))
