"""Variables that a shell script sets on a line of their own for a launcher below, and that no line exports.

POSIX 2.9.1: an assignment without a command is one of the shell's own; what the shell starts gets it only where it is exported.
One that came exported into the script stays so: what calls the script may do that, and a batch system does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from posixpath import basename

from codemods.analysis.job_files.launches import Launch, launches
from codemods.analysis.job_files.named_files import named_file
from codemods.analysis.loading.same_program import whole_program
from codemods.files.shell_words import Word, commands
from codemods.files.text_file import DOCUMENT_KINDS, SHELL_KINDS, TextFile
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_SCRIPTS = (".sh", ".bash")
# Names that programs read, and no shell: the GPUs of a process, how NCCL and Gloo talk.
_READ = lazy(r"(?P<name>CUDA_VISIBLE_DEVICES|HIP_VISIBLE_DEVICES|GLOO_SOCKET_IFNAME|NCCL_[A-Z][A-Z_]+)=")
_ASSIGNMENT = lazy(r"[A-Za-z_]\w*=")
_COMMENT = lazy(r"(?m)(?<![^\s;])#[^\n]*")
# All is exported, another script is read in, or a batch system has exported variables of this kind.
_MAY_BE_EXPORTED = lazy(
    r"(?m)\bset[ \t]+-\w*a|\ballexport\b|^#![^\n]*[ \t]-\w*a|(?:^|[;&|])[ \t]*(?:\.|source)[ \t]|^#(?:SBATCH|PBS|BSUB|\$[ \t]-)"
    r"|\b(?:srun|SLURM_\w+|PBS_\w+|LSB_\w+)\b|\beval\b"
)


@record
class Unexported:
    """word: the assignment; name: the variable; launch: the first command of a launcher below it."""

    name: str
    word: Word
    launch: Launch


def unexported_variables(project: Project, file: TextFile) -> Iterator[Unexported]:
    """Those that no other line of the script speaks of: one that is read there, or given to a command, is another matter."""
    if not file.path.endswith(_SCRIPTS) or _READ.search(file.text) is None or _MAY_BE_EXPORTED.search(file.text):
        return
    for launch in launches(file):
        alone = [w for words in commands(launch.passage.text) for w in _set_alone(words) if w.end <= launch.words[0].start]
        for word in alone:
            match = _READ.match(word.raw)
            name = match["name"] if match is not None else ""
            if not name or not _is_only_set(launch.passage.text, name, alone):
                continue
            if not _is_given_from_outside(project, file.path, name) and not _is_set_by_the_program(project, launch, name):
                yield Unexported(name, word, launch)
        if alone:
            return  # what stands above the first launcher stands above the others as well


def _set_alone(words: Sequence[Word]) -> Sequence[Word]:
    """The words of a command that is nothing but assignments."""
    return words if all(_ASSIGNMENT.match(w.raw) for w in words) else ()


def _is_only_set(text: str, name: str, alone: Sequence[Word]) -> bool:
    """True where each mention of the variable, outside of comments, is one of these assignments."""
    return _COMMENT.sub("", text).count(name) == sum(w.raw.startswith(f"{name}=") for w in alone)


def _is_given_from_outside(project: Project, path: str, name: str) -> bool:
    """True where a text on this script exports the variable, or sets it on that line: `CUDA_VISIBLE_DEVICES=0 sh train.sh`."""
    own, asked = os.fsencode(basename(path)), name.encode()
    for other in project.files_containing(own, kinds=(*SHELL_KINDS, *DOCUMENT_KINDS)):
        data = project.read_text(other) or b"" if other != path else b""
        if any(asked in line and (own in line or b"export" in line) for line in data.splitlines()):
            return True
    return False


def _is_set_by_the_program(project: Project, launch: Launch, name: str) -> bool:
    """True where the started script, or a file that it imports, speaks of the variable."""
    above = launch.passage.text[: launch.words[0].start]
    scripts = (named_file(project, launch.file.path, w.raw, above) for w in launch.started[:1] if w.text.endswith(".py"))
    program = (p for script in scripts if script is not None for p in whole_program(project, script))
    return any(name.encode() in (project.read(p) or b"") for p in program)
