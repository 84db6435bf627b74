"""Where job files give parameters to TrainingArguments: flags of a script that has an HfArgumentParser, and mappings in YAML and
JSON that such a parser, or `TrainingArguments(**…)`, is handed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file
from codemods.analysis.importing import imported_files
from codemods.analysis.job_files.command_lines import CommandLine, Flag, command_lines, script_of
from codemods.analysis.job_files.flag_edits import NoEdit, drop_flag, rename_flag
from codemods.analysis.names import dotted
from codemods.api.findings import DropEntry, Edit, ReplaceExpression, ReplaceText, Span
from codemods.data.training_arguments import FIELDS
from codemods.files.left_alone import left
from codemods.files.passages import Passage
from codemods.files.source import SourceModule
from codemods.files.text_entries import Entry, Table, tables
from codemods.files.text_file import SHELL_KINDS, TextFile
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

PARSERS = (b"HfArgumentParser", b"TrlParser", b"H4ArgumentParser")
_FILE_READERS = (
    b"parse_json_file",
    b"parse_yaml_file",
    b"parse_dict",
    b"TrlParser",
    b"H4ArgumentParser",
    b"parse_args_and_config",
)
_FILLED = lazy(rb"(?:Arguments|Config)\(\s*\*\*")
ENOUGH = 3  # other fields of TrainingArguments by which a mapping is known


@record
class Flagged:
    """A flag of a training script. why: why it cannot be said to be one of TrainingArguments, "" where it can."""

    command: CommandLine
    flag: Flag
    why: str

    @property
    def span(self) -> Span:
        return self.command.span_of(self.flag)

    @property
    def literal(self) -> str | None:
        if not self.flag.joined and not self.flag.values:
            return "True"  # HfArgumentParser takes a bare flag of a bool for True
        return as_literal(self.flag.value) if self.flag.value is not None else None

    @property
    def beside(self) -> frozenset[str]:
        return frozenset(f.field for f in self.command.flags if f is not self.flag)

    def renamed(self, name: str) -> Edit | NoEdit:
        return rename_flag(self.command, self.flag, name)

    def replaced(self, name: str, value: str) -> Edit | NoEdit:
        if not isinstance(self.command.source, Passage):
            return NoEdit("the words of the command stand in a list")
        return ReplaceText(self.command.file.path, self.span, f"--{name}{'=' if self.flag.joined else ' '}{value}")

    def dropped(self) -> Edit | NoEdit:
        return drop_flag(self.command, self.flag)


@record
class Keyed:
    """An entry of a mapping that TrainingArguments is made of. assumes: what an edit assumes; why: why there is none."""

    table: Table
    entry: Entry
    assumes: str
    why: str

    @property
    def literal(self) -> str | None:
        entry = self.entry
        if entry.kind == "bool":
            return "True" if entry.value.lower() in ("true", "yes", "on") else "False"
        if entry.kind == "null":
            return "None"
        return repr(entry.value) if entry.kind == "text" else entry.value if entry.kind == "number" else None

    @property
    def beside(self) -> frozenset[str]:
        return self.table.keys - {self.entry.key}

    def renamed(self, name: str) -> list[Edit]:
        return [ReplaceExpression(self.table.file.path, self.entry.key_span, name)]

    def dropped(self) -> list[Edit]:
        return [DropEntry(self.table.file.path, self.entry.span)]


def as_literal(text: str) -> str:
    """A flag's text as Python would write the value that HfArgumentParser makes of it."""
    if text.lower() in ("true", "false", "none"):
        return text.capitalize()
    try:
        float(text)
    except ValueError:
        return repr(text)
    return text


# Flags


def flags_in(project: Project, file: TextFile, names: frozenset[str]) -> Iterator[Flagged]:
    """The flags of those names in the file's commands, but for those that a script defines itself."""
    for command in command_lines(file):
        here = [f for f in command.flags if f.field in names]
        if not here:
            continue
        script = script_of(project, command)
        if script is None:
            known = {f.field for f in command.flags} & FIELDS
            why = f"which script {command.target} is, is not shown" if len(known) > ENOUGH else None
        else:
            why = _why_no_parser(project, script)
        if why is None:
            continue
        for flag in here:
            if script is None or not _defines(project, script, flag.field):
                yield Flagged(command, flag, why)


