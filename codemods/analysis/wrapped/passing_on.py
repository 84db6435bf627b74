"""Whether the wrapper passes on what it does not have: those of DeepSpeed and FSDP do, DistributedDataParallel does not."""

from __future__ import annotations

from codemods.analysis.literals import is_none
from codemods.analysis.wrapped.holders import Wrapped
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_TYPE = lazy(rb"^[ \t]*distributed_type[ \t]*:[ \t]*['\"]?(\w+)", 8)  # 8: re.MULTILINE
_PASSING = frozenset({b"DEEPSPEED", b"FSDP", b"MEGATRON_LM"})
_PLUGINS = frozenset({"deepspeed_plugin", "fsdp_plugin", "megatron_lm_plugin"})
_BARE = frozenset({b"NO", b"no"})


def passes_on(project: Project, found: Wrapped) -> bool:
    """True where Accelerate is set up for another wrapper: by its plugin, or in every configuration of the project."""
    if not found.prepared:
        return False
    for call in found.module.calls_named("Accelerator"):
        if any(k.arg in _PLUGINS and not is_none(k.value) for k in call.keywords):
            return True
    return _configured(project)


def _configured(project: Project) -> bool:
    def build() -> bool:
        paths = project.files_containing(b"distributed_type", kinds=(".yaml", ".yml"))
        types = {m.group(1) for p in paths for m in _TYPE.finditer(project.read(p) or b"")} - _BARE
        return bool(types) and types <= _PASSING

    return project.keep("accelerate passes attributes on", build)
