"""Which scripts the repository's texts and programs start with `torch.distributed.launch`, which hands over the local rank."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file
from codemods.analysis.job_files.named_files import named_file
from codemods.analysis.job_files.script_texts import script_text
from codemods.files.source import SourceModule
from codemods.files.text_file import DOCUMENT_KINDS
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

STARTS_IN = (".sh", ".bash", ".slurm", ".sbatch", ".md", ".rst", ".txt", ".yaml", ".yml", "Makefile")
_LAUNCHER = b"torch.distributed.launch"
# `$ROOT/train.py`: a folder that is not shown
_SCRIPT = lazy(r"(?<![\w=/.-])(?:\./|(\$\{?\w+\}?/))?([\w.-]+(?:/[\w.-]+)*\.py)\b")


@record
class Start:
    """A command that starts a script with the launcher: where it stands, the script as it is written there, and the file of the
    repository that is meant, None where that is not to be told. comment: it is commented out."""

    path: str
    line: int
    script: str
    file: str | None
    comment: bool = False

    @property
    def text(self) -> str:
        """Where it stands, as the start of a sentence."""
        return f"a comment in {self.path}" if self.comment else self.path


def started_with_launcher(project: Project, module: SourceModule) -> Start | None:
    """The command that starts the file with `torch.distributed.launch` and has it hand over the local rank as an option."""
    for start in _starts(project):
        if module.path == start.file:
            return start
    return _through_its_importer(project, module) or _by_a_program(project, module)


def _starts(project: Project) -> tuple[Start, ...]:
    def build() -> tuple[Start, ...]:
        paths = project.files_containing(_LAUNCHER, kinds=STARTS_IN)
        found = (s for p in paths for s in _commands(project, p, script_text(project, p)))
        return tuple(sorted(found, key=lambda s: s.comment))

    return project.keep(("starts with torch.distributed.launch",), build)


def _commands(project: Project, path: str, text: str) -> Iterator[Start]:
    lines = text.split("\n")
    for i, line in enumerate(lines):
        if "-m torch.distributed.launch" not in line:
            continue
        whole = line
        for more in lines[i + 1 : i + 20]:
            if not whole.rstrip().endswith("\\"):
                break
            whole = f"{whole.rstrip()[:-1]} {more.lstrip(' #')}"
        given = whole.partition("-m torch.distributed.launch")[2]
        script = _SCRIPT.search(given)
        if script and "--use_env" not in given and "--use-env" not in given:
            above = "\n".join([*lines[:i], line.partition("python")[0]])
            yield Start(path, i + 1, script[2], named_file(project, path, script[0], above), _is_comment(path, line))


def _is_comment(path: str, line: str) -> bool:
    """In a text for people `#` begins a heading, or is the prompt of root."""
    return line.lstrip().startswith("#") and not path.endswith(DOCUMENT_KINDS)


def _through_its_importer(project: Project, module: SourceModule) -> Start | None:
    """The command of a script that imports the file: its options are those of the script."""
    for start in _starts(project):
        script = project.module(start.file) if start.file is not None else None
        if script is None or script.holds(b"add_argument"):
            continue  # it has options of its own
        if any(_is_of(module.path, name) for name in script.imported_modules):
            return start
    return None


def _is_of(path: str, imported: str) -> bool:
    name = path.removesuffix(".py").replace("/", ".")
    return name == imported or name.endswith(f".{imported}")


def _by_a_program(project: Project, module: SourceModule) -> Start | None:
    """A module that the file imports puts the command together, and starts the file again with it."""
    for path in project.files_containing(b"torch.distributed.launch'") + project.files_containing(b'torch.distributed.launch"'):
        data = project.read(path) or b""
        if is_test_file(path) or path == module.path or b"use_env" in data or b"subprocess" not in data:
            continue
        if any(_is_of(path, imported) for imported in module.imported_modules):
            line = data[: data.index(_LAUNCHER)].count(b"\n") + 1
            return Start(path, line, module.path, module.path)
    return None