def _why_no_parser(project: Project, script: str) -> str | None:
    """ "" where the script fills TrainingArguments from its flags, None where it does not."""
    files = _files_of(project, script)
    if any(word in (project.read(p) or b"") for p in files for word in PARSERS):
        arguments = any(
            b"TrainingArguments" in (project.read(p) or b"") or b"import trl" in (project.read(p) or b"") for p in files
        )
        trl = any(re.search(rb"from trl import[^\n]*|\btrl\.", project.read(p) or b"") for p in files)
        return "" if arguments or trl else None
    return None


def _files_of(project: Project, script: str) -> frozenset[str]:
    module = project.module(script)
    return imported_files(project, module) if module else frozenset()


def _defines(project: Project, script: str, field: str) -> bool:
    """True where the script, or what it imports, has a flag or a field of that name of its own."""
    word = field.encode()
    own = re.compile(rb"[\"']--" + word.replace(b"_", b"[_-]") + rb"[\"']|^[ \t]+" + word + rb"[ \t]*:", re.M)
    return any(own.search(project.read(p) or b"") for p in _files_of(project, script))


# Mappings


def keys_in(project: Project, file: TextFile, names: frozenset[str]) -> Iterator[Keyed]:
    """The entries of those names in mappings that hold fields of TrainingArguments, where the project reads such files."""
    if file.path.endswith(SHELL_KINDS):
        return
    for table in tables(file):
        here = [e for e in table.entries if e.key in names]
        if not here or len((table.keys & FIELDS) - names) < ENOUGH:
            continue
        reads = _first(project, _FILE_READERS)
        filled = _first_filled(project)
        if not reads and not filled:
            continue
        flat = table.uses == ((),) and bool(reads)
        assumes = "" if flat else f"assumes that this mapping is what {filled or reads} makes the training arguments of"
        for entry in here:
            if _is_own_field(project, entry.key):
                continue  # no version of transformers makes it an error
            reader, commented = _reader(project, entry.key)
            if not reader and commented and left(file, None, "the line that read {} is commented out", entry.key):
                continue
            why = f"{reader} reads or defines {entry.key!r} itself" if reader else ""
            yield Keyed(table, entry, assumes, why)


def _first(project: Project, words: tuple[bytes, ...]) -> str:
    found = (p for word in words for p in project.files_containing(word) if not is_test_file(p))
    return next(found, "")


def _first_filled(project: Project) -> str:
    def build() -> str:
        paths = sorted({*project.files_containing(b"Arguments("), *project.files_containing(b"Config(")})
        return next((p for p in paths if not is_test_file(p) and _FILLED.search(project.read(p) or b"")), "")

    return project.memo("arguments filled from a mapping", build)


def _is_own_field(project: Project, key: str) -> bool:
    """True where a dataclass of the project, an heir of TrainingArguments or its own, has a field of that name."""
    for path in project.files_containing(key.encode()):
        module = project.module(path) if not is_test_file(path) else None
        if module is not None and any(_is_of_dataclass(module, f, key) for f in module.nodes(ast.AnnAssign)):
            return True
    return False


def _is_of_dataclass(module: SourceModule, field: ast.AnnAssign, key: str) -> bool:
    owner = module.parent(field)
    if not isinstance(field.target, ast.Name) or field.target.id != key or not isinstance(owner, ast.ClassDef):
        return False
    decorators = (d.func if isinstance(d, ast.Call) else d for d in owner.decorator_list)
    return any(dotted(d).rpartition(".")[2] == "dataclass" for d in decorators)


def _reader(project: Project, key: str) -> tuple[str, bool]:
    """A place in Python that names the key, other than as a parameter's keyword: it would not find it under another name.

    And whether a line that is commented out names it.
    """
    commented = False
    word = key.encode()
    named = re.compile(rb"[\"']" + word + rb"[\"']|\." + word + rb"\b|^[ \t]+" + word + rb"[ \t]*:", re.M)
    for path in project.files_containing(word):
        data = project.read(path) or b""
        for found in named.finditer(data) if not is_test_file(path) else ():
            if data[data.rfind(b"\n", 0, found.end()) + 1 :].lstrip().startswith(b"#"):
                commented = True
                continue
            line = data.count(b"\n", 0, found.end()) + 1
            return f"{path}:{line}", commented
    return "", commented
