"""The body of a pull request: the summary as a forge shows it, a footer, the marks, all within a length that is read."""

from __future__ import annotations

import base64
import difflib
import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from ddpfix.bot.marks import Marks
from ddpfix.summary.markdown import code

_TRACE = 3  # characters for a line: another one has the same in one case of 260,000
LONGEST = 60_000  # of the bot's text and people's words together
LIMIT = 30_000  # GitHub takes 65,536 characters; other bots lowered their own bound to this after refusals
_FENCE = re.compile(r"(`{3,}|~{3,})")
_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
_CALL = re.compile(
    r"(?<![\w`/.&-])(?<!\]\()(?:"
    r"https?://[\w.]+/[\w.-]+/[\w.-]+/(?:issues|pull|discussions)/\d+|[\w.-]+/[\w.-]+!\d+|(?:[\w.-]+/)?[\w.-]*#\d+|@[A-Za-z][\w/-]*)"
)


@dataclass(frozen=True, slots=True)
class Words:
    """What people wrote in the body of a pull request: above the bot's text (and, moved there, into it), and below."""

    above: str = ""
    below: str = ""


def pull_body(
    summary: str, footer: str, marks: Marks, sealed: Callable[[Marks], str], words: Words | None = None, *, limit: int = LIMIT
) -> str:
    """The whole body, the bot's own text between people's words; of the bot's, the middle part is cut where it is too long.

    sealed: marks -> the block at the end, which holds a trace of each of the bot's lines.
    """
    words = words or Words()
    limit = max(min(limit, LONGEST - len(words.above) - len(words.below)), len(footer) + 2000)
    # the title says what the first heading does
    text = harmless(unlinked(re.sub(r"\A# .*\n+", "", summary))).rstrip()
    end = f"\n\n---\n\n{harmless(footer)}\n"
    room = limit - len(end) - len(sealed(marks)) - len(" lines=") - _TRACE * end.count("\n") - 2
    text = fit(text, room, per_line=_TRACE) + end
    return "\n\n".join(filter(None, (words.above, text + "\n" + sealed(replace(marks, lines=traces(text))), words.below))) + "\n"


def traces(text: str) -> str:
    """A few characters for each line, by which it is known again."""
    return "".join(_trace(line) for line in text.rstrip().split("\n"))


def _trace(line: str) -> str:
    digest = hashlib.sha256(line.rstrip().encode("utf-8", "surrogatepass")).digest()
    return base64.urlsafe_b64encode(digest)[:_TRACE].decode()


def words_of_others(body: str) -> Words:
    """A body without a mark that is believed: somebody's own words, but for the text that an earlier version of the bot left."""
    return Words() if "<!-- ddpfix:pr topic=" in body else Words(body.replace("\r\n", "\n").strip())


def words_in(above: str, marks: Marks, below: str) -> Words:
    """What people wrote, out of a body that is cut at its mark: every line that the bot did not write, in its order."""
    lines = above.replace("\r\n", "\n").rstrip().split("\n")
    own = [marks.lines[at : at + _TRACE] for at in range(0, len(marks.lines), _TRACE)]
    found = [_trace(line) for line in lines]
    below = below.replace("\r\n", "\n").strip()
    if own == found:  # the usual case, and comparing takes its time
        return Words("", below)
    compared = difflib.SequenceMatcher(None, own, found, autojunk=False)
    runs = ["\n".join(lines[a:b]).strip("\n") for tag, _, _, a, b in compared.get_opcodes() if tag in ("insert", "replace")]
    return Words("\n\n".join(run for run in runs if run.strip()), below)


def harmless(text: str) -> str:
    """A whole text as the bot may write it; every writer passes what it writes through here, and may do so twice.

    Nothing in it is taken by a forge for a person or for an issue: it would tell them that they were named here, and put a link
    to this repository on other people's issues. Nor is anything a comment that nobody sees. What was put into the text was made
    harmless before, where it was put in (`summary.markdown`).
    """
    return "\n".join(line if fenced or line.startswith("    ") else _calm(line) for line, fenced in _lines(text))


def _calm(line: str) -> str:
    out, at = [], 0
    for span in _CODE.finditer(line):
        out += [_plain(line[at : span.start()]), span.group()]
        at = span.end()
    return "".join([*out, _plain(line[at:])])


def _plain(text: str) -> str:
    return _CALL.sub(r"`\g<0>`", text).replace("<!--", "&lt;!--")


def footer(place: str) -> str:
    """How to speak with the bot, and how to be rid of it."""
    rows = (
        "`/ddpfix rerun` looks again, `/ddpfix rebuild` makes this afresh and throws other commits away, "
        "`/ddpfix ignore CODE` leaves a codemod out here (`… repo`: in the settings, too), `/ddpfix explain CODE` says more, "
        "`/ddpfix close` closes this. Closing it says that it is not wanted, and it will not come back.",
        f"To turn ddpfix off here: `enabled = false` in {code(place)}, `bot = false` under `[tool.ddpfix]`, "
        "or the repository topic `no-ddpfix`.",
    )
    return "\n\n".join(f"<sub>{row}</sub>" for row in rows)


def unlinked(text: str) -> str:
    """The summary for a page on which headings are no targets: links to them become words."""
    return "\n".join(line if fenced else re.sub(r"\[([^\]]+)\]\(#[^)\s]*\)", r"\1", line) for line, fenced in _lines(text))


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it belongs to a fenced block."""
    opened = ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if opened:
            yield line, True
            if mark and line.strip() == opened:
                opened = ""
        else:
            yield line, bool(mark)
            opened = mark[1] if mark else ""


def fit(
    text: str, limit: int, note: str = "This text was cut for length; `ddpfix diff` shows everything.", *, per_line: int = 0
) -> str:
    """`text` if it is no longer than `limit`, else its first lines, with what is open there closed, and `note`.

    per_line: what each line takes besides, elsewhere.
    """
    if len(text) + per_line * (text.count("\n") + 1) <= limit:
        return text
    kept: list[str] = []
    room = limit - len(note) - 2 - 4 * per_line
    opened, details = "", 0
    for line, fenced in _lines(text):
        after = opened
        if mark := _FENCE.match(line):
            after = "" if opened and line.strip() == opened else opened or mark[1]
        depth = details if fenced else details + line.count("<details") - line.count("</details>")
        if room - len(line) - 1 - per_line < len(after) + 1 + (11 + per_line) * max(depth, 0):
            break
        room -= len(line) + 1 + per_line
        kept.append(line)
        opened, details = after, depth
    closing = ([opened] if opened else []) + ["</details>"] * max(details, 0)
    return "\n".join([*kept, *closing, "", note])
