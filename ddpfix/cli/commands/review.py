"""`ddpfix review`."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ddpfix.cli.app import app
from ddpfix.cli.asking import asked, formatter, with_evidence
from ddpfix.cli.ends import CLEAN, CommandError
from ddpfix.cli.options import (
    Config,
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
    WriteSuppressions,
)
from ddpfix.cli.showing import clear_progress, note, progress, show, wants_color

if TYPE_CHECKING:
    from ddpfix.decisions import Decisions
    from ddpfix.discovery import Tree
    from ddpfix.review.items import Review
    from ddpfix.review.session import Session
    from ddpfix.settings import Settings

# what `apply` is not told, since its own options follow; the second ones take a value
OWN = {"--apply", "--again", "--serve", "--color", "--decisions", "--html", "--port"}
VALUED = {"--color", "--decisions", "--html", "--port"}


@app.command()
def review(
    paths: Paths = None,
    select: Select = None,
    ignore: Ignore = None,
    extend_select: Extend = None,
    launched: Launched = False,
    exclude: Exclude = None,
    force_exclude: Force = False,
    config: Config = None,
    isolated: Isolated = False,
    allow_plugins: Plugins = False,
    allow_format_command: Formats = False,
    decisions: Annotated[Path, typer.Option("--decisions", help="The file in which decisions are kept.")] = Path(
        "ddpfix-decisions.json"
    ),
    again: Annotated[bool, typer.Option("--again", help="Ask about what is decided already, too.")] = False,
    apply: Annotated[bool, typer.Option("--apply", help="Apply what was accepted once all was gone through.")] = False,
    html: Annotated[Path | None, typer.Option("--html", help="Write all of it as one page, and ask nothing.")] = None,
    serve: Annotated[bool, typer.Option("--serve", help="Show the page from this machine; it saves and applies.")] = False,
    port: Annotated[int, typer.Option("--port", help="For --serve; a free one is taken if none is given.")] = 0,
    write_suppressions: WriteSuppressions = False,
    log: Logs = None,
    evidence: Seen = None,
    color: Annotated[str, typer.Option("--color", help="auto, always or never.")] = "auto",
) -> None:
    """Go through the findings one by one and accept or reject each. Nothing is changed before `apply`."""
    from ddpfix.outputs.text import unstarted
    from ddpfix.review import items

    def look() -> tuple[Tree, Settings]:
        projects = asked(
            *(paths, select, ignore, extend_select, False, exclude),
            launched=launched,
            config=config,
            isolated=isolated,
            force_exclude=force_exclude,
            plugins=allow_plugins,
            format_command=allow_format_command,
        )
        if len(projects) > 1:
            roots = " and ".join(str(tree.root) for tree, _ in projects)
            raise CommandError(f"these paths lie in {roots}", todo="Review one repository at a time.")
        return with_evidence(projects, log, evidence)[0]

    if html and serve:
        raise CommandError("--html writes the page, --serve shows it", todo="Give one of them.")
    tree, settings = look()
    if not (html or serve or (sys.stdin.isatty() and sys.stdout.isatty())):
        what = "Run it on a terminal, use --html or --serve, or write the file for `ddpfix apply --decisions` yourself."
        raise CommandError("review asks on a terminal", "this is none", what)
    if not (html or os.access(decisions.parent, os.W_OK)):
        why = "there is no such folder, or it is not yours"
        raise CommandError(f"{decisions} cannot be written", why, "Use --decisions FILE.")
    found = items.review(tree, settings, progress=progress())
    clear_progress()
    for failure in found.failed:
        note(f"{failure.path}: not read: {failure.error}")
    if more := unstarted(found.left_out):
        note(more)
    saved = _saved(decisions, found)
    if html or serve:
        from ddpfix.cli import review_page

        again_as = apply_command(sys.argv[1:], decisions)
        shown = review_page.Shown(look, found, tree, settings, saved, decisions, write_suppressions, again_as)
        sys.stdout.write(review_page.written(shown, html) if html else review_page.served(shown, port))
        raise typer.Exit(CLEAN)
    finished, session = _asked(found, tree, saved, decisions, again, wants_color(color))
    show(_closing(session, decisions))
    if apply and finished and session.decisions.of:
        _apply(tree, settings, session.decisions, write_suppressions, apply_command(sys.argv[1:], decisions))
    elif session.counts()["accepted"] or (write_suppressions and session.counts()["rejected"]):
        sys.stdout.write(f"Apply: {apply_command(sys.argv[1:], decisions)}\n")
    raise typer.Exit(CLEAN)


def _saved(path: Path, found: Review) -> Decisions:
    """What was decided before, as far as it holds; what does not is told."""
    from ddpfix import decisions as files
    from ddpfix.review.session import carried

    if not path.exists():
        return files.Decisions(found.base)
    before = carried(files.read(path), found)
    if before.stale_base:
        dropped = f", {len(before.dropped)} dropped: found no more ({', '.join(before.dropped[:6])})" if before.dropped else ""
        head = f"{path} is stale: decided on {before.stale_base[:12]}, HEAD is {found.base[:12]}"
        note(f"{head}; {len(before.kept)} kept, whose text is the same{dropped}")
    elif before.kept:
        note(f"{path}: {len(before.kept)} of {len(found.items)} findings are decided")
    return before.decisions


def _asked(
    found: Review, tree: Tree, saved: Decisions, path: Path, again: bool, color: bool
) -> tuple[bool, Session]:
    from codemods.store.project import Project
    from ddpfix import decisions as files
    from ddpfix import engine
    from ddpfix.review.prompt import go_through, on_screen
    from ddpfix.review.session import Session

    session = Session(found, saved, files.Keeper(path, saved).save, again=again)
    project = Project(tree.files, engine.disk_reader(tree.root), observed=tree.observed)
    try:
        return go_through(session, project, on_screen(color)), session
    except KeyboardInterrupt:
        if session.decisions.of:
            note(f"\nwhat was decided is in {path}")
        raise


def _closing(session: Session, path: Path) -> str:
    if not session.items:
        return "Nothing to review.\n"
    counts = session.counts()
    rest = f", {counts['reported']} reported" if counts["reported"] else ""
    saved = f" Saved in {path}." if path.exists() else ""
    said = f"{counts['accepted']} accepted, {counts['rejected']} rejected, {counts['open']} open{rest}.{saved}"
    return textwrap.fill(said, shutil.get_terminal_size().columns, break_on_hyphens=False, break_long_words=False) + "\n"


def apply_command(arguments: list[str], decisions: Path) -> str:
    """The `ddpfix apply` that does what was decided, with the same paths and options."""
    kept: list[str] = []
    words = iter(arguments[arguments.index("review") + 1 :])
    for word in words:
        name, given, _ = word.partition("=")
        if name in OWN:
            if name in VALUED and not given:
                next(words, None)
            continue
        kept.append(word)
    return shlex.join(["ddpfix", "apply", *kept, "--decisions", str(decisions)])


def _apply(tree: Tree, settings: Settings, decisions: Decisions, write_suppressions: bool, command: str) -> None:
    from ddpfix import plugins, run

    tree, codemods = plugins.with_codemods(tree, settings)
    options = run.Options(
        branch=settings.branch,
        format_command=formatter(settings),
        decisions=decisions,
        suppress=write_suppressions,
        in_place=not tree.is_git,  # a person has just asked for it
    )
    applied = run.apply(tree, settings, codemods, options, command=command)
    show(applied.screen)
