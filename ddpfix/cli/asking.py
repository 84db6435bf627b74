"""The projects that a command line names, each with the settings that hold for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

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
    launched: bool = False,
    config: Path | None = None,
    isolated: bool = False,
    force_exclude: bool = False,
    stdin_as: Path | None = None,
    plugins: bool = False,
    format_command: bool = False,
) -> list[tuple[Tree, Settings]]:
    """The projects the paths lie in, each with its settings; the command line wins.

    launched: all programs count as started on several processes.
    config: the file to take the settings from instead of the project's; isolated: none. force_exclude: a file that is named
    is left out, too, where it is excluded. stdin_as: the one file asked about, whose text comes from elsewhere.
    plugins, format_command: those that a settings file names may run, also where the user has recorded no trust in them.
    """
    if config and isolated:
        raise CommandError("--config and --isolated exclude each other", todo="Give one of them.")
    if config and not config.is_file():
        raise CommandError(f"{config} is no file", todo="Give a settings file to --config.")
    for path in [] if stdin_as else paths or ():
        if not path.exists():
            raise CommandError(f"{path} does not exist", todo="Give a file or a folder.")
    from ddpfix import api

    found = api.projects(
        list(paths or ()),
        select=words(select),
        ignore=words(ignore),
        extend_select=words(extend),
        unsafe_fixes=unsafe,
        launched=launched,
        exclude=words(exclude),
        force_exclude=force_exclude,
        config=config,
        isolated=isolated,
        allow_plugins=plugins,
        allow_format_command=format_command,
        stdin_as=stdin_as,
    )
    return [(project.tree, project.settings) for project in found]


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
    from ddpfix import api

    seen = api.with_evidence([api.Project(tree, settings) for tree, settings in projects], logs or (), files or ())
    return [(project.tree, project.settings) for project in seen]
