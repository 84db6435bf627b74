"""What programs call, the command line and the bot among them: check, fix and apply, without a word printed."""

from __future__ import annotations

import io
import os
import shlex
import tokenize
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from codemods.runtime.record import field, record, replace
from ddpfix import discovery, engine, plugins, settings, trust
from ddpfix.discovery import Tree
from ddpfix.results import Fixed, Report
from ddpfix.settings import Settings

if TYPE_CHECKING:
    from codemods.api.codemod import DdpCodemod
    from codemods.api.findings import Finding
    from codemods.engine.fix_source import Accept
    from ddpfix.judging import Progress
    from ddpfix.run import Applied, Options

Read = Callable[[str], bytes | None]
Place = str | os.PathLike[str]


class Asking(TypedDict, total=False):
    """What may be asked of a check: the options of `ddpfix check` under their own names.

    select, ignore, extend_select: codes, prefixes, names, topics. unsafe_fixes: fixes that rest on an assumption, too. launched:
    all programs count as started on several processes. exclude: globs of paths; force_exclude: also for a file that is named.
    config: the settings file to read; isolated: read none. logs, evidence: what runs of this code printed, and what `ddpfix
    probe` wrote. allow_plugins, allow_format_command: programs that the repository names may run.
    """

    select: Sequence[str]
    ignore: Sequence[str]
    extend_select: Sequence[str]
    unsafe_fixes: bool
    launched: bool
    exclude: Sequence[str]
    force_exclude: bool
    config: Place | None
    isolated: bool
    logs: Sequence[Place]
    evidence: Sequence[Place]
    allow_plugins: bool
    allow_format_command: bool


@record
class Project:
    """One project: its files, and the settings that hold for it.

    codemods: those to run, where they are not the ones that the settings select. read: gives the bytes of a file where they are
    not those on the disk.
    """

    tree: Tree
    settings: Settings
    codemods: Sequence[DdpCodemod] | None = None
    read: Read | None = None

    @property
    def root(self) -> Path:
        return self.tree.root

    def check(
        self, *, changed_since: str = "", use_cache: bool = True, progress: Progress | None = None, ending: bool = False
    ) -> Report:
        """What is wrong; with `changed_since` in what changed since that commit. Raises GitRefusal, UnknownSelector.

        progress: called with the number of files done and of all. ending: the process ends with this.
        """
        from ddpfix import checking

        return checking.report(
            *(self.tree, self.settings, self.codemods, self.read),
            changed_since=changed_since, use_cache=use_cache, progress=progress, ending=ending,
        )  # fmt: skip

    def fix(self, accept: Accept | None = None, *, progress: Progress | None = None) -> Fixed:
        """The project with its fixes, in memory. accept: which of them to make; else safe ones, and unsafe ones where the
        settings say so. Raises UnknownSelector."""
        from codemods.engine.fix_source import safe, with_unsafe

        acceptable = accept or (with_unsafe if self.settings.unsafe_fixes else safe)
        tree, codemods = self._acting()
        return engine.fix(tree, self.settings, codemods, acceptable, read=self.read, progress=progress)

    def apply(self, options: Options, *, command: str, progress: Progress | None = None) -> Applied:
        """Fix, and deliver as `options` say. command: what the summary names. Raises GitRefusal, FormatFailed, NotInGit,
        UnknownSelector; nothing is written then."""
        from ddpfix import run

        tree, codemods = self._acting()
        return run.apply(tree, self.settings, codemods, options, command=command, progress=progress)

    def _acting(self) -> tuple[Tree, Sequence[DdpCodemod]]:
        if self.codemods is not None:
            return self.tree, self.codemods
        return plugins.with_codemods(self.tree, self.settings)


@record
class FixedSource:
    """A source with its fixes. files: other files that a fix changed. left: what was found and not fixed. withdrawn: fixes
    that could not be made, each with the reason."""

    source: str
    fixed: tuple[Finding, ...] = ()
    left: tuple[Finding, ...] = ()
    withdrawn: tuple[tuple[Finding, str], ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)


def check(paths: Place | Iterable[Place] = ".", **asking: Unpack[Asking]) -> list[Report]:
    """What is wrong in files and folders: a report for each project that they lie in. `Asking` says the options.

    Raises NoSuchPath, SettingsError, UnknownSelector, UnreadableLog.
    """
    return [project.check() for project in projects(paths, **asking)]


def fix(
    source: str,
    *,
    path: str = "module.py",
    files: Mapping[str, str] | None = None,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    extend_select: Sequence[str] = (),
    unsafe_fixes: bool = False,
) -> FixedSource:
    """A source with its fixes. Nothing is read from the disk, no settings either.

    path: how the file is called, whose ending says what it is. files: other files of its project, which decide over many fixes:
    that a script is started on several processes often stands elsewhere. Raises ValueError for a source that cannot be read,
    UnknownSelector.
    """
    data = {name: encoded(name, text) for name, text in {**(files or {}), path: source}.items()}
    chosen = Settings(select=tuple(select), ignore=tuple(ignore), extend_select=tuple(extend_select), unsafe_fixes=unsafe_fixes)
    tree = Tree(Path(), tuple(sorted(data)), (path,))
    fixed = Project(tree, chosen, read=data.get).fix()
    for failure in fixed.report.unread:
        if failure.path == path:
            raise ValueError(f"{path}: {failure.error}")
    texts = {name: _text(name, new) for name, new in fixed.after.items()}
    new = texts.pop(path, source)
    return FixedSource(new, fixed.fixed, fixed.left, fixed.withdrawn, texts)


