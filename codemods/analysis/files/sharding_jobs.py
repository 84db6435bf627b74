"""Does a command of the repository shard the model of a program: FSDP, ZeRO-3, by a flag or by a configuration that it names?

The state of such a model is put together by all ranks: asked for on rank 0 alone, it waits for the others without an end.
"""

from __future__ import annotations

from collections.abc import Iterator
from posixpath import normpath

from codemods.analysis.importing import imported_files
from codemods.analysis.job_files.command_lines import CommandLine, command_lines, script_of
from codemods.files.text_file import SHELL_KINDS, YAML_KINDS, TextFile
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_NO = frozenset({"", "no", "none", "false", "no_shard", "0"})
_CONFIGS = (*YAML_KINDS, ".json")
_WORDS = (b"fsdp", b"FSDP", b"zero_stage", b'"stage"')
# Accelerate's file, the Trainer's options as YAML or JSON, DeepSpeed's file.
_SHARDS = lazy(
    rb"distributed_type[\"']?:\s*[\"']?FSDP|zero_stage[\"']?:\s*3|[\"']stage[\"']\s*:\s*3\b"
    rb"|(?m:^)[ \t]*[\"']?fsdp[\"']?[ \t]*:[ \t]*[\"'\[]{0,2}(?!no|false|null)[A-Za-z]"
)
_STARTED = (b"--fsdp", b"fsdp", b"deepspeed", b"--config", b".yaml", b".yml", b".json")


def sharded_by(project: Project, path: str) -> str:
    """`run.sh:3`, the command that starts the program of a file and shards its model; "" where none is seen."""
    return project.keep(("sharded by", path), lambda: _find(project, path))


def _find(project: Project, path: str) -> str:
    shards = frozenset(
        p for word in _WORDS for p in project.files_containing(word, kinds=_CONFIGS) if _SHARDS.search(project.read(p) or b"")
    )
    for job in project.files_containing(b".py", kinds=(*YAML_KINDS, *SHELL_KINDS)):
        data = project.read(job) or b""
        if any(word in data for word in _STARTED) and isinstance(file := project.module(job), TextFile):
            for command in command_lines(file):
                if _shards(command, shards) and _starts(project, command, path):
                    return f"{job}:{command.span(command.words[0].start, command.words[0].end).line}"
    return ""


def _shards(command: CommandLine, shards: frozenset[str]) -> bool:
    for flag in (*command.launcher_flags, *command.flags):
        if flag.field == "fsdp" and flag.value is not None and flag.value.lower() not in _NO:
            return True
        if flag.field == "use_fsdp" and (flag.value is None or flag.value.lower() not in _NO):
            return True
    return any(p == end or p.endswith(f"/{end}") for end in _configs(command) for p in shards)


def _configs(command: CommandLine) -> Iterator[str]:
    for word in command.words:
        text = word.text.rpartition("=")[2].strip("\"'")
        if text.endswith(_CONFIGS) and "$" not in text:
            yield normpath(text).lstrip("./")


def _starts(project: Project, command: CommandLine, path: str) -> bool:
    script = script_of(project, command)
    module = project.module(script) if script else None
    return module is not None and (script == path or path in imported_files(project, module))
