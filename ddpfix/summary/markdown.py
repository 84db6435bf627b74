"""Markdown as a pull request shows it: code spans, prose, tables and fences that hold whatever stands in the code.

What is put into a text may have been written by a stranger: a file's name, a key, a string in the source, a branch. So names go
in by `code`, sentences by `prose`, and what goes into a text that is no Markdown, such as a commit message, by `bare`. None of
them lets through a link, a comment, a tag, or a name that a forge would call.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence

# Words that are code: decorators (a bare @name would call a person), links to issues, short quoted texts, name=value, files,
# dotted names, names with an underscore, calls, a call that was cut short.
_ARGUMENTS = r"\((?!e?s\))(?:[^()`]|\([^()`]*\)){0,80}\)"
_CODE = re.compile(
    r"(?<![\w`/.])(?:"
    r"@[A-Za-z_][\w.]*"
    r"|#\d+"
    r"|(?<!\w)(['\"])[^'\"`\s]{1,60}\1"
    r"|[A-Za-z_][\w.]*\((?:[^`()]|\([^`()]*\)){0,80}?(?:\.\.\.|…)(?!\))"
    r"|[A-Za-z][\w.]*=[\w.\"']*[\w\"']"
    r"|[\w./-]+\.(?:py|ya?ml|sh|toml|cfg|txt|json|md|log)(?::\d+)?"
    r"|(?:(?:self|cls|torch|dist|trainer|pl|np|os)\.\w|[A-Z]\w+\.[a-z_]|\w+\.(?:\w+\.)*[A-Z])\w*(?:\.\w+)*(?:ARGS)?"
    r"|[\w./-]*[\w.]_[\w./-]*\w(?:ARGS|(?:\[[^\[\]\s]*\])+|:\d+)?"
    r"|_+[\w.]*\w(?:ARGS)?"
    r"|[A-Za-z_][\w.]*ARGS"
    r")(?![\w`])".replace("ARGS", _ARGUMENTS)
)
# what a forge makes a link of by itself (github.github.com/gfm, autolinks), and what calls a person or an issue
_LINK = re.compile(r"(?i)(?:[a-z][a-z0-9+.-]*://|www\.|mailto:|xmpp:)[^\s`()\[\]<>]*")
_CALL = re.compile(r"(?<!\w)@(?=\w)|[#!](?=\d)|(?<=\bGH)-(?=\d)", re.I)
_ENTITY = re.compile(r"&(?=#|\w+;)")
_SPAN = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.S)
_SPECIAL = re.compile(r"([\\*<>\[\]_`~])")
_ITEM = re.compile(r"(?:[-*+]|\d+\.) ")


def code(text: str) -> str:
    """`text` as a code span, on one line, whatever backticks it holds."""
    flat = _flat(text) or " "
    ticks = "`" * (_longest(flat) + 1)
    pad = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{ticks}{pad}{flat}{pad}{ticks}"


def fence(lines: Iterable[str], language: str = "") -> list[str]:
    """A fenced block that no line of its content can end."""
    body = list(lines)
    ticks = "`" * max(3, max((_longest(line) for line in body), default=0) + 1)
    return [ticks + language, *body, ticks]


def folded_up(title: str, lines: Iterable[str]) -> list[str]:
    """A block that is closed until a reader opens it. The title is put in as it is: our own words and numbers."""
    body = list(lines)
    while body and not body[-1]:
        body.pop()
    return ["<details>", f"<summary>{title}</summary>", "", *body, "", "</details>", ""] if body else []


def _longest(text: str) -> int:
    return max((len(run) for run in re.findall(r"`+", text)), default=0)


def prose(text: str) -> str:
    """A sentence with code in it, on one line: what looks like code becomes a code span, the rest cannot turn into markup."""
    out: list[str] = []
    for is_code, part in _parts(text):
        piece = code(part.strip("`")) if is_code else _ENTITY.sub("&amp;", _SPECIAL.sub(r"\\\1", part))
        if out and out[-1].endswith("`") and piece.startswith("`"):
            out.append(" ")  # two runs of backticks would be one
        out += [piece] if piece else []
    return "".join(out)


def bare(text: str) -> str:
    """A text for a place that knows no Markdown: one line that calls nobody and closes no issue (a file "fixes #12.py")."""
    return _CALL.sub(r"\g<0> ", _flat(text))


def _flat(text: str) -> str:
    """On one line, in characters that are to be seen."""
    return "".join(c if c.isprintable() else "\ufffd" for c in " ".join(text.split()))


def parts(text: str) -> list[tuple[bool, str]]:
    """The same sentence as (is it code, its text) parts, without any mark-up."""
    return [(is_code, part.strip("`").strip() if is_code else part) for is_code, part in _parts(text)]


def _parts(text: str) -> Iterator[tuple[bool, str]]:
    """Prose, and code as a span with its backticks, by turns."""
    for is_span, span in _split(_SPAN, _flat(text)):
        if is_span:
            yield True, span
            continue
        for is_link, link in _split(_LINK, span):
            if is_link:
                yield True, f"`{link}`"
                continue
            for is_word, word in _split(_CODE, link):
                if is_word:
                    yield True, f"`{word}`"
                    continue
                yield from ((is_call, f"`{call}`" if is_call else call) for is_call, call in _split(_CALL, word))


def _split(pattern: re.Pattern[str], text: str) -> Iterator[tuple[bool, str]]:
    """What matches and what stands in between, by turns."""
    at = 0
    for found in pattern.finditer(text):
        yield False, text[at : found.start()]
        yield True, found.group()
        at = found.end()
    yield False, text[at:]


def written(text: str) -> list[str]:
    """Markdown of a docstring with each paragraph and list item on one line: a pull request shows every line end."""
    out: list[str] = []
    for paragraph in re.split(r"\n\s*\n", textwrap.dedent(text).strip()):
        if "```" in paragraph:
            out += [*paragraph.split("\n"), ""]
            continue
        joined: list[str] = []
        for line in paragraph.split("\n"):
            if not joined or _ITEM.match(line.lstrip()):
                joined.append(line.rstrip())
            else:
                joined[-1] += " " + line.strip()
        out += [*(_called_off(line) for line in joined), ""]
    return out[:-1]


def _called_off(line: str) -> str:
    """No word outside a code span that a forge takes for a person or an issue."""
    out, at = [], 0
    for span in _SPAN.finditer(line):
        out += [re.sub(r"(?<![\w`])([@#]\w[\w.]*)", r"`\1`", line[at : span.start()]), span.group()]
        at = span.end()
    return "".join([*out, re.sub(r"(?<![\w`])([@#]\w[\w.]*)", r"`\1`", line[at:])])


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table; a cell may hold markup but no line end."""
    body = [heads, ["---"] * len(heads), *rows]
    return ["| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in row) + " |" for row in body]


def cut(text: str, limit: int, note: str) -> str:
    """`text` if it is no longer than `limit`, else its first lines with open fences and folds closed, and `note`."""
    if len(text) <= limit:
        return text
    room = limit - len(note) - 16
    kept: list[str] = []
    opened, folds = "", 0
    for line in text.split("\n"):
        # what may have to be written behind this line
        if room < len(line) + 1 + len(opened) + 1 + (folds + 1) * len("</details>\n\n"):
            break
        room -= len(line) + 1
        kept.append(line)
        if ticks := re.match(r"`{3,}", line):
            if not opened:
                opened = ticks.group()
            elif line == opened:
                opened = ""
        elif not opened:
            folds += (line == "<details>") - (line == "</details>")
    return "\n".join([*kept, *([opened] if opened else []), *(["", "</details>"] * folds), "", note]) + "\n"


def sentence(text: str) -> str:
    """`prose` with a full stop."""
    done = prose(text)
    return done if done.endswith((".", "!", "?")) else done + "."


def described(text: str) -> str:
    """What a codemod does, with its subject: `Finds x` -> `The codemod finds x`."""
    return re.sub(r"^([A-Z])([a-z]+s)\b", lambda m: f"The codemod {m[1].lower()}{m[2]}", text)


def plural(count: int, noun: str, several: str = "") -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {several or noun + 's'}"


def numbers(lines: Iterable[int], limit: int = 12) -> str:
    """Line numbers as people write them: `12, 14-16 and 3 more`."""
    runs: list[list[int]] = []
    for line in sorted(set(lines)):
        if runs and line == runs[-1][1] + 1:
            runs[-1][1] = line
        else:
            runs.append([line, line])
    shown = [str(a) if a == b else f"{a}-{b}" for a, b in runs[:limit]]
    more = f" and {len(runs) - limit} more" if len(runs) > limit else ""
    return ", ".join(shown) + more
