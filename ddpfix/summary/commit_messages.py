"""Commit messages: a subject of at most 72 characters, then what, why and where."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Finding
from ddpfix import catalog
from ddpfix.project_renames import renamed
from ddpfix.summary.markdown import bare, described, plural
from ddpfix.summary.places import by_file, codemod_of, lines, skeleton

SUBJECT = 72
WIDTH = 72
MOST_FILES = 40
MOST_KINDS = 4  # of messages
MOST_REASONS = 2  # sentences: what the messages above leave open; the summary has all of it

_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`])")

SUMMARY_COMMIT = """\
Add DDPFIX_SUMMARY.md

What was fixed and why, what was left alone, how to test it and how to
take it back. This commit holds nothing else: leave it out of a merge if
the summary is not wanted in the history.
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
    """What the commit of a codemod does, with its code. findings: those that it fixes."""
    codemod = codemod_of(code)
    own = bare(codemod.commit_subject(findings)) if codemod else ""
    said = own or f"Fix {name}"
    tail = f" ({code})"
    if len(said) + len(tail) > SUBJECT:
        said = textwrap.shorten(said, SUBJECT - len(tail), placeholder=" …")
    return said + tail


def commit_message(codemod: DdpCodemod, findings: Sequence[Finding]) -> str:
    """The message of the commit that holds the work of one codemod."""
    sections = codemod.sections()
    parts = [subject(codemod.code, codemod.rule_name(), findings)]
    if findings and codemod.topic() not in catalog.OTHER_TOPICS:
        parts += _told(findings)
    else:
        parts += [*_paragraphs(_summary(codemod, findings)), *_paragraphs(described(sections.get("What it does", "")))]
    if codemod.topic() != "project":  # what a project asks for needs no argument
        parts += _paragraphs(_first_sentences(sections.get("Why it matters", "")))
    if unsafe := [f for f in findings if f.applicability is Applicability.UNSAFE]:
        reasons = list(dict.fromkeys(bare(f.reason) for f in unsafe if f.reason))
        text = "; ".join(reasons[:3]) + (f"; and {plural(len(reasons) - 3, 'more assumption')}" if len(reasons) > 3 else "")
        parts += _paragraphs(f"{plural(len(unsafe), 'fix rests', 'fixes rest')} on an assumption: {text or 'see the summary'}.")
    if findings:
        parts.append("\n".join(_files(findings)))
    return "\n\n".join(parts) + "\n"


def _told(findings: Sequence[Finding]) -> list[str]:
    """What was found here: each message once, with the number of its places; of those that differ in names alone the first."""
    said: dict[str, list[Finding]] = {}
    for finding in findings:
        said.setdefault(bare(finding.message), []).append(finding)
    shown: dict[str, str] = {}  # message -> its kind
    for message in said:
        kind = skeleton(message)
        if kind not in shown.values() and len(shown) < MOST_KINDS:
            shown[message] = kind
    parts = []
    for message in shown:
        found = said[message]
        more = f" and {plural(len(found) - 1, 'more place')}" if len(found) > 1 else ""
        # an item of a list: no line begins with a word of the code, which could be one of ours, or one that closes an issue
        parts += _paragraphs(f"- {bare(found[0].place)}{more}: {message}.")
    rest = sum(len(found) for message, found in said.items() if message not in shown)
    return [*parts, *([f"And {plural(rest, 'more place')} of the kind."] if rest else [])]


def _first_sentences(text: str) -> str:
    first = " ".join(textwrap.dedent(text).strip().split("\n\n")[0].split())
    return " ".join(_SENTENCE.split(first)[:MOST_REASONS])


def _summary(codemod: DdpCodemod, findings: Sequence[Finding]) -> str:
    """What was wrong; of renames, each of them."""
    pairs = renamed(findings) if codemod.topic() == "project" else []
    rows = "\n".join(f"- `{bare(old)}` is `{bare(new)}` now" for old, new in pairs)
    return f"{codemod.summary()}\n\n{rows}" if rows else codemod.summary()


def _files(findings: Sequence[Finding]) -> list[str]:
    files = by_file(findings)
    # indented: git takes `word: text` at the end of a message for a trailer
    rows = [f"  {bare(path)} ({lines(found)})" for path, found in list(files.items())[:MOST_FILES]]
    more = [f"  and {plural(len(files) - MOST_FILES, 'more file')}"] if len(files) > MOST_FILES else []
    return ["Files, with the lines as they were:", *rows, *more]


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
