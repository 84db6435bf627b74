"""How many tasks srun starts on each node for a command of a job: by its own options, else by those of the job.

Slurm's manual: srun takes what sbatch was given (`--ntasks-per-node`) unless it is told otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from posixpath import basename

from codemods.analysis.job_files.command_lines import CommandLine
from codemods.files.passages import Passage
from codemods.files.shell_words import Word
from codemods.files.text_file import SHELL_KINDS
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record

_PER_NODE = lazy(r"(?<!\S)--n?tasks-per-node(?:=|[ \t]+)(\S+)")
_TASKS = lazy(r"(?<!\S)(?:-n(?:[ \t]*|=)|--ntasks(?:=|[ \t]+))(\S+)")
_NODES = lazy(r"(?<!\S)(?:-N(?:[ \t]*|=)|--nodes(?:=|[ \t]+))(\S+)")
_SBATCH = lazy(r"(?m)^#SBATCH[ \t]+([^#\n]*)")
# Tasks that are counted in another way, or have GPUs of their own, and jobs whose parts differ.
_OTHERWISE = lazy(
    r"--ntasks-per-(?:gpu|socket|core)|--gpus-per-task|--tres-per-task|--gpu-bind|--het-group|hetjob|packjob|--multi-prog|"
    r"\bSLURM_\w*TASKS\w*=|\bunset[ \t]+SLURM"
)
_PROGRAMS = ("python", "torchrun", "singularity", "apptainer", "bash", "env")
_OPEN = lazy(r"[\"']?\$")


@record
class Tasks:
    """count: on each node. line: where it is written. per_node: by `--ntasks-per-node`. options: those of the job and of srun."""

    count: int
    line: int
    per_node: bool
    options: str


def tasks_on_a_node(command: CommandLine, *, own_gpus: bool = False) -> Tasks | None:
    """None where srun does not start the command, and where the number is not written out.

    own_gpus: also for tasks that have GPUs of their own (`--gpus-per-task`).
    """
    at = next((i for i, w in enumerate(command.words) if basename(w.text) == "srun"), None)
    file, source = command.file, command.source
    if at is None or not isinstance(source, Passage) or not file.path.endswith(SHELL_KINDS) or _is_other(file.text, own_gpus):
        return None
    own = _own_options(command.words[at + 1 :])
    if own is None:
        return None
    job = [(m[1], file.text.count("\n", 0, m.start()) + 1) for m in _SBATCH.finditer(file.text)]
    line = command.span(command.words[at].start, command.words[at].end).line
    given = any(option.search(own) for option in (_TASKS, _NODES, _PER_NODE))
    return _by_srun(own, line, job) if given else _by_job(own, job)


def _is_other(text: str, own_gpus: bool) -> bool:
    return _OTHERWISE.search(text.replace("--gpus-per-task", "") if own_gpus else text) is not None


def _own_options(words: Sequence[Word]) -> str | None:
    """The options of srun as a text: all up to the first word that is none, and no value of one. None where some are not seen."""
    found: list[str] = []
    for i, word in enumerate(words):
        if word.raw.startswith("-"):
            found.append(word.raw)
        elif i and words[i - 1].raw.startswith("-") and "=" not in words[i - 1].raw:
            if _starts_a_program(word):
                break
            found.append(word.raw)
        elif _OPEN.match(word.raw) and not _starts_a_program(word):
            return None
        else:
            break
    return " ".join(found)


def _starts_a_program(word: Word) -> bool:
    return basename(word.text).lstrip("$").strip("{}").lower().startswith(_PROGRAMS)


def _by_srun(own: str, line: int, job: Sequence[tuple[str, int]]) -> Tasks | None:
    everything = " ".join((*(text for text, _ in job), own))
    if (per_node := _number(_PER_NODE.findall(own))) is not None and not _TASKS.search(own):
        return Tasks(per_node, line, True, everything)
    tasks = _number(_TASKS.findall(own))
    nodes = _number(_NODES.findall(own) or [n for text, _ in job for n in _NODES.findall(text)])
    return Tasks(tasks, line, False, everything) if tasks is not None and nodes == 1 else None


def _by_job(own: str, job: Sequence[tuple[str, int]]) -> Tasks | None:
    options = " ".join(text for text, _ in job)
    nodes, tasks = _number(_NODES.findall(options)), _number(_TASKS.findall(options))
    given = [(n, line) for text, line in job for n in _PER_NODE.findall(text)]
    if given:
        count = _number([n for n, _ in given])
        limited = _TASKS.search(options) is not None and (count is None or tasks != count * (nodes or 0))
        return Tasks(count, given[-1][1], True, f"{options} {own}") if count is not None and not limited else None
    if tasks is None or nodes != 1:
        return None
    line = next(line for text, line in reversed(job) if _TASKS.search(text))
    return Tasks(tasks, line, False, f"{options} {own}")


def _number(found: Sequence[str]) -> int | None:
    """The last of them, which counts, where it is a number."""
    return int(found[-1]) if found and found[-1].isdigit() else None
