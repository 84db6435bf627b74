"""Apply to a repository: the one path that the command line, the bot and the fleet share.

Facts come from the work tree, what is committed comes from HEAD: the edits are made on the committed bytes of the files that
change, so the commit holds nothing of the user's own uncommitted work.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from codemods.codemod import DdpCodemod
from codemods.fix_source import Accept, safe, with_unsafe
from codemods.text_file import TEXT_KINDS
from ddpfix import __version__, engine, summary
from ddpfix.decided import Decided, decided, without_decided
from ddpfix.decisions import Decisions
from ddpfix.discovery import Tree, find_root
from ddpfix.formatting import formatted
from ddpfix.results import Fixed
from ddpfix.settings import Settings
from ddpfix.silence import with_comments

if TYPE_CHECKING:
    from ddpfix import git
    from ddpfix.git import Committed, Snapshot
    from ddpfix.summary import ShownProof, TuningTable

SUMMARY = "DDPFIX_SUMMARY.md"
Read = Callable[[str], bytes | None]


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
    tree: Tree, settings: Settings, codemods: Sequence[DdpCodemod], options: Options, *, base: str = "", read: Read | None = None
) -> Made:
    """What `options` make of a project, in memory: the one answer of `diff` and of `apply`.

    base: the commit that HEAD stands on. Raises GitRefusal for stale decisions.
    """
    fixed = engine.fix(tree, settings, codemods, acceptance(options), read=read)
    if options.decisions is None:
        return Made(fixed, fixed, fixed)
    made = decided(fixed, options.decisions, base)
    refuse_stale(made, options)
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
    progress: engine.Progress | None = None,
) -> Applied:
    """Fix a repository and deliver as `options` say. Raises GitRefusal or FormatFailed; nothing is written then."""
    del progress
    refuse_bare(tree.root)
    if tree.is_git and not options.in_place:
        return _commit(tree, settings, codemods, options, command)
    return _in_place(tree, settings, codemods, options, command)


# On a branch


def _commit(tree: Tree, settings: Settings, codemods: Sequence[DdpCodemod], options: Options, command: str) -> Applied:
    from ddpfix import git

    state = git.snapshot(tree.root)
    made = make(tree, settings, codemods, options, base=state.base)
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
        launches=summary.launches(tree.files, engine.disk_reader(tree.root)),
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
        git.switch_to(tree.root, options.branch, run_id=committed.run_id)
    context = replace(context, commits=committed.commits, identity_note=committed.identity_note)
    return Applied(made.shown, committed, summary.closing_screen(made.shown, context))


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


def refuse_bare(root: Path) -> None:
    """Raises GitRefusal for the folder of a bare repository: it has no files to work on."""
    from ddpfix.git import GitRefusal

    if not (root / ".git").exists() and (root / "HEAD").is_file() and (root / "objects").is_dir():
        raise GitRefusal(f"{root.name} is a bare repository", "it has no files to work on", "use a clone of it")


def refuse_other_proof(proof: ShownProof | None, base: str, fixed: Fixed) -> None:
    """Raises GitRefusal for a proof that was made of another commit or of other fixes than these."""
    from ddpfix.git import GitRefusal

    if proof is None:
        return
    again = "run `ddpfix prove` again, with the same --select and --unsafe-fixes as here"
    if proof.base != base:
        ran_on = proof.base[:12] or "no commit"
        raise GitRefusal("the proof is of another commit", f"it ran on {ran_on}, HEAD is {base[:12]}", again)
    if proof.digest != summary.digest(fixed.after):
        raise GitRefusal("the proof is of other fixes", "what it ran is not what would be committed", again)


def refuse_stale(made: Decided, options: Options) -> None:
    """Raises GitRefusal where decisions were made on another commit and something that was accepted there is found no more."""
    from ddpfix.git import GitRefusal

    if not made.decided_on or not made.gone_accepted or options.allow_stale:
        return
    all_of_it = made.gone_accepted + len(made.accepted) + len(made.without_fix)
    raise GitRefusal(
        "the decisions are stale",
        f"they were made on {made.decided_on[:12]}, HEAD is {made.base[:12]}, and {made.gone_accepted} of {all_of_it} accepted "
        f"findings are not there any more ({', '.join(made.gone[:3])})",
        "look again with `ddpfix review`, which keeps what still stands, or take that alone with --allow-stale",
    )


def refuse_uncommitted(state: Snapshot, touched: Sequence[str], *, tracked_only: bool = False) -> None:
    """Raises GitRefusal, naming them, where files to be changed differ from HEAD."""
    from ddpfix import git

    changed = [p for p in touched if p in state.dirty]
    new = [] if tracked_only else [p for p in touched if p not in state.committed and p not in state.dirty]
    ways = "Commit or stash them; or use --no-switch (fix what is committed, on the branch) or --include-dirty (fix in place)."
    if changed:
        raise git.GitRefusal("uncommitted changes in files that would be fixed", ", ".join(changed[:8]), ways)
    if new:
        raise git.GitRefusal("files that would be fixed are not in the last commit", ", ".join(new[:8]), ways)


def committed_reader(state: Snapshot, root: Path, paths: Sequence[str]) -> Read:
    """Bytes of a file as HEAD has them for the files that change or are uncommitted; of all others from the work tree."""
    from ddpfix import git

    disk = engine.disk_reader(root)
    wanted = [p for p in {*paths, *state.dirty} if p in state.committed]
    blobs = git.read_blobs(root, [state.committed[p].sha for p in wanted])
    kept: dict[str, bytes | None] = {p: blobs[state.committed[p].sha] for p in wanted}
    kept.update({p: None for p in (*paths, *state.dirty) if p not in state.committed})
    return lambda path: kept[path] if path in kept else disk(path)


def notes(state: Snapshot, touched: Sequence[str]) -> tuple[str, ...]:
    """What the reader of the summary should know of the repository's state."""
    out = []
    kinds = (".py", ".toml", ".txt", ".cfg", *TEXT_KINDS)
    if dirty := sorted(p for p in state.dirty if p.endswith(kinds) and p not in touched):
        out.append(f"uncommitted changes were read as facts, and are in no commit: {', '.join(dirty[:5])}")
    if links := [p for p in state.symlinks if p.endswith(".py")]:
        out.append(f"left alone, symbolic links: {', '.join(links[:5])}")
    if state.submodules:
        out.append(f"left alone, submodules: {', '.join(state.submodules[:5])}")
    return tuple(out)


