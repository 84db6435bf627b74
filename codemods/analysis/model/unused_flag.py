"""Every spelling of DDP's find-unused-parameters flag in Python: which wrappers a file has, and where their flag is decided."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import Role, class_facts, external_role, find_class
from codemods.analysis.distribution import is_test_file
from codemods.analysis.model.flag_setting import Framework, Setting, Wrapper
from codemods.analysis.model.flag_values import keyword_settings
from codemods.analysis.model.strategy_names import strategy_settings
from codemods.analysis.names import dotted, family, last, qualified
from codemods.data.find_unused_parameters import HF_KEYWORD, RAW_KEYWORD, STATIC_KEYWORDS, STRATEGY_CLASSES
from codemods.files.source import SourceModule, called_name
from codemods.store.project import Project

_ENDS = frozenset(
    {"DistributedDataParallel", "DistributedDataParallelKwargs", "Trainer", "Fabric", "from_argparse_args", *STRATEGY_CLASSES}
)
_ARGUMENTS = ("Arguments", "Config", "Args")


def wrappers(project: Project, module: SourceModule) -> tuple[Wrapper, ...]:
    """Every wrapper in the file, in source order."""
    return project.memo(("ddp wrappers", module.path), lambda: tuple(_wrappers(project, module)))


def _wrappers(project: Project, module: SourceModule) -> Iterator[Wrapper]:
    taken: set[int] = set()
    likely = [call for call in module.nodes(ast.Call) if _may_wrap(module, call)]
    for call in likely:
        name = qualified(module, call.func)
        end, root = last(name), family(name)
        if end == "DistributedDataParallel" and root == "torch":
            yield _keyword_wrapper(project, module, call, Framework.TORCH, RAW_KEYWORD, taken)
        elif end == "DistributedDataParallelKwargs":
            yield _keyword_wrapper(project, module, call, Framework.ACCELERATE, RAW_KEYWORD, taken)
        elif root == "lightning" and (end in ("Trainer", "Fabric") or name.endswith(".Trainer.from_argparse_args")):
            framework = Framework.FABRIC if end == "Fabric" else Framework.LIGHTNING
            yield Wrapper(framework, module, call, tuple(strategy_settings(project, module, call, taken)), None)
        elif (name != "dict" and any(k.arg == HF_KEYWORD for k in call.keywords)) or _is_arguments(project, module, call):
            yield _keyword_wrapper(project, module, call, Framework.HF, HF_KEYWORD, taken)
    for call in likely:
        if id(call) not in taken and last(qualified(module, call.func)) in STRATEGY_CLASSES and _is_lightning(module, call):
            yield _keyword_wrapper(project, module, call, Framework.LIGHTNING, RAW_KEYWORD, taken)


def _may_wrap(module: SourceModule, call: ast.Call) -> bool:
    """False for nearly every call, by its last name alone: as it is written, or as it was imported."""
    name = called_name(call)
    if name in _ENDS or name.endswith(_ARGUMENTS) or any(k.arg == HF_KEYWORD for k in call.keywords):
        return True
    return any(last(i.dotted) in _ENDS or last(i.dotted).endswith(_ARGUMENTS) for i in module.imports.get(name, ()))


def settings_in(project: Project, module: SourceModule) -> tuple[tuple[Wrapper, tuple[Setting, ...]], ...]:
    """The wrappers whose flag is decided in the file, in this file first, each with the settings that stand here."""
    others = project.memo("wrappers with settings elsewhere", lambda: _decided_elsewhere(project)).get(module.path, ())
    both = (*wrappers(project, module), *others)
    found = ((w, tuple(s for s in w.settings if s.module is module)) for w in both)
    return tuple((w, here) for w, here in found if here)


def _decided_elsewhere(project: Project) -> dict[str, tuple[Wrapper, ...]]:
    """Path of a setting -> wrappers of other files that it is for."""
    out: dict[str, tuple[Wrapper, ...]] = {}
    for path in project.files_containing(RAW_KEYWORD.encode()):
        module = project.module(path) if not is_test_file(path) else None
        for wrapper in wrappers(project, module) if module is not None else ():
            for home in dict.fromkeys(s.module.path for s in wrapper.settings if s.module is not module):
                out[home] = (*out.get(home, ()), wrapper)
    return out


def _is_lightning(module: SourceModule, call: ast.Call) -> bool:
    return family(qualified(module, call.func)) == "lightning"


def _is_arguments(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for TrainingArguments and what derives from it."""
    name = qualified(module, call.func)
    if external_role(name) is Role.HF_ARGUMENTS:
        return True
    written = dotted(call.func)
    if not written.endswith(_ARGUMENTS):
        return False
    site = find_class(project, module, written)
    return site is not None and class_facts(project, site.module, site.node).is_a(Role.HF_ARGUMENTS)


def _keyword_wrapper(
    project: Project, module: SourceModule, call: ast.Call, framework: Framework, keyword: str, taken: set[int]
) -> Wrapper:
    taken.add(id(call))
    settings = tuple(keyword_settings(project, module, call, keyword))
    static = next((k.value for k in call.keywords if k.arg in STATIC_KEYWORDS), None)
    constant = static.value if isinstance(static, ast.Constant) else None
    return Wrapper(framework, module, call, settings, constant if isinstance(constant, bool) else None if static else False)
