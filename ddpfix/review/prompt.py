"""`ddpfix review` on a terminal: as `git add -p` asks, but by fix. One line of keys for each finding."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TextIO

from codemods.store.project import Project
from ddpfix.decisions import Decision, Verdict
from ddpfix.review import editing
from ddpfix.review.editing import NotTaken
from ddpfix.review.items import ReviewItem
from ddpfix.review.screen import Look, item_screen, printable, wrapped
from ddpfix.review.session import Session, levels

HELP = """\
y           accept this fix
n [reason]  reject it
a           accept this one and all safe ones that are open
d [reason]  reject this one and all that are open
f           this and all open ones of this file: then y or n
k           this and all open ones of this kind (its code): then y or n
e           edit the lines of the fix in $EDITOR, and accept them
s           leave it open, go on
b           back to the one before
Enter       go on, where it is decided already or has no fix
q           stop; what is decided is kept
?           this help
"""
_LINE = re.compile(r"([a-z?])(?:\s+(.*))?", re.DOTALL)
_WORDS = {"yes": "y", "no": "n", "quit": "q", "help": "?", "fy": "f y", "fn": "f n", "ky": "k y", "kn": "k n"}


class Stopped(Exception):
    """The reviewer went away, before the end."""


@dataclass
class Terminal:
    """Where the review is shown and answered. look: asked anew for each screen, so that it fits a resized terminal."""

    out: TextIO
    read: Callable[[], str]
    look: Callable[[], Look]

    def show(self, text: str) -> None:
        self.out.write(text if text.endswith("\n") else text + "\n")
        self.out.flush()

    def ask(self, question: str) -> str:
        """The answer, one line. Raises Stopped at the end of the input."""
        self.out.write(self.look().paint(question, "bold") + " ")
        self.out.flush()
        answer = self.read()
        if not answer:
            self.show("")
            raise Stopped
        return answer.strip()


def on_screen(color: bool) -> Terminal:
    """The terminal that the command was started on."""

    def look() -> Look:
        try:
            width = os.get_terminal_size(sys.stdout.fileno()).columns
        except OSError:
            width = 80
        return Look(width or 80, color, ascii=not (sys.stdout.encoding or "").lower().startswith("utf"))

    return Terminal(sys.stdout, sys.stdin.readline, look)


def go_through(session: Session, project: Project, terminal: Terminal) -> bool:
    """Ask about every finding that waits; True where all were gone through, False where the reviewer stopped before."""
    try:
        while item := session.current:
            terminal.show("\n" + _screen(session, item, project, terminal.look()))
            while not _answered(session, item, project, terminal):
                pass
    except Stopped:
        return False
    return True


def _screen(session: Session, item: ReviewItem, project: Project, look: Look) -> str:
    place = f"{session.at + 1}/{len(session.items)}"
    by_id = session.found.by_id
    mates = [by_id[m].finding.place for m in item.mates if m in by_id]
    decision = session.decision(item)
    hunks = None
    if decision and decision.edited:
        with suppress(NotTaken):  # the file is another by now: the fix's own lines are shown, and apply tells it
            hunks = editing.checked(item, decision.edited, project)
    return item_screen(item, look, place=place, decision=decision, mates=mates, hunks=hunks)


def _answered(session: Session, item: ReviewItem, project: Project, terminal: Terminal) -> bool:
    """Ask once; True where the next finding, or this one anew, is to be shown."""
    counts = session.counts()
    progress = f"{counts['accepted']} accepted, {counts['rejected']} rejected, {counts['open']} open"
    question = "Accept? [y n a d f k e s b q ?]" if item.acceptable else "No fix. [s: next, n d f k b q ?]"
    terminal.show(terminal.look().paint(progress, "dim"))
    line = terminal.ask(question)
    match = _LINE.fullmatch(_WORDS.get(line.lower(), line))
    if not match and not line and (session.decision(item) or not item.acceptable):
        session.pass_by(item)
        return True
    if not match:
        terminal.show("Type one of the keys and Enter; ? says what they do." if line else HELP)
        return False
    key, rest = match[1], (match[2] or "").strip()
    if key == "q":
        raise Stopped
    if key in "ye" and not item.acceptable:
        terminal.show("\n".join(wrapped(f"It cannot be accepted: {item.why_not}", terminal.look())))
        return False
    return _done(session, item, project, terminal, key, rest)


def _done(session: Session, item: ReviewItem, project: Project, terminal: Terminal, key: str, rest: str) -> bool:
    if key == "y":
        return _decided(session, terminal, [item], "accept")
    if key == "n":
        return _decided(session, terminal, [item], "reject", rest)
    if key == "a" and item.acceptable:
        return _decided(session, terminal, session.rest(item, "accept"), "accept")
    if key == "d":
        return _decided(session, terminal, session.rest(item, "reject"), "reject", rest)
    if key in "fk":
        return _several(session, item, terminal, key, rest)
    if key == "e":
        return _edited(session, item, project, terminal)
    if key == "s":
        session.leave_open(item)
        return True
    if key == "b":
        if not session.back():
            terminal.show("This is the first one.")
            return False
        return True
    terminal.show(HELP)
    return False


def _decided(session: Session, terminal: Terminal, items: Sequence[ReviewItem], verdict: Verdict, reason: str = "") -> bool:
    made = session.decide(items, Decision(verdict, " ".join(reason.split())))
    if made > 1:
        terminal.show(f"{made} findings {verdict}ed.")
    session.go_on()
    return True


def _several(session: Session, item: ReviewItem, terminal: Terminal, key: str, rest: str) -> bool:
    """All of a file, or of a kind; unsafe ones are named, as accepting them is the consent they need."""
    items = session.in_file(item) if key == "f" else session.of_kind(item)
    where = printable(item.finding.path) if key == "f" else item.finding.code
    if not rest:
        choice = "y, n [reason]" if item.acceptable else "n [reason]"
        terminal.show(f"{where}: {levels(items)} open.")
        rest = terminal.ask(f"All of them? [{choice}; Enter: no change]")
    verb, _, reason = rest.partition(" ")
    if verb.lower() in ("y", "yes") and item.acceptable:
        return _decided(session, terminal, items, "accept")
    if verb.lower() in ("n", "no"):
        return _decided(session, terminal, items, "reject", reason)
    terminal.show("Nothing is decided.")
    return False


def _edited(session: Session, item: ReviewItem, project: Project, terminal: Terminal) -> bool:
    known = session.decision(item)
    text = editing.as_text(item, known.edited if known else ())
    suffix = PurePosixPath(item.finding.path).suffix or ".txt"
    while True:
        try:
            text = editing.in_editor(text, suffix)
            rows = editing.from_text(item, text)
            if not rows:
                terminal.show("Nothing was changed: the fix stands as it was offered.")
                return False
            hunks = editing.checked(item, rows, project)
        except NotTaken as error:
            terminal.show("\n".join(wrapped(f"Not taken: {error}", terminal.look())))
            if terminal.ask("Edit again? [y n]").lower() not in ("y", "yes"):
                return False
            continue
        session.edit(item, Decision("accept", edited=rows))
        terminal.show(item_screen(item, terminal.look(), decision=session.decision(item), hunks=hunks))
        session.go_on()
        return True
