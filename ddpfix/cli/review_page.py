"""`ddpfix review --html` and `--serve`: the page as a file, and from a server that saves and applies."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ddpfix.cli.asking import formatter
from ddpfix.cli.ends import CommandError
from ddpfix.cli.showing import note

if TYPE_CHECKING:
    from ddpfix.decisions import Decisions
    from ddpfix.discovery import Tree
    from ddpfix.review.items import Review
    from ddpfix.review.served import Work
    from ddpfix.run import Applied
    from ddpfix.settings import Settings


@dataclass(frozen=True, slots=True)
class Shown:
    """What is reviewed. look: finds the files again. decided: what was decided before; it is kept in `file`.
    command: the `ddpfix apply` that makes the same, for the summary.
    """

    look: Callable[[], tuple[Tree, Settings]]
    found: Review
    tree: Tree
    settings: Settings
    decided: Decisions
    file: Path
    suppress: bool
    command: str


def written(shown: Shown, target: Path) -> str:
    """Write the page; what to say of it."""
    from ddpfix import engine
    from ddpfix.outputs import files
    from ddpfix.review.page import page

    text = page(shown.found, read=engine.disk_reader(shown.tree.root), decided=shown.decided)
    try:
        files.write(target, text)
    except OSError as error:
        raise CommandError(f"{target} cannot be written", error.strerror or str(error)) from error
    return f"{target}: {len(shown.found.items)} findings. Open it in a browser; its decisions come back as {shown.file.name}.\n"


def served(shown: Shown, port: int) -> str:
    """Serve until it is applied or interrupted; what to say at the end."""
    gc.enable()  # a server is no short run
    try:
        from ddpfix.review.served import Session, serve

        session = Session(_work(shown), shown.found, shown.decided)
        serve(session, port=port, announce=_announce)
    except ModuleNotFoundError as error:
        missing = f"{error.name} is not installed"
        raise CommandError("--serve needs Starlette and uvicorn", missing, "pip install 'ddpfix[web]'") from error
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        raise CommandError(f"port {port} cannot be used", why, "Give another --port, or none.") from error
    except KeyboardInterrupt:
        note("")
    if session.applied:
        return session.applied.screen
    count = len(session.decided.of)
    return f"{count} decision{'' if count == 1 else 's'}, kept in {shown.file}.\n" if count else "Nothing was decided.\n"


def _announce(url: str) -> None:
    sys.stdout.write(f"{url}\n")
    sys.stdout.flush()
    note("Open it in a browser; Ctrl-C ends it, what is decided is kept. From another machine: docs/review-page.md.")


def _work(shown: Shown) -> Work:
    from ddpfix import decisions, discovery, engine, plugins, repository_state, run
    from ddpfix.review import items
    from ddpfix.review.served import Work

    root = shown.tree.root

    def scan() -> Review:
        return items.review(*shown.look())

    def apply(made: Decisions) -> Applied:
        tree, settings = shown.look()
        tree, codemods = plugins.with_codemods(tree, settings)
        options = run.Options(
            branch=settings.branch,
            format_command=formatter(settings),
            decisions=made,
            suppress=shown.suppress,
            in_place=not tree.is_git,  # a person has just asked for it
        )
        return run.apply(tree, settings, codemods, options, command=shown.command)

    def summary(_: Applied) -> str:
        return (engine.disk_reader(root)(discovery.SUMMARY) or b"").decode("utf-8", "replace")

    return Work(
        scan=scan,
        base=lambda: repository_state.head_of(root),
        save=decisions.Keeper(shown.file, shown.decided).save,
        apply=apply,
        summary=summary,
        read=engine.disk_reader(root),
        branch=shown.settings.branch if shown.tree.is_git else "",
    )
