"""The projects that a command line names, each with the settings that hold for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from codemods.record import replace
from ddpfix.cli.ends import CommandError

if TYPE_CHECKING:
    from ddpfix.discovery import Tree
    from ddpfix.settings import Settings


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
    format_command: bool = False,
) -> list[tuple[Tree, Settings]]:
    """The projects the paths lie in, each with its settings; the command line wins.

    config: the file to take the settings from instead of the project's; isolated: none. force_exclude: a file that is named
    is left out, too, where it is excluded. stdin_as: the one file asked about, whose text comes from elsewhere.
    plugins, format_command: those that a settings file names may run, also where the user has recorded no trust in them.
    """
    from ddpfix import discovery, settings, trust

    if config and isolated:
        raise CommandError("--config and --isolated exclude each other", todo="Give one of them.")
    if config and not config.is_file():
        raise CommandError(f"{config} is no file", todo="Give a settings file to --config.")

    out = []
    given = [stdin_as] if stdin_as else list(paths or [Path()])
    for path in given:
        if not path.exists() and not stdin_as:
            raise CommandError(f"{path} does not exist", todo="Give a file or a folder.")
    for root in dict.fromkeys(discovery.find_root(p) for p in given):
        stored = settings.Settings() if isolated else settings.read(config) if config else settings.load(root)
        trusted = trust.allowed(stored, root)
        chosen = replace(
            stored,
            select=words(select) or stored.select,
            ignore=(*stored.ignore, *words(ignore)),
            extend_select=(*stored.extend_select, *words(extend)),
            unsafe_fixes=unsafe or stored.unsafe_fixes,
            exclude=(*stored.exclude, *words(exclude)),
            allow_plugins=plugins or trusted[0],
            allow_format_command=format_command or trusted[1],
        )
        inside = [p for p in given if discovery.find_root(p) == root]
        if stdin_as:
            return [(discovery.with_file(stdin_as, chosen.exclude, force_exclude=force_exclude), chosen)]
        out += [(tree, chosen) for tree in discovery.discover(inside, chosen.exclude, force_exclude=force_exclude)]
    return out


def formatter(settings: Settings, given: str = "") -> str:
    """The command to format with: the user's own, else that of the settings where it may run; what may not is told."""
    from ddpfix.cli.showing import note

    named = settings.format_command
    if named and not (given or settings.allow_format_command):
        how = "--allow-format-command lets it run once, `ddpfix trust` from now on"
        note(f"not run: format-command {named!r}, a program that the repository names; {how}")
    return given or settings.formatter


def with_evidence(
    projects: Sequence[tuple[Tree, Settings]], logs: Sequence[Path] | None, files: Sequence[Path] | None
) -> list[tuple[Tree, Settings]]:
    """The projects, each with what logs and probes saw of its runs."""
    if not (logs or files):
        return list(projects)
    from ddpfix.diagnosis import command

    return [(replace(tree, observed=command.observed(logs or (), files or (), tree)), settings) for tree, settings in projects]
