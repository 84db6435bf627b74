"""The last screen of `ddpfix apply`: where the work is, what was fixed, what is left, and the commands for what comes next."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Sequence

from codemods.api.findings import Finding
from ddpfix.outputs.text import unstarted
from ddpfix.results import Fixed
from ddpfix.summary.context import Context
from ddpfix.summary.markdown import plural
from ddpfix.summary.places import by_code, by_file, codemod_of, offered, told, unmade
from ddpfix.summary.review_section import counts

ROWS = 8
_ASKED = 5  # findings of level unsafe that are named
_INNER = "    "
WIDTH = 110


def closing_screen(fixed: Fixed, context: Context) -> str:
    """One screen of plain text."""
    if not fixed.after and not context.commits:
        return "\n".join([*_nothing(fixed), *_reviewed(context)]) + "\n"
    out = [*_where(fixed, context), "", *_fixed(fixed), *_reviewed(context)]
    if left := _left(fixed, context):
        out += ["", *left]
    if more := unstarted(fixed.report.left_out):
        out += ["", more]
    out += ["", *_next(fixed, context)]
    return "\n".join(out) + "\n"


def _nothing(fixed: Fixed) -> list[str]:
    report = fixed.report
    seen = plural(report.scanned, "Python file")
    if not report.parsed and not report.failed and not fixed.left:
        return [f"Nothing distributed here: {seen} seen, none with a word of distributed training."]
    more = unstarted(report.left_out)
    waiting = len(offered(fixed))
    need = "needs" if waiting == 1 else "need"
    said = f"No safe fix in {seen}; {waiting} that {need} your answer." if waiting else f"Nothing to fix in {seen}."
    return [said, *_left(fixed, None), *([more] if more else [])]


def _where(fixed: Fixed, context: Context) -> list[str]:
    files = plural(len(fixed.after), "file")
    if not context.branch:
        return [f"{files} changed in place; nothing was committed.", *_notes(context)]
    state = "checked out" if context.switched else "not checked out"
    base = f", on top of {context.base[:10]}" if context.base else ""
    rows = [f"  {sha[:10]}  {_short(subject)}" for sha, subject in context.commits]
    return [f"Branch {context.branch} ({state}){base}:", *_few(rows, "commit"), *_notes(context)]


def _notes(context: Context) -> list[str]:
    notes = [*context.notes, *([context.identity_note] if context.identity_note else [])]
    return [f"  note: {' '.join(note.split())}" for note in notes[:4]]


def _fixed(fixed: Fixed) -> list[str]:
    groups = by_code(fixed.fixed)
    if not groups:
        return []
    width = max(len(found[0].name) for found in groups.values())
    rows = []
    for code, found in groups.items():
        codemod = codemod_of(code)
        what = codemod.summary() if codemod else found[0].message
        rows.append(_short(f"  {code} {found[0].name.ljust(width)} {len(found):>4}  {what}"))
    total = plural(len(fixed.fixed), "fix", "fixes")
    return [f"{total} in {plural(len(fixed.after), 'file')}:", *_few(rows, "codemod")]


def _reviewed(context: Context) -> list[str]:
    made = context.decided
    if made is None:
        return []
    again = " (`ddpfix review` goes on there)" if made.undecided else ""
    return [f"Reviewed: {counts(made)}{again}.", *(f"  note: {note}" for note in made.notes)]


def _left(fixed: Fixed, context: Context | None) -> list[str]:
    out = []
    if found := offered(fixed):
        out += _few(_asked(found), "finding", head=f"Left as unsafe: {_codes(found)}, made with --unsafe-fixes:", most=_ASKED)
    if found := told(fixed):
        out.append(f"Reported, not fixed: {_codes(found)}. `ddpfix check` says why.")
    if failed := unmade(fixed):
        rows = [_short(f"  {f.place} {f.code}: {why}") for f, why in failed]
        out += _few(rows, "fix", "fixes", head="Could not be made:", most=3)
    if broken := fixed.report.failed:
        rows = [_short(f"  {f.path}: {f.error}") for f in broken]
        out += _few(rows, "file", head="Could not be read:", most=3)
    return out


def _asked(found: Sequence[Finding]) -> list[str]:
    """A row for each that an answer would decide: where it is, what is wrong, and what the fix assumes, the worst first."""
    ordered = sorted(found, key=lambda f: (f.severity_rank, f.path, f.span))
    return [_row(f"{f.place} {f.code}: {f.message}", f.reason) for f in ordered]


def _row(said: str, reason: str) -> str:
    return "\n".join([*_two_lines(said, "  "), *_two_lines(reason, _INNER)])


def _two_lines(text: str, first: str) -> list[str]:
    plain = " ".join(text.replace("`", "").split())
    return textwrap.wrap(plain, WIDTH, initial_indent=first, subsequent_indent=_INNER, max_lines=2, placeholder=" …")


def _codes(found: Sequence[Finding]) -> str:
    groups = by_code(found)
    files = plural(len(by_file(found)), "file")
    return f"{plural(len(found), 'finding')} in {files} ({', '.join(f'{code} {len(rows)}' for code, rows in groups.items())})"


def _next(fixed: Fixed, context: Context) -> list[str]:
    place = shlex.quote(context.place) if context.place else ""
    back = f"Take back:  ddpfix undo{place and ' '}{place}"
    if not context.branch:
        return [back]
    git = f"git -C {place}" if place else "git"
    base, branch = (context.base or "HEAD")[:10], shlex.quote(context.branch)
    home = shlex.quote(context.home or "-")
    tip = f"{branch}~1" if context.summary_commit else branch
    merge = f"{git} switch {home} && {git} merge {tip}" if context.switched else f"{git} merge {tip}"
    out = [f"Look at:    {git} log -p {base}..{branch}"]
    if context.summary_commit:
        out.append(f"Read:       DDPFIX_SUMMARY.md{'' if context.switched else f'   ({git} show {branch}:DDPFIX_SUMMARY.md)'}")
    out.append(f"Merge:      {merge}{'   (without the summary)' if context.summary_commit else ''}")
    return [*out, back]


def _few(rows: list[str], noun: str, several: str = "", *, head: str = "", most: int = ROWS) -> list[str]:
    shown = rows[:most]
    more = [f"  and {plural(len(rows) - most, f'more {noun}', f'more {several or noun + chr(115)}')}"] if len(rows) > most else []
    return [*([head] if head else []), *shown, *more]


def _short(text: str) -> str:
    flat = text.rstrip().replace("\n", " ").replace("`", "")
    return flat if len(flat) <= WIDTH else f"{flat[: WIDTH - 1].rpartition(' ')[0].rstrip() or flat[: WIDTH - 2]} …"
