"""Accelerators that are told nothing of DDP, and the models that they prepare: DDP looks for no unused parameters there."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.accelerators import is_accelerator, made_by
from codemods.analysis.class_index import ClassSite, Role, class_facts
from codemods.analysis.loading.origins import made_class, origins
from codemods.analysis.model.flag_setting import Framework, Setting, State, Wrapper
from codemods.analysis.names import family, last, qualified
from codemods.data.find_unused_parameters import RAW_KEYWORD
from codemods.files.source import SourceModule
from codemods.store.project import Project

_OTHER_MEANS = ("kwargs_handlers", "deepspeed_plugin", "fsdp_plugin", "megatron_lm_plugin", "parallelism_config")
# A handler that is put in later, and launch files that have another engine wrap the model.
_OTHER_WORDS = (b"ddp_handler", b"DEEPSPEED", b"FSDP", b"use_deepspeed", b"use_fsdp")


def plain_accelerators(project: Project, module: SourceModule) -> Iterator[tuple[Wrapper, tuple[ClassSite, ...]]]:
    """Each with the classes of the models that this file has it prepare."""
    calls = [c for c in module.calls_named("Accelerator") if _is_plain(module, c)]
    if not calls or any(project.files_containing(word) for word in _OTHER_WORDS[:1]) or _has_another_engine(project):
        return
    for call in calls:
        sites = tuple(_prepared(project, module, call))
        if sites:
            setting = Setting(State.DEFAULT, module, call, RAW_KEYWORD)  # no keyword of this call says it
            yield Wrapper(Framework.ACCELERATE, module, call, (setting,), False), sites


def _has_another_engine(project: Project) -> bool:
    kinds = (".yaml", ".yml", ".json", ".sh", ".md", ".py")
    return any(project.files_containing(word, kinds=kinds) for word in _OTHER_WORDS[1:])


def _is_plain(module: SourceModule, call: ast.Call) -> bool:
    name = qualified(module, call.func)
    if last(name) != "Accelerator" or family(name) != "accelerate" or any(isinstance(a, ast.Starred) for a in call.args):
        return False
    return not any(k.arg is None or k.arg in _OTHER_MEANS for k in call.keywords)


def _prepared(project: Project, module: SourceModule, call: ast.Call) -> Iterator[ClassSite]:
    seen: set[int] = set()
    for prepare in module.calls_named("prepare", "prepare_model"):
        if not isinstance(prepare.func, ast.Attribute) or not is_accelerator(project, module, prepare.func.value):
            continue
        if not any(made.call is call for made in made_by(project, module, prepare.func.value)):
            continue
        for given in prepare.args:
            for origin in origins(project, module, given) if not isinstance(given, ast.Starred) else ():
                site = made_class(project, origin)
                if site is None or id(site.node) in seen or not class_facts(project, site.module, site.node).is_a(Role.NN_MODULE):
                    continue
                seen.add(id(site.node))
                yield site
