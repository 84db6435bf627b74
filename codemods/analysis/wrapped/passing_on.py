"""Whether the wrapper passes on what it does not have: those of DeepSpeed and FSDP do, DistributedDataParallel does not."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from posixpath import basename, dirname, join, normpath

from codemods.analysis.job_files.documented_starts import starts
from codemods.analysis.literals import is_none
from codemods.analysis.wrapped.holders import Wrapped
from codemods.analysis.wrapped.needed_engine import needs_deepspeed
from codemods.files.text_file import SHELL_KINDS
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_TYPE = lazy(rb"^[ \t]*distributed_type[ \t]*:[ \t]*['\"]?(\w+)", 8)  # 8: re.MULTILINE
_TEXTS = (*SHELL_KINDS, ".md", ".rst", ".txt")
_JOINED = lazy(rb"\\[ \t]*\r?\n")
_COMMAND = lazy(rb"accelerate[ \t]+launch[ \t](?P<rest>[^\n]*)")
_CONFIG = lazy(rb"--config_file[= \t]+[\"']?(?P<path>[\w./-]+)")
_GIVES = lazy(rb"--config_file|--use_(?:deepspeed|fsdp|megatron_lm)")
_SCRIPT = lazy(rb"[\w./-]+\.py\b")
_PASSING = frozenset({b"DEEPSPEED", b"FSDP", b"MEGATRON_LM"})
_PLUGINS = frozenset({"deepspeed_plugin", "fsdp_plugin", "megatron_lm_plugin"})
_SHARDING = frozenset({"deepspeed", "fsdp"})
_KEY = lazy(rb"^[ \t]*(?:deepspeed|fsdp)[ \t]*:[ \t]*['\"]?[\w.$/{]", 8)  # of a YAML file with TrainingArguments
_BARE = frozenset({b"NO", b"no"})


def passes_on(project: Project, found: Wrapped) -> bool:
    """True where Accelerate is set up for another wrapper: by its plugin, or in every configuration of the project."""
    if not found.prepared:
        return False
    for call in found.module.calls_named("Accelerator"):
        if any(k.arg in _PLUGINS and not is_none(k.value) for k in call.keywords):
            return True
    if found.module.holds(b"DistributedDataParallelKwargs(") and _is_started_without(project, found.module.path):
        return False  # options of DDP, and no command names the configuration that the repository has
    path = found.module.path
    return _configured(project) or _is_started_so(project, path) or needs_deepspeed(project, path)


def runs_under_deepspeed(project: Project, path: str) -> bool:
    """True where Accelerate comes to DeepSpeed alone: the program needs it, or each command that starts it is for it."""
    if needs_deepspeed(project, path):
        return True
    given = [_types_of(project, text, command) for text, command in _commands_of(project, path)]
    return bool(given) and all(types == {b"DEEPSPEED"} for types in given)


def _is_started_so(project: Project, path: str) -> bool:
    """True where the commands that start the script give a configuration, and each one is for such a wrapper."""
    given = [_types_of(project, text, command) for text, command in _commands_of(project, path)]
    return bool(given) and all(types and types <= _PASSING for types in given)


def _is_started_without(project: Project, path: str) -> bool:
    """True where commands that start the script are written down, and none of them gives a configuration."""
    commands = [command for _, command in _commands_of(project, path)]
    return bool(commands) and not any(_GIVES.search(command) for command in commands)


def _commands_of(project: Project, path: str) -> Iterator[tuple[str, bytes]]:
    """(file, what follows `accelerate launch`) of each command that starts the script."""
    name = basename(path)
    for text in sorted(project.files_containing(b"accelerate", kinds=_TEXTS)) if path.endswith(".py") else ():
        for command in _COMMAND.finditer(_JOINED.sub(b" ", project.read(text) or b"")):
            script = _SCRIPT.search(command["rest"])
            if script is not None and basename(script.group().decode("utf-8", "replace")) == name:
                yield text, command["rest"]


def _types_of(project: Project, text: str, command: bytes) -> frozenset[bytes]:
    """What the configuration of a command says; nothing where it names none that the repository has."""
    named = _CONFIG.search(command)
    written = named["path"].decode("utf-8", "replace") if named is not None else ""
    for path in (normpath(join(dirname(text), written)), normpath(written)) if written else ():
        if path in project.files:
            return frozenset(m.group(1) for m in _TYPE.finditer(project.read(path) or b""))
    return frozenset()


def _configured(project: Project) -> bool:
    def build() -> bool:
        paths = project.files_containing(b"distributed_type", kinds=(".yaml", ".yml"))
        types = {m.group(1) for p in paths for m in _TYPE.finditer(project.read(p) or b"")} - _BARE
        return bool(types) and types <= _PASSING

    return project.keep("accelerate passes attributes on", build)


def runs_sharded(project: Project) -> bool:
    """True where a Trainer of transformers is set up for DeepSpeed or FSDP: by every command that starts several, or in code."""

    def build() -> bool:
        return _configured(project) or _started_sharded(project) or _given_sharded(project)

    return project.keep("trainers run sharded", build)


def _started_sharded(project: Project) -> bool:
    several = [s for s in starts(project) if s.several]
    return bool(several) and all(_SHARDING & s.flags for s in several)


def _given_sharded(project: Project) -> bool:
    for word in sorted(_SHARDING):
        paths = project.files_containing(word.encode(), kinds=(".yaml", ".yml"))
        if any(_KEY.search(project.read(p) or b"") for p in paths):
            return True
        for path in project.files_containing(f"{word}=".encode()):
            module = project.module(path)
            for call in module.nodes(ast.Call) if module is not None else ():
                given = (k.value for k in call.keywords if k.arg == word)  # `args.deepspeed` is an option that may be left out
                if any(not is_none(value) and not isinstance(value, ast.Attribute) for value in given):
                    return True
    return False
