"""What several commands are asked in the same words, and the projects that a command line names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ddpfix.discovery import Tree
    from ddpfix.settings import Settings

Words = list[str] | None
Paths = Annotated[list[Path] | None, typer.Argument(help="Files or folders; the current folder if none is given.")]
Select = Annotated[Words, typer.Option("--select", help="Only these codes (or prefixes), names or topics.")]
Ignore = Annotated[Words, typer.Option("--ignore", help="Leave these codes, names or topics out.")]
Extend = Annotated[Words, typer.Option("--extend-select", help="These codes, names or topics too.")]
Unsafe = Annotated[bool, typer.Option("--unsafe-fixes/--no-unsafe-fixes", help="Fixes that rest on an assumption, too.")]
Exclude = Annotated[Words, typer.Option("--exclude", help="Paths (globs) to leave alone.")]
Config = Annotated[Path | None, typer.Option("--config", help="Take the settings from this file.", show_default=False)]
Isolated = Annotated[bool, typer.Option("--isolated", help="Heed no settings file.")]
Force = Annotated[bool, typer.Option("--force-exclude", help="Leave out what is excluded even where it is named.")]
Plugins = Annotated[bool, typer.Option("--allow-plugins", help="Run the plug-ins that the repository's own settings name.")]
Logs = Annotated[list[Path] | None, typer.Option("--log", help="What a run of this code printed, as evidence.")]
Seen = Annotated[list[Path] | None, typer.Option("--evidence", help="What `ddpfix probe` wrote, as evidence.")]

Decided = Annotated[Path | None, typer.Option("--decisions", help="Only what `ddpfix review` accepted in this file.")]
AllowStale = Annotated[bool, typer.Option("--allow-stale", help="What still stands of decisions on another commit.")]
WriteSuppressions = Annotated[bool, typer.Option("--write-suppressions", help="A comment where a finding was rejected.")]


class Trouble(Exception):
    """Something the user can mend: what, why, what to do, a line each."""

    def __init__(self, what: str, why: str = "", todo: str = "") -> None:
        super().__init__(": ".join(p for p in (what, why) if p) + (f". {todo}" if todo else ""))


def words(values: Sequence[str] | None) -> tuple[str, ...]:
    """`--select A,B --select C` -> A, B, C."""
    return tuple(w.strip() for value in values or () for w in value.split(",") if w.strip())


def asked(
    paths: Sequence[Path] | None,
    select: Sequence[str] | None,
    ignore: Sequence[str] | None,
    extend: Sequence[str] | None,
    unsafe: bool,
    exclude: Sequence[str] | None,
    *,
    config: Path | None = None,
    isolated: bool = False,
    force_exclude: bool = False,
    stdin_as: Path | None = None,
    plugins: bool = False,
) -> list[tuple[Tree, Settings]]:
    """The projects the paths lie in, each with its settings; the command line wins.

    config: the file to take the settings from instead of the project's; isolated: none. force_exclude: a file that is named
    is left out, too, where it is excluded. stdin_as: the one file asked about, whose text comes from elsewhere.
    plugins: those that a settings file names may run.
    """
    from ddpfix import discovery, settings

    if config and isolated:
        raise Trouble("--config and --isolated exclude each other", todo="Give one of them.")
    if config and not config.is_file():
        raise Trouble(f"{config} is no file", todo="Give a settings file to --config.")

    out = []
    given = [stdin_as] if stdin_as else list(paths or [Path()])
    for path in given:
        if not path.exists() and not stdin_as:
            raise Trouble(f"{path} does not exist", todo="Give a file or a folder.")
    for root in dict.fromkeys(discovery.find_root(p) for p in given):
        stored = settings.Settings() if isolated else settings.read(config) if config else settings.load(root)
        chosen = replace(
            stored,
            select=words(select) or stored.select,
            ignore=(*stored.ignore, *words(ignore)),
            extend_select=(*stored.extend_select, *words(extend)),
            unsafe_fixes=unsafe or stored.unsafe_fixes,
            exclude=(*stored.exclude, *words(exclude)),
            allow_plugins=plugins,
        )
        inside = [p for p in given if discovery.find_root(p) == root]
        if stdin_as:
            return [(discovery.with_file(stdin_as, chosen.exclude, force_exclude=force_exclude), chosen)]
        out += [(tree, chosen) for tree in discovery.discover(inside, chosen.exclude, force_exclude=force_exclude)]
    return out


def with_evidence(
    projects: Sequence[tuple[Tree, Settings]], logs: Sequence[Path] | None, files: Sequence[Path] | None
) -> list[tuple[Tree, Settings]]:
    """The projects, each with what logs and probes saw of its runs."""
    if not (logs or files):
        return list(projects)
    from ddpfix.diagnosis import command

    return [(replace(tree, observed=command.observed(logs or (), files or (), tree)), settings) for tree, settings in projects]
