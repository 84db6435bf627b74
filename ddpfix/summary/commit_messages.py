"""Commit messages: a subject of at most 72 characters, then what happens where, and why it may be changed."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Finding
from ddpfix import catalog
from ddpfix.project_renames import renamed
from ddpfix.summary import safe_here
from ddpfix.summary.markdown import bare, described, plural
from ddpfix.summary.places import by_file, codemod_of, spots
from ddpfix.summary.told_alike import Alike, alike

SUBJECT = 72
WIDTH = 72
MOST_FILES = 12
MOST_KINDS = 6  # of messages

SUMMARY_COMMIT = """\
Add DDPFIX_SUMMARY.md

What was fixed and why, what was left alone, how to test it and how to
undo it. Leave this commit out of the merge if it is not wanted.
"""


VARIANTS_COMMIT = """\
Add the fast variants of the job files

Each is made from the job file beside it, with a larger batch, less
accumulation and less logging; the effective batch is the same.
"""
SILENCED_COMMIT = """\
Silence the findings that were rejected in review

A comment at each names its code and why it was rejected; `ddpfix check`
says nothing of it from now on.
"""


def subject(code: str, name: str, findings: Sequence[Finding] = ()) -> str:
    """What the commit of a codemod does, with its code, and with the file where it is only one. findings: those that it fixes."""
    said = said_of(code, name, findings)
    tail = f" ({code})"
    room = SUBJECT - len(tail)
    if len(said) > room:
        return textwrap.shorten(said, room, placeholder=" …") + tail
    for file in _only_file(findings):
        if len(longer := f"{said} in {file}") <= room and file not in said:
            return longer + tail
    return said + tail


def said_of(code: str, name: str, findings: Sequence[Finding]) -> str:
    """What the fixes of a codemod do, in a few words."""
    codemod = codemod_of(code)
    return (bare(codemod.commit_subject(findings)) if codemod else "") or f"Fix {name}"


def _only_file(findings: Sequence[Finding]) -> Sequence[str]:
    """The one file that is changed, in full and by its name alone; nothing where there are several."""
    paths = {f.path for f in findings} | {edit.path for f in findings for edit in f.edits}
    if len(paths) != 1:
        return ()
    path = bare(paths.pop())
    return (path, path.rpartition("/")[2])


def commit_message(codemod: DdpCodemod, findings: Sequence[Finding]) -> str:
    """The message of the commit that holds the work of one codemod: what happens at these places, and why it may be changed."""
    sections = codemod.sections()
    parts = [subject(codemod.code, codemod.rule_name(), findings)]
    ours = codemod.topic() not in catalog.OTHER_TOPICS
    if findings and ours:
        parts += _told(findings)
    else:
        parts += [*_paragraphs(_summary(codemod, findings)), *_paragraphs(described(sections.get("What it does", "")))]
    unsafe = [f for f in findings if f.applicability is Applicability.UNSAFE]
    if ours and len(unsafe) < len(findings):
        parts += _paragraphs(bare(safe_here.in_words(codemod.code, findings)))
    if unsafe:
        reasons = list(dict.fromkeys(bare(f.reason) for f in unsafe if f.reason))
        text = "; ".join(reasons[:3]) + (f"; and {plural(len(reasons) - 3, 'more assumption')}" if len(reasons) > 3 else "")
        parts += _paragraphs(f"{plural(len(unsafe), 'fix rests', 'fixes rest')} on an assumption: {text or 'see the summary'}.")
    return "\n\n".join(parts) + "\n"


def _told(findings: Sequence[Finding]) -> list[str]:
    """What happens here: each kind of message once, with the places of it."""
    kinds = alike(findings)
    parts = []
    for kind in kinds[:MOST_KINDS]:
        # an item of a list: no line begins with a word of the code, which could be one of ours, or one that closes an issue
        parts += _paragraphs(f"- {bare(kind.first.place)}: {bare(kind.first.message)}. {_others(kind)}")
    rest = [f for kind in kinds[MOST_KINDS:] for f in kind.findings]
    return [*parts, *(_paragraphs(f"- And {plural(len(rest), 'more place')}: {_spots(rest)}.") if rest else [])]


def _others(kind: Alike) -> str:
    rest = kind.findings[1:]
    said = "The same" if kind.same_words else "The same with other names"
    return f"{said}: {_spots(rest)}." if rest else ""


def _spots(found: Sequence[Finding]) -> str:
    files = by_file(found)
    shown = [f"{bare(path)} {spots(here)}" for path, here in list(files.items())[:MOST_FILES]]
    return "; ".join([*shown, *([f"and {plural(len(files) - MOST_FILES, 'more file')}"] if len(files) > MOST_FILES else [])])


def _summary(codemod: DdpCodemod, findings: Sequence[Finding]) -> str:
    """What was wrong; of renames, each of them."""
    pairs = renamed(findings) if codemod.topic() == "project" else []
    rows = "\n".join(f"- `{bare(old)}` is `{bare(new)}` now" for old, new in pairs)
    return f"{codemod.summary()}\n\n{rows}" if rows else codemod.summary()


def _paragraphs(text: str) -> list[str]:
    """Docstring text wrapped for a terminal; list items keep their place, no line starts with `#`."""
    out = []
    for paragraph in re.split(r"\n\s*\n", textwrap.dedent(text).strip()):
        items = re.split(r"\n(?=\s*[-*] )", paragraph)
        wrapped = [
            textwrap.fill(
                " ".join(item.split()), WIDTH, subsequent_indent="  " if item.lstrip().startswith(("- ", "* ")) else "",
                break_long_words=False, break_on_hyphens=False,
            )
            for item in items
            if item.strip()
        ]  # fmt: skip
        if wrapped:
            out.append("\n".join(wrapped))
    return out