def steps(
    tree: Tree, settings: Settings, codemods: Sequence[DdpCodemod], accept: Accept, fixed: Fixed, read: Read
) -> list[Step]:
    """The change cut into one step a codemod, in the order of their codes; the last step ends at `fixed.after`.

    Each step is what the codemods up to it make of the original, so every commit stands on its own: imports that two of
    them share come in with the first.
    """
    used = {f.code for f in fixed.fixed}
    acting = [c for c in codemods if c.code in used]
    touched = tuple(sorted(fixed.after))
    narrow = replace(tree, chosen=touched)
    out: list[Step] = []
    for i, codemod in enumerate(acting):
        if i == len(acting) - 1:
            out.append(Step(codemod, fixed.after))
            continue
        now = engine.fix(narrow, settings, acting[: i + 1], accept, read=read)
        out.append(Step(codemod, {**{p: fixed.before[p] for p in touched}, **now.after}))
    return out


def as_commits(made: Sequence[Step], fixed: Fixed) -> list[git.Step]:
    """The steps with their messages; a trailer names the codemod."""
    from ddpfix import git

    out = []
    for step in made:
        code = step.codemod.code
        message = summary.commit_message(step.codemod, tuple(f for f in fixed.fixed if f.code == code))
        out.append(git.Step(f"{message}\nddpfix-rules: {code}", step.files))
    return out


# In place


def _in_place(tree: Tree, settings: Settings, codemods: Sequence[DdpCodemod], options: Options, command: str) -> Applied:
    from ddpfix import git

    made = make(tree, settings, codemods, options, base=head_of(tree.root) if options.decisions else "")
    context = replace(described(command), decided=made.decided)
    files = made.whole.after
    if not files:
        return Applied(made.shown, None, summary.closing_screen(made.shown, context))
    if tree.is_git and not options.include_dirty:
        state = _snapshot_if_born(tree.root)
        if state is not None:
            refuse_uncommitted(state, sorted(files), tracked_only=True)
    if options.format_command:
        files = formatted(tree.root, options.format_command, files)
    git.write_in_place(tree.root, files, run_id=secrets.token_hex(8), state_dir=state_folder(tree.root))
    return Applied(made.shown, None, summary.closing_screen(replace(made.shown, after=files), context))


def head_of(root: Path) -> str:
    """The id of the commit a repository stands on; "" outside git and before the first commit."""
    from ddpfix import git

    return git.head(root) if (root / ".git").exists() else ""


def _snapshot_if_born(root: Path) -> Snapshot | None:
    """The state of a repository, None where it has no commit yet and so nothing uncommitted to mix with."""
    from ddpfix import git

    try:
        return git.snapshot(root)
    except git.GitRefusal:
        return None


def state_folder(root: Path) -> Path:
    """Where originals are kept for `undo`: inside .git, or in the user's state folder where there is none."""
    from ddpfix import git

    if (root / ".git").exists():
        return git.journal_folder(root)
    base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return base / "ddpfix" / hashlib.sha256(os.fsencode(root)).hexdigest()[:16]


def undo(path: Path) -> str:
    """Take back the last apply of the repository that holds `path`; what was done, in a few lines. Raises GitRefusal."""
    from ddpfix import git
    from ddpfix.git.journal import InPlaceRun, runs

    root = find_root(path)
    journal = runs(state_folder(root))
    if journal and isinstance(journal[-1], InPlaceRun):
        done = git.undo_in_place(root, state_folder(root))
        return f"{len(done.files)} files are as they were.\n"
    if not (root / ".git").exists():
        raise git.GitRefusal("nothing to undo", f"no apply is recorded for {root}", "run this where apply was run")
    back = git.undo(root)
    lines = [f"The branch {back.branch} was gone already." if back.already_gone else f"The branch {back.branch} is taken back."]
    if back.restored:
        lines.append(f"It stands again where it stood before the last run ({back.restored[:10]}).")
    if back.back_to:
        lines.append(f"You are on {back.back_to.removeprefix('refs/heads/')} again.")
    if back.merged:
        lines.append("Its commits are merged elsewhere: the fixes are still in force there.")
    return "\n".join(lines) + "\n"


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
