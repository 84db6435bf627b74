"""Is a script one process, whatever the library says that it calls? It starts no group, and nothing that it imports does."""

from __future__ import annotations

from codemods.analysis.distribution import is_test_file, ranks_in_file
from codemods.analysis.loading.same_program import whole_program
from codemods.files.import_statements import stem_of
from codemods.runtime.lazy_pattern import lazy
from codemods.store.file_facts import file_fact
from codemods.store.project import Project

# What makes a process one of several, or may, by its own name or by that of a library. A sampler and the wrapper start nothing.
_STARTS = lazy(
    rb"(?i:init|setup|set_up|start|launch|spawn|prepare|enter|create)\w*(?i:dist|ddp|rank|proc|parallel|worker|env)|"
    rb"(?i:dist|ddp|rank|proc|parallel)\w*(?i:init|setup|set_up|start|launch|spawn)|"
    rb"[aA]ccelerat(?:e|or)\b|PartialState|Trainer\b|[dD]eep[sS]peed|horovod|\bhvd\b|idist|ignite|[lL]ightning|\bFabric\b|\bray\b|"
    rb"mmcv|mmengine|detectron2|fairseq|catalyst|\bcomposer\b|colossalai|megatron|fvcore|fastreid|timm\.utils|spawn\(|launch\w*\(|"
    rb"_launch\b|Popen|apex\.parallel|torch_xla|smdistributed|bagua|byteps|mpi4py|submitit|transformers|device_mesh|rendezvous|"
    rb"parallel_state|MASTER_ADDR|import_module|__import__|hydra"
)

_HAS_A_GROUP = lazy(
    rb"DistributedDataParallel|torch\.distributed|import distributed|FullyShardedDataParallel|"
    rb"TrainingArguments|HfArgumentParser|tp_plan|import +transformers|transformers +import +\*|transformers\.train"
)


def may_start_a_group(project: Project, path: str) -> bool:
    """False for a program in which nothing, in all that it imports, starts a process group or joins one."""
    return any(project.fact(_may_start, p) for p in whole_program(project, path))


def starts_no_group(project: Project, path: str) -> bool:
    """True for a script that nobody imports and that reaches nothing by which a process joins others."""
    return project.keep(("starts no group", path), lambda: _find(project, path))


def _find(project: Project, path: str) -> bool:
    importers = (p for p in project.files_importing(stem_of(path)) if p != path and not is_test_file(p))
    if any(path in whole_program(project, p) for p in importers):
        return False
    return not may_start_a_group(project, path)


@file_fact
def _may_start(path: str, data: bytes) -> bool:
    del path
    return _STARTS.search(data) is not None


def asks_no_group(project: Project, path: str) -> bool:
    """True for a file of scripts that join no others, by anything seen: `torch.distributed.is_initialized()` stays False there.

    A script that takes models, and no Trainer, from transformers starts none by it. Who wraps a model has a group from somewhere.
    """
    return project.keep(("asks no group", path), lambda: _asks_none(project, path))


def _asks_none(project: Project, path: str) -> bool:
    importers = [p for p in project.files_importing(stem_of(path)) if p != path and not is_test_file(p)]
    programs = {path, *(p for p in importers if path in whole_program(project, p))}
    if not any(b"__main__" in (project.read(p) or b"") for p in programs):
        return False  # who runs it is not seen
    return not any(project.fact(_may_join, p) for program in programs for p in whole_program(project, program))


@file_fact
def _may_join(path: str, data: bytes) -> bool:
    del path
    if _HAS_A_GROUP.search(data) is not None:
        return True
    return any(m.group() != b"transformers" for m in _STARTS.finditer(data))


def is_of_lone_scripts(project: Project, path: str) -> bool:
    """True for a library whose every importer is such a script: no rank runs it, whatever it is prepared for."""
    return project.keep(("library of lone scripts", path), lambda: _is_of_lone_scripts(project, path))


def _is_of_lone_scripts(project: Project, path: str) -> bool:
    named = (p for p in project.files_importing(stem_of(path)) if p != path and not is_test_file(p))
    importers = [p for p in named if path in whole_program(project, p)]
    return bool(importers) and all(starts_no_group(project, p) and not _shows_ranks(project, p) for p in importers)


def _shows_ranks(project: Project, path: str) -> bool:
    module = project.module(path)
    return module is None or ranks_in_file(project, module) is not None
