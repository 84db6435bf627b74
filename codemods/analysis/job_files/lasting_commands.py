"""Commands that start several ranks and let the others run on when one has failed: srun, and the launcher of an old torch.

srun ends the other tasks only by `--kill-on-bad-exit` (KillOnBadExit of slurm.conf is 0 as it is delivered), or some time after
the first end of a task by `--wait`. `torch.distributed.launch` waits for its children in turn before torch 1.8 (pytorch issue
41067, pull request 49305). torchrun, accelerate, deepspeed, mpirun and `torch.distributed.launch` from 1.8 on end the others.
"""

from __future__ import annotations

from collections.abc import Iterator

from codemods.analysis.job_files.named_files import named_file
from codemods.analysis.job_files.said_torch import said_torch
from codemods.analysis.job_files.script_texts import script_text
from codemods.api.findings import Evidence
from codemods.files.text_file import SHELL_KINDS
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_TEXTS = (*SHELL_KINDS, ".md", ".rst", ".txt")
_LONGEST = 400_000
_POLLS_SINCE = (1, 8)
_JOINED = lazy(r"\\[ \t]*\n[ \t]*#?")
_SRUN = lazy(r"(?<![\w.-])srun(?=\s)")
_OLD = lazy(r"-m[ \t]+torch\.distributed\.launch(?=\s)")
_NEXT = lazy(r"&&|\|\||[;|`]|\s&(?=\s|$)")
_PYTHON = lazy(r"(?:^|[\s'\"])(?:[\w~./{}$-]*/)?python[\d.]*\s+((?:-[uOBE]\s+)*)(-m\s+)?[\"']?(?:\$\{?\w+\}?/)*([\w./-]+)")
_SCRIPT = lazy(r"(?<!\S)(?:-m\s+(?P<module>[\w.]+)|[\"']?(?:\$\{?\w+\}?/)*(?P<script>[\w./-]+\.py))(?![\w.])")
# What starts the ranks itself, and looks after them.
_OTHER_LAUNCHERS = lazy(r"torchrun|torch\.distributed|accelerate|deepspeed|horovod|mpirun|mpiexec|\bray\b|colossalai")
# srun ends the other tasks, at once or some time after the first.
_ENDS_THEM = lazy(r"(?<!\S)(?:-K1?(?!\S)|--kill-on-bad-exit(?!=0)|-W[ \t]*[1-9]|--wait[= ][1-9])")
_TASKS = lazy(r"(?<!\S)(?:-n[ \t]*|--ntasks[= ]\s*)(?P<tasks>[\w${}()*\"]+)")
_PER_NODE = lazy(r"(?<!\S)--n?tasks-per-(?:node|gpu)[= ]\s*(?P<tasks>[\w${}()*\"]+)")
_NODES = lazy(r"(?<!\S)(?:-N[ \t]*|--nodes[= ]\s*)(?P<nodes>[\w${}()*\"]+)")
_SBATCH = lazy(r"(?m)^[ \t]*#SBATCH[ \t]+(.*)$")


@record
class LastingStart:
    """script: the project's file that is started. launcher: as a sentence names it; cure: the way of starting that ends all."""

    script: str
    launcher: str
    cure: str
    evidence: Evidence


def lasting_commands(project: Project) -> tuple[LastingStart, ...]:
    """Every such command of the repository's texts and job files, for a script that is found."""
    return project.keep("lasting commands", lambda: tuple(_commands(project)))


def _commands(project: Project) -> Iterator[LastingStart]:
    named = {p for word in (b"srun", b"torch.distributed.launch") for p in project.files_containing(word, kinds=_TEXTS)}
    for path in sorted(named):
        data = project.read(path) or b""
        if len(data) > _LONGEST:
            continue  # a list of something, or a log
        text = script_text(project, path)
        number = 1
        for line in _JOINED.sub(" \0", text).split("\n"):
            at = number
            number += 1 + line.count("\0")
            line = line.replace("\0", " ")
            if line.lstrip().startswith("#"):
                continue
            if found := _SRUN.search(line):
                yield from _by_srun(project, path, at, line[found.end() :], text)
            elif found := _OLD.search(line):
                yield from _by_old_launcher(project, path, at, line[found.end() :])


def _by_srun(project: Project, path: str, at: int, rest: str, text: str) -> Iterator[LastingStart]:
    rest = _NEXT.split(rest, maxsplit=1)[0]
    python = _PYTHON.search(rest)
    if python is None or _OTHER_LAUNCHERS.search(rest) or _ENDS_THEM.search(rest[: python.start()]):
        return
    job = " ".join(_SBATCH.findall(text))
    if "SLURM_KILL_BAD_EXIT" in text or "SLURM_WAIT" in text or not _several_on_a_node(f"{job} {rest[: python.start()]}"):
        return
    script = _found(project, path, python[3], module=python[2] is not None)
    if script is not None:
        shown = Evidence("static", "srun starts the program, without --kill-on-bad-exit", path, at)
        yield LastingStart(script, "srun", "start it by `srun --kill-on-bad-exit=1`", shown)


def _several_on_a_node(options: str) -> bool:
    """True where srun starts more than one task on a node; of several values the last counts."""
    per_node = [m["tasks"] for m in _PER_NODE.finditer(options)]
    if per_node:
        return per_node[-1] not in ("1", "0")
    tasks = [m["tasks"] for m in _TASKS.finditer(options)]
    nodes = [m["nodes"] for m in _NODES.finditer(options)]
    return bool(tasks) and tasks[-1] not in ("1", "0") and tasks[-1] not in nodes[-1:]


def _by_old_launcher(project: Project, path: str, at: int, rest: str) -> Iterator[LastingStart]:
    named = _SCRIPT.search(_NEXT.split(rest, maxsplit=1)[0])
    if named is None:
        return
    script = _found(project, path, named["module"] or named["script"], module=named["module"] is not None)
    version = _old_torch(project, script) if script is not None else None
    if script is not None and version is not None:
        launcher = f"torch.distributed.launch of torch {version}"
        shown = Evidence("static", f"{launcher} starts the program: it waits for one process after the other", path, at)
        yield LastingStart(script, launcher, "start it by torchrun (torch 1.10 and later)", shown)


def _old_torch(project: Project, script: str) -> str | None:
    """The version of torch that a script is for, where it is one whose launcher ends no process."""
    module = project.module(script)
    said = said_torch(project, module) if module is not None else None
    if said is None or not said.surely_below(_POLLS_SINCE):
        return None
    return next((".".join(map(str, low)) for s in said.ranges if (low := s.range[0]) is not None), "below 1.8")


def _found(project: Project, path: str, name: str, *, module: bool) -> str | None:
    """The project's file that a command names."""
    names = [f"{name.replace('.', '/')}.py", f"{name.replace('.', '/')}/__main__.py"] if module else [name]
    return next((found for wanted in names if (found := named_file(project, path, wanted)) is not None), None)
