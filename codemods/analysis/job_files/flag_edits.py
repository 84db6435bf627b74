"""Flags of a command line changed, added and taken out, in the layout of their neighbours; the edits, or why there are none."""

from __future__ import annotations

from codemods.analysis.job_files.command_lines import CommandLine, Flag
from codemods.api.findings import ChangeItems, Edit, ReplaceExpression, ReplaceText
from codemods.files.passages import Passage
from codemods.files.shell_words import Word
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record

_PLAIN = lazy(r"[A-Za-z0-9_./:+,=-]+")  # as it is in a shell, and in a plain scalar of YAML


@record
class NoEdit:
    """Why a flag cannot be changed where it stands."""

    why: str


def rename_flag(command: CommandLine, flag: Flag, name: str) -> Edit | NoEdit:
    """The flag under the field's other name; `--a-b` stays with hyphens."""
    dashes = flag.name[: len(flag.name) - len(flag.name.lstrip("-"))]
    written = dashes + (name.replace("_", "-") if "-" in flag.name.lstrip("-") else name)
    if not isinstance(command.source, Passage):
        code = written + (flag.word.raw[len(flag.name) :] if flag.joined else "")
        return _item(command, flag.word, code)
    return ReplaceText(command.file.path, command.span(flag.word.start, flag.word.start + len(flag.name)), written)


def set_value(command: CommandLine, flag: Flag, value: str) -> Edit | NoEdit:
    """The flag with another value, in the quotes that the old one has."""
    if flag.joined:
        start, end, old = flag.word.start + len(flag.name) + 1, flag.word.end, flag.word.raw[len(flag.name) + 1 :]
    elif len(flag.values) == 1:
        start, end, old = flag.values[0].start, flag.values[0].end, flag.values[0].raw
    else:
        return NoEdit(f"{flag.name} is not given one value")
    if flag.value is None:
        return NoEdit(f"the shell decides over the value of {flag.name}")
    if not isinstance(command.source, Passage):
        return _item(command, flag.word, f"{flag.name}={value}") if flag.joined else _item(command, flag.values[0], value)
    written = _quoted(command.source, old, value)
    if written is None:
        return NoEdit(f"{value!r} cannot be written here without quotes that the file's own would end")
    return ReplaceText(command.file.path, command.span(start, end), written)


def add_flag(command: CommandLine, name: str, value: str | None) -> Edit | NoEdit:
    """`--name value` behind the last flag of the program, on a line of its own where that one has one."""
    if not isinstance(command.source, Passage):
        return _added_items(command, name, value)
    if not command.flags:
        return NoEdit("the command gives no flag yet")
    last = command.flags[-1]
    before = command.words[command.words.index(last.word) - 1]
    between = command.source.between(before, last.word)
    if between.strip(" \t\r\n\\"):
        between = " "
    joined = last.joined
    written = _quoted(command.source, "", value) if value is not None else ""
    if written is None:
        return NoEdit(f"{value!r} cannot be written here without quotes")
    text = f"--{name}" + ("" if value is None else f"{'=' if joined else ' '}{written}")
    at = command.source.places[last.end - 1] + 1
    return ReplaceText(command.file.path, command.file.span_between(at, at), between + text)


def drop_flag(command: CommandLine, flag: Flag) -> Edit | NoEdit:
    """The command without the flag and its value, and without the line, continued or folded, that held it alone."""
    if not isinstance(command.source, Passage):
        return _dropped_items(command, flag)
    before = command.words[command.words.index(flag.word) - 1]
    if command.source.between(before, flag.word).strip(" \t\r\n\\"):
        return NoEdit(f"something else stands before {flag.name}")
    return ReplaceText(command.file.path, command.span(before.end, flag.end), "")


def _dropped_items(command: CommandLine, flag: Flag) -> Edit | NoEdit:
    file, before = command.file, command.words[command.words.index(flag.word) - 1]
    last = flag.values[-1] if flag.values else flag.word
    if "#" in file.text[before.end : flag.word.start]:
        return NoEdit(f"a comment stands before {flag.name}")
    return ChangeItems(file.path, file.span_between(before.end, last.end), "")


def _added_items(command: CommandLine, name: str, value: str | None) -> Edit | NoEdit:
    """The new items behind the last one, separated from it as that is from the one before."""
    file, (before, last) = command.file, command.words[-2:]
    between = file.text[before.end : last.start]
    if not command.flags or last.end != max(f.end for f in command.flags):
        return NoEdit("the command does not end with a flag")
    if between.strip(" \t\r\n") not in (",", "-"):
        return NoEdit("something else stands between the words of the list")
    words = [f"--{name}={value}"] if command.flags[-1].joined else [f"--{name}", *([] if value is None else [value])]
    if value is not None and not _PLAIN.fullmatch(value):
        return NoEdit(f"{value!r} cannot be written here without quotes")
    import json

    written = [json.dumps(w) if i or "," in w else w for i, w in enumerate(words)]  # 4 is a number for YAML, not a word
    text = "".join(between + w for w in written)
    return ChangeItems(file.path, file.span_between(last.end, last.end), text, len(words))


def _item(command: CommandLine, word: Word, code: str) -> Edit:
    return ReplaceExpression(command.file.path, command.file.span_between(word.start, word.end), code)


def _quoted(passage: Passage, old: str, value: str) -> str | None:
    """The value as a word in the style of the old one; None where its quotes would end the scalar it stands in."""
    if old[:1] in ("'", '"') and old[:1] == old[-1:] and not set(value) & set("'\"$`\\\n"):
        return f"{old[0]}{value}{old[0]}"
    if _PLAIN.fullmatch(value):
        return value
    if passage.style in ("|", ">") or passage.file.path.endswith((".sh", ".bash", ".slurm", ".sbatch")):
        import shlex

        return shlex.quote(value)
    return None
