"""Commands for several processes that end too early: at a line without a backslash, or by one with a blank behind it, which
escapes the blank, not the end of the line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from posixpath import basename

from codemods.analysis.job_files.command_lines import LAUNCHER_MODULES, LAUNCHERS, TALKERS
from codemods.api.findings import Span
from codemods.files.passages import passages
from codemods.files.shell_words import Word, commands
from codemods.files.text_file import DOCUMENT_KINDS, SHELL_KINDS, TextFile
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record

_STARTERS = LAUNCHERS | {"srun", "mpirun", "horovodrun"}
# An option of one letter stands behind a blank in no list of Markdown: `- a`.
_OPTION_BELOW = lazy(r"[ \t]*\r?\n[ \t]+(?P<option>-{1,2}[A-Za-z][\w-]*)")
_ESCAPED = ("\\ ", "\\\t")


@record
class Ended:
    """span: from the backslash to the end of its line; of a line without one its last word. after: the first word of the next
    line. comment: one stands behind the backslash. bare: there is no backslash. glued: the word that the backslash stands at,
    which gets the blank. script: the line names what the starter starts.
    """

    span: Span
    starter: str
    after: str
    comment: bool
    bare: bool = False
    glued: str = ""
    script: bool = True


def ended_commands(file: TextFile) -> Iterator[Ended]:
    """Those whose next line begins with an option, which was to be one of theirs."""
    if not file.path.endswith((*SHELL_KINDS, *DOCUMENT_KINDS)):
        return
    for passage in passages(file):
        for words in commands(passage.text):
            starter, end = _starter(words), words[-1]
            if starter and file.path.endswith(SHELL_KINDS) and (cut := cut_off_by(passage.text, end)):
                yield Ended(passage.span(end.start, end.end), starter, cut, False, bare=True, script=_names_script(words))
            if not starter or not _is_escaped(end):
                continue
            rest, _, following = passage.text[end.end :].partition("\n")
            after = following.partition("\n")[0].split()
            comment = rest.lstrip().startswith("#")
            if (comment or not rest.strip()) and after and after[0].startswith("-") and after[0].strip("-"):
                first = end.end - len(_ESCAPED[0])
                glued = end.raw[: -len(_ESCAPED[0])]
                yield Ended(passage.span(first, end.end + len(rest)), starter, after[0], comment, glued=glued)


def cut_off_by(text: str, end: Word) -> str:
    """The option with which the next line begins, set in, where nothing continues the line of a command's last word."""
    found = _OPTION_BELOW.match(text, end.end) if not _is_escaped(end) else None
    return found["option"] if found is not None else ""


def _is_escaped(end: Word) -> bool:
    """True for a backslash before a blank, alone or right behind a word: `8888\\ `, which is no `\\\\ `."""
    return end.raw.endswith(_ESCAPED) and not end.raw.endswith(("\\\\ ", "\\\\\t"))


def _names_script(words: Sequence[Word]) -> bool:
    return any(w.text.endswith((".py", ".pyz")) or w.text in ("-m", "--module") for w in words)


def _starter(words: Sequence[Word]) -> str:
    """What starts the processes of a command; "" where nothing does, or the command only speaks of one."""
    for word in words:
        name = basename(word.text).lstrip("@-")
        if name in TALKERS:
            return ""
        if name in _STARTERS or word.text in LAUNCHER_MODULES:
            return name
    return ""
