"""`ddpfix diff`, `ddpfix apply` and `ddpfix undo`: the patch, its delivery, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from ddpfix.cli.app import app
from ddpfix.cli.asking import asked, formatter, with_evidence
from ddpfix.cli.ends import CLEAN, FINDINGS, CommandError
from ddpfix.cli.options import (
    AllowStale,
    Config,
    Decided,
    Exclude,
    Extend,
    Force,
    Formats,
    Ignore,
    Isolated,
    Launched,
    Logs,
    Paths,
    Plugins,
    Seen,
    Select,
    Unsafe,
    WriteSuppressions,
)
from ddpfix.cli.showing import agreed, clear_progress, command_line, note, progress, show, show_patch

if TYPE_CHECKING:
    from ddpfix.discovery import Tree
    from ddpfix.run import Options
    from ddpfix.settings import Settings
    from ddpfix.summary import ShownProof


@app.command()
def diff(
    paths: Paths = None,
    select: Select = None,
    ignore: Ignore = None,
    extend_select: Extend = None,
    unsafe_fixes: Unsafe = False,
    launched: Launched = False,
    exclude: Exclude = None,
    force_exclude: Force = False,
    config: Config = None,
    isolated: Isolated = False,
    allow_plugins: Plugins = False,
    stat: Annotated[bool, typer.Option("--stat", help="Only count the lines of each file.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="The reason above each hunk.")] = False,
    decisions: Decided = None,
    allow_stale: AllowStale = False,
    write_suppressions: WriteSuppressions = False,
    log: Logs = None,
    evidence: Seen = None,
    color: Annotated[str, typer.Option("--color", help="auto, always or never.")] = "auto",
) -> None:
    """Show what apply would do, as a patch that `git apply` accepts. Exit 1 if there is one."""
    projects = asked(
        *(paths, select, ignore, extend_select, unsafe_fixes, exclude),
        launched=launched,
        config=config,
        isolated=isolated,
        force_exclude=force_exclude,
        plugins=allow_plugins,
    )
    review = by_review(decisions, allow_stale, write_suppressions)
    _diff(with_evidence(projects, log, evidence), review, stat=stat, explain=explain, color=color)


def by_review(decisions: Path | None, allow_stale: bool, write_suppressions: bool) -> Options:
    """What the options of a review come to."""
    from ddpfix import decisions as files
    from ddpfix.run import Options

    if decisions is None and (allow_stale or write_suppressions):
        raise CommandError("--allow-stale and --write-suppressions go with --decisions", todo="Name the decisions file.")
    return Options(decisions=files.read(decisions) if decisions else None, allow_stale=allow_stale, suppress=write_suppressions)


def _diff(projects: Sequence[tuple[Tree, Settings]], review: Options, *, stat: bool, explain: bool, color: str) -> NoReturn:
    from ddpfix import patches, plugins, repository_state, run

    out: list[bytes] = []
    for tree, settings in projects:
        options = replace(review, unsafe=settings.unsafe_fixes)
        base = repository_state.head_of(tree.root) if options.decisions else ""
        tree, codemods = plugins.with_codemods(tree, settings)
        made = run.make(tree, settings, codemods, options, base=base, progress=progress())
        clear_progress()
        fixed = made.whole
        for text in made.decided.notes if made.decided else ():
            note(text)
        for path, reason in [(f.path, f.error) for f in fixed.report.failed]:
            note(f"{path}: not read: {reason}")
        for finding, reason in fixed.withdrawn:
            note(f"{finding.place}: {finding.code} withdrawn: {reason}")
        prefix = patches.prefix_from(tree.root, Path.cwd())
        out.append(patches.stat(fixed) if stat else patches.explained(fixed, prefix) if explain else patches.plain(fixed, prefix))
    data = b"".join(out)
    show_patch(data, color)
    raise typer.Exit(FINDINGS if data else CLEAN)


@app.command()
def apply(
    paths: Paths = None,
    select: Select = None,
    ignore: Ignore = None,
    extend_select: Extend = None,
    unsafe_fixes: Unsafe = False,
    launched: Launched = False,
    exclude: Exclude = None,
    force_exclude: Force = False,
    config: Config = None,
    isolated: Isolated = False,
    allow_plugins: Plugins = False,
    allow_format_command: Formats = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="The same as `ddpfix diff`.")] = False,
    branch: Annotated[str, typer.Option("--branch", help="The branch to commit on.", show_default=False)] = "",
    no_switch: Annotated[bool, typer.Option("--no-switch", help="Make the branch, stay where you are.")] = False,
    in_place: Annotated[bool, typer.Option("--in-place", help="Write the files, commit nothing.")] = False,
    include_dirty: Annotated[
        bool, typer.Option("--include-dirty", help="Fix files with uncommitted changes too: written in place, nothing committed.")
    ] = False,
    no_summary_commit: Annotated[bool, typer.Option("--no-summary-commit", help="Leave the summary document out.")] = False,
    run_hooks: Annotated[bool, typer.Option("--run-hooks", help="Run the repository's commit hooks.")] = False,
    format_command: Annotated[
        str, typer.Option("--format-command", help="Run this on the changed files before the commit.", show_default=False)
    ] = "",
    proof: Annotated[Path | None, typer.Option("--proof", help="The JSON of `ddpfix prove`, for the summary.")] = None,
    decisions: Decided = None,
    allow_stale: AllowStale = False,
    write_suppressions: WriteSuppressions = False,
    log: Logs = None,
    evidence: Seen = None,
    color: Annotated[str, typer.Option("--color", help="auto, always or never (with --dry-run).")] = "auto",
) -> None:
    """Fix, and commit the fixes on a branch of their own: a commit for each codemod, then the summary."""
    projects = asked(
        *(paths, select, ignore, extend_select, unsafe_fixes, exclude),
        launched=launched,
        config=config,
        isolated=isolated,
        force_exclude=force_exclude,
        plugins=allow_plugins,
        format_command=allow_format_command,
    )
    projects = with_evidence(projects, log, evidence)
    if dry_run:
        review = by_review(decisions, allow_stale, write_suppressions)
        _diff(projects, review, stat=False, explain=False, color=color)
    from ddpfix import api, repository_state

    if len(projects) > 1:
        roots = " and ".join(str(tree.root) for tree, _ in projects)
        raise CommandError(f"these paths lie in {roots}", todo="Apply to one repository at a time.")
    tree, settings = projects[0]
    project = api.Project(tree, settings)
    options = replace(
        by_review(decisions, allow_stale, write_suppressions),
        unsafe=settings.unsafe_fixes,
        branch=branch or settings.branch,
        switch=not no_switch,
        summary=not no_summary_commit,
        in_place=in_place or include_dirty,
        include_dirty=include_dirty,
        run_hooks=run_hooks,
        format_command=formatter(settings, format_command),
        proof=read_proof(proof) if proof else None,
    )
    try:
        applied = project.apply(options, command=command_line(), progress=progress())
    except repository_state.NotInGit as question:
        clear_progress()
        if not agreed(f"{question.what}: {question.why}. Write them?"):
            raise
        applied = project.apply(replace(options, in_place=True), command=command_line())
    clear_progress()
    for failure in applied.fixed.report.failed:
        note(f"{failure.path}: not read: {failure.error}")
    show(applied.screen)
    raise typer.Exit(CLEAN)


def read_proof(path: Path) -> ShownProof:
    """What `ddpfix prove` wrote into a file."""
    from ddpfix import summary

    try:
        return summary.read_proof(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        make_one = "Make one with `ddpfix prove --output-format json`."
        raise CommandError(f"{path} cannot be used as a proof", str(error), make_one) from error


@app.command()
def undo(
    path: Annotated[Path, typer.Argument(help="The repository.")] = Path(),
) -> None:
    """Take back the last apply, if nobody has built on it since."""
    from ddpfix import undo as taking_back

    show(taking_back.undo(path))
    raise typer.Exit(CLEAN)
