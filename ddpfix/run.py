"""Apply to a repository: the one path that the command line, the bot and the fleet share.

Facts come from the work tree, what is committed comes from HEAD: the edits are made on the committed bytes of the files that
change, so the commit holds nothing of the user's own uncommitted work.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from codemods.api.codemod import DdpCodemod
from codemods.engine.fix_source import Accept, safe, with_unsafe
from ddpfix import __version__, engine, summary
from ddpfix.decided import Decided, decided, without_decided
from ddpfix.decisions import Decisions
from ddpfix.discovery import SUMMARY, Tree
from ddpfix.formatting import formatted
from ddpfix.judging import Progress
from ddpfix.repository_state import (
    NotInGit,
    Read,
    committed_reader,
    head_of,
    notes,
    place_of,
    refuse_bare,
    refuse_other_proof,
    refuse_stale,
    refuse_uncommitted,
    snapshot_if_born,
    state_folder,
)
from ddpfix.results import Fixed
from ddpfix.settings import Settings
from ddpfix.silence import with_comments

if TYPE_CHECKING:
    from ddpfix import git
    from ddpfix.git import Committed
    from ddpfix.summary import ShownProof, TuningTable



@dataclass(frozen=True, slots=True)
class Options:
    """How to deliver. branch: its name. switch: check it out at the end. summary: commit the summary document too.

    include_dirty: work on the files as they are in the work tree, uncommitted changes included, and write them in place.
    decisions: what a person decided; only what is accepted there is fixed, whatever its level. allow_stale: even where they were
    made on another commit and not all that was accepted is found here. suppress: put a comment where a finding was rejected.
    added: new files, committed behind the fixes. tuning: the table of configurations for the summary.
    """

    unsafe: bool = False
    branch: str = "ddpfix/fixes"
    switch: bool = True
    summary: bool = True
    in_place: bool = False
    include_dirty: bool = False
    run_hooks: bool = False
    filters: bool = True
    format_command: str = ""
    proof: ShownProof | None = None
    decisions: Decisions | None = None
    allow_stale: bool = False
    suppress: bool = False
    added: Mapping[str, bytes] = field(default_factory=dict)
    tuning: TuningTable | None = None


@dataclass(frozen=True, slots=True)
class Made:
    """What is made of a project. fixed: the fixes. whole: with the comments at what was rejected. shown: the fixes, for a reader
    who is told of the decisions (`decided`) beside them.
    """

    fixed: Fixed
    whole: Fixed
    shown: Fixed
    decided: Decided | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """The work of one codemod: whole new files."""

    codemod: DdpCodemod
    files: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Applied:
    """What apply came to: what was fixed, where it went (None where nothing was committed), and the closing screen."""

    fixed: Fixed
    committed: Committed | None
    screen: str


def make(
    tree: Tree,
    settings: Settings,
    codemods: Sequence[DdpCodemod],
    options: Options,
    *,
    base: str = "",
    read: Read | None = None,
    progress: Progress | None = None,
) -> Made:
    """What `options` make of a project, in memory: the one answer of `diff` and of `apply`.

    base: the commit that HEAD stands on. Raises GitRefusal for stale decisions.
    """
    fixed = engine.fix(tree, settings, codemods, acceptance(options), read=read, progress=progress)
    if options.decisions is None:
        return Made(fixed, fixed, fixed)
    made = decided(fixed, options.decisions, base)
    refuse_stale(made, allowed=options.allow_stale)
    rejected = {f.id: reason for f, reason in made.rejected}
    whole = with_comments(tree, codemods, fixed, rejected, read=read) if options.suppress else fixed
    return Made(fixed, whole, without_decided(replace(fixed, withdrawn=whole.withdrawn), made), made)


def apply(
    tree: Tree,
    settings: Settings,
    codemods: Sequence[DdpCodemod],
    options: Options,
    *,
    command: str,
    progress: Progress | None = None,
) -> Applied:
    """Fix a repository and deliver as `options` say. Raises GitRefusal or FormatFailed; nothing is written then.

    Raises NotInGit where there is something to write, no repository to commit it in, and `in_place` was not said.
    """
    refuse_bare(tree.root)
    if tree.is_git and not options.in_place:
        return _commit(tree, settings, codemods, options, command, progress)
    return _in_place(tree, settings, codemods, options, command, progress)


# On a branch


def _commit(
    tree: Tree,
    settings: Settings,
    codemods: Sequence[DdpCodemod],
    options: Options,
    command: str,
    progress: Progress | None,
) -> Applied:
    from ddpfix import git

    state = git.snapshot(tree.root)
    made = make(tree, settings, codemods, options, base=state.base, progress=progress)
    if not made.whole.after and not options.added:
        return Applied(made.shown, None, summary.closing_screen(made.shown, replace(described(command), decided=made.decided)))
    git.check_branch(state, options.branch)
    refuse_other_proof(options.proof, state.base, made.fixed)
    touched = sorted(made.whole.after)
    if options.switch:
        refuse_uncommitted(state, touched)
        git.check_switch(state, [*touched, *options.added, *([SUMMARY] if options.summary else [])])
    read = committed_reader(state, tree.root, touched)
    if any(read(path) != made.whole.before[path] for path in touched):
        made = make(tree, settings, codemods, options, base=state.base, read=read)
    context = replace(
        described(command),
        base=state.base,
        branch=options.branch,
        home=(state.head_ref or "").removeprefix("refs/heads/") or None,
        launches=summary.launches(tree.files, engine.disk_reader(tree.root), made.shown.after),
        launched=summary.launched(tree.files, engine.disk_reader(tree.root)),
        notes=notes(state, touched),
        not_run=summary.NOT_RUN_BESIDES if options.proof else _not_run(options),
        tuning=options.tuning,
        ran=_ran(options),
        proof=options.proof,
        decided=made.decided,
        switched=options.switch,
        summary_commit=options.summary,
    )
    commits = _commits(tree, settings, codemods, options, made, read)
    if options.added:
        commits.append(git.Step(summary.VARIANTS_COMMIT, options.added))
    if options.summary:
        text = summary.render(made.shown, context).encode()
        commits.append(git.Step(summary.SUMMARY_COMMIT, {SUMMARY: text}))
    committed = git.commit_steps(
        state, commits, branch=options.branch, run_id=secrets.token_hex(8), run_hooks=options.run_hooks
    )
    if options.switch and committed.commits:
        _switch(tree.root, committed)
    seen_from = place_of(tree.root)
    context = replace(context, commits=committed.commits, identity_note=committed.identity_note, place=seen_from)
    return Applied(made.shown, committed, summary.closing_screen(made.shown, context))


def _switch(root: Path, committed: Committed) -> None:
    """Check the branch out. Where that fails, a branch that this run made is removed before GitRefusal is raised."""
    from ddpfix import git

    try:
        git.switch_to(root, committed.branch, run_id=committed.run_id)
    except git.GitRefusal as refusal:
        if not committed.kept and not git.cut_short(root):
            git.undo(root, committed.run_id)
        raise refusal


def _commits(
    tree: Tree, settings: Settings, codemods: Sequence[DdpCodemod], options: Options, made: Made, read: Read
) -> list[git.Step]:
    """A commit for each codemod, then one with the comments at what was rejected."""
    from ddpfix import git

    cut = steps(tree, settings, codemods, acceptance(options), made.fixed, read)
    commented = {p: b for p, b in made.whole.after.items() if made.fixed.after.get(p) != b}
    if options.format_command:
        cut = [Step(s.codemod, formatted(tree.root, options.format_command, s.files)) for s in cut]
        commented = formatted(tree.root, options.format_command, commented)
    out = as_commits(cut, made.fixed)
    return [*out, git.Step(summary.SILENCED_COMMIT, commented)] if commented else out


def steps(
    tree: Tree, settings: Settings, codemods: Sequence[DdpCodemod], accept: Accept, fixed: Fixed, read: Read
) -> list[Step]:
    """The change cut into one step a codemod, in the order of their codes as far as each finds its place; the last step
    ends at `fixed.after`.

    Each step is what the codemods up to it make of the original, so every commit stands on its own: imports that two of
    them share come in with the first.
    """
    used = {f.code for f in fixed.fixed}
    acting = [c for c in codemods if c.code in used]
    # a finding may stand in another file than the one that was looked at, which its evidence then names
    seen = {e.path for f in fixed.fixed for e in f.evidence} & set(tree.chosen)
    near = replace(tree, chosen=tuple(sorted({*fixed.after, *seen})))
    for looked in (near, tree):
        out = _steps(looked, settings, acting, accept, fixed, read)
        idle = _without_change(out, fixed)
        if not idle:
            return out
    # what another codemod writes may be what shows them their place
    return _steps(tree, settings, [*(c for c in acting if c not in idle), *idle], accept, fixed, read)


def _steps(
    tree: Tree, settings: Settings, acting: Sequence[DdpCodemod], accept: Accept, fixed: Fixed, read: Read
) -> list[Step]:
    out: list[Step] = []
    for i, codemod in enumerate(acting):
        if i == len(acting) - 1:
            out.append(Step(codemod, fixed.after))
            continue
        now = engine.fix(tree, settings, acting[: i + 1], accept, read=read)
        out.append(Step(codemod, {p: now.after.get(p, fixed.before[p]) for p in fixed.after}))
    return out


def _without_change(made: Sequence[Step], fixed: Fixed) -> list[DdpCodemod]:
    """The codemods whose step leaves every file as the step before it did."""
    states = [fixed.before, *(s.files for s in made)]
    return [s.codemod for s, before in zip(made, states, strict=False) if all(s.files[p] == before[p] for p in s.files)]


def as_commits(made: Sequence[Step], fixed: Fixed) -> list[git.Step]:
    """The steps with their messages; a trailer names the codemod."""
    from ddpfix import git

    out = []
    for step in made:
        code = step.codemod.code
        found = tuple(f for f in fixed.fixed if f.code == code)
        message = summary.commit_message(step.codemod, summary.in_lines_of(found, fixed.before, step.files))
        out.append(git.Step(f"{message}\nddpfix-rules: {code}", step.files))
    return out


# In place


def _in_place(
    tree: Tree,
    settings: Settings,
    codemods: Sequence[DdpCodemod],
    options: Options,
    command: str,
    progress: Progress | None,
) -> Applied:
    from ddpfix import git

    made = make(tree, settings, codemods, options, base=head_of(tree.root) if options.decisions else "", progress=progress)
    context = replace(described(command), decided=made.decided, place=place_of(tree.root))
    files = made.whole.after
    if not files:
        return Applied(made.shown, None, summary.closing_screen(made.shown, context))
    if not options.in_place:
        raise NotInGit(tree.root, len(files))
    if tree.is_git and not options.include_dirty:
        state = snapshot_if_born(tree.root)
        if state is not None:
            refuse_uncommitted(state, sorted(files), tracked_only=True)
    if options.format_command:
        files = formatted(tree.root, options.format_command, files)
    git.write_in_place(tree.root, files, run_id=secrets.token_hex(8), state_dir=state_folder(tree.root))
    return Applied(made.shown, None, summary.closing_screen(replace(made.shown, after=files), context))


# Shared


def acceptance(options: Options) -> Accept:
    if options.decisions is not None:
        return options.decisions.chosen()
    return with_unsafe if options.unsafe else safe


def described(command: str) -> summary.Context:
    """How a run came about: its command and the versions that made it."""
    import platform
    from importlib.metadata import version

    versions = {"ddpfix": __version__, "libcst": version("libcst"), "Python": platform.python_version()}
    return summary.Context(command=command, versions=versions)


def _not_run(options: Options) -> tuple[str, ...]:
    return summary.NOT_RUN if not (options.run_hooks or options.format_command) else summary.NOT_RUN[:2]


def _ran(options: Options) -> tuple[str, ...]:
    """What of the repository's own was run."""
    out = []
    if options.format_command:
        out.append(f"`{options.format_command}` on copies of the changed files, before each commit.")
    if options.run_hooks:
        out.append("The repository's commit hooks, for each commit.")
    return tuple(out)