def apply(
    path: Place = ".",
    *,
    branch: str = "",
    switch: bool = True,
    summary: bool = True,
    in_place: bool = False,
    include_dirty: bool = False,
    run_hooks: bool = False,
    format_command: str = "",
    **asking: Unpack[Asking],
) -> Applied:
    """Fix a repository and commit the fixes on a branch, as `ddpfix apply` does; `Asking` says the other options.

    branch: its name. switch: check it out at the end. summary: commit the summary, too. in_place: write the files, commit
    nothing. include_dirty: also files with uncommitted changes, in place. run_hooks: run the repository's commit hooks.
    format_command: run this on the changed files. What was fixed and committed is in the result (`fixed`, `committed`). Raises
    GitRefusal, FormatFailed, NotInGit and what `check` raises; nothing is written then.
    """
    from ddpfix.run import Options

    (project,) = projects(path, **asking)
    options = Options(
        unsafe=project.settings.unsafe_fixes,
        branch=branch or project.settings.branch,
        switch=switch,
        summary=summary,
        in_place=in_place or include_dirty,
        include_dirty=include_dirty,
        run_hooks=run_hooks,
        format_command=format_command or project.settings.formatter,
    )
    return project.apply(options, command=_command(project.settings, options, asking))


def projects(
    paths: Place | Iterable[Place] = ".",
    *,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    extend_select: Sequence[str] = (),
    unsafe_fixes: bool = False,
    launched: bool = False,
    exclude: Sequence[str] = (),
    force_exclude: bool = False,
    config: Place | None = None,
    isolated: bool = False,
    logs: Sequence[Place] = (),
    evidence: Sequence[Place] = (),
    allow_plugins: bool = False,
    allow_format_command: bool = False,
    stdin_as: Place | None = None,
) -> list[Project]:
    """The projects that files and folders lie in, each with its settings; what is said here wins over them.

    stdin_as: the one file asked about, whose text comes from elsewhere. Raises as `check`, and ValueError for `config` with
    `isolated`.
    """
    if config is not None and isolated:
        raise ValueError("config and isolated exclude each other")
    given = [Path(stdin_as)] if stdin_as is not None else _paths(paths)
    if gone := next((p for p in given if stdin_as is None and not p.exists()), None):
        raise discovery.NoSuchPath(f"{gone} does not exist")
    found = []
    for root in dict.fromkeys(discovery.find_root(p) for p in given):
        stored = Settings() if isolated else settings.read(Path(config)) if config is not None else settings.load(root)
        trusted = trust.allowed(stored, root)
        chosen = replace(
            stored,
            select=tuple(select) or stored.select,
            ignore=(*stored.ignore, *ignore),
            extend_select=(*stored.extend_select, *extend_select),
            unsafe_fixes=unsafe_fixes or stored.unsafe_fixes,
            launched=launched or stored.launched,
            exclude=(*stored.exclude, *exclude),
            allow_plugins=allow_plugins or trusted[0],
            allow_format_command=allow_format_command or trusted[1],
        )
        inside = [p for p in given if discovery.find_root(p) == root]
        if stdin_as is not None:
            tree = discovery.with_file(
                given[0], chosen.exclude, force_exclude=force_exclude, copies=chosen.check_copies
            )
            found.append(Project(tree, chosen))
        else:
            trees = discovery.discover(inside, chosen.exclude, force_exclude=force_exclude, copies=chosen.check_copies)
            found += [Project(tree, chosen) for tree in trees]
    return with_evidence(found, logs, evidence)


def with_evidence(found: Sequence[Project], logs: Sequence[Place], evidence: Sequence[Place]) -> list[Project]:
    """The projects, each with what logs and probes saw of its runs. Raises UnreadableLog."""
    if not (logs or evidence):
        return list(found)
    from ddpfix.diagnosis import command

    def seen(project: Project) -> Tree:
        rows = command.observed([Path(p) for p in logs], [Path(p) for p in evidence], project.tree)
        return replace(project.tree, observed=rows)

    return [replace(project, tree=seen(project)) for project in found]


def _paths(paths: Place | Iterable[Place]) -> list[Path]:
    if isinstance(paths, (str, os.PathLike)):
        return [Path(paths)]
    return [Path(p) for p in paths] or [Path()]


def encoded(path: str, text: str) -> bytes:
    """The bytes of a file with that text. Raises ValueError where they cannot be what the file says of itself."""
    return text.encode(_encoding(path, text.encode("utf-8", "surrogatepass")))


def _text(path: str, data: bytes) -> str:
    return data.decode(_encoding(path, data))


def _encoding(path: str, data: bytes) -> str:
    """The encoding that a Python source names; a mark at its beginning stays a letter of the text."""
    if not path.endswith(".py"):
        return "utf-8"
    try:
        return tokenize.detect_encoding(io.BytesIO(data).readline)[0].replace("utf-8-sig", "utf-8")
    except SyntaxError as error:
        raise ValueError(f"{path}: {error}") from None


def _command(stored: Settings, options: Options, asking: Asking) -> str:
    """The command line that does the same, for the summary; no path of this machine in it."""
    words = ["ddpfix", "apply", *(["--unsafe-fixes"] if options.unsafe else [])]
    for name in ("select", "ignore", "extend_select", "exclude"):
        if values := asking.get(name):
            words += [f"--{name.replace('_', '-')}", ",".join(values)]  # type: ignore[arg-type]
    for name in ("logs", "evidence"):
        for path in asking.get(name) or ():  # type: ignore[attr-defined]
            words += [f"--{name.removesuffix('s')}", Path(path).name]
    words += [f"--{name}" for name, said in (("in-place", options.in_place), ("run-hooks", options.run_hooks)) if said]
    words += ["--branch", options.branch] if options.branch != stored.branch else []
    return shlex.join(words)
