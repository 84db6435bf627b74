"""The models that a configuration file may be used with: what the project's own code hands to a Trainer made from one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import ClassSite, Role, class_facts, find_class
from codemods.analysis.distribution import is_test_file
from codemods.analysis.model.config_flags import class_names
from codemods.analysis.model.model_usage import Entry, usage_of
from codemods.analysis.model.trained_model import Trained, trained_by
from codemods.analysis.model.unused_flag import Framework, State, wrappers
from codemods.analysis.names import dotted, last, qualified
from codemods.findings import Evidence
from codemods.project import Project
from codemods.source import SourceModule
from codemods.text_file import TEXT_KINDS, TextFile

MOST_FILES = 40  # beyond it nobody could say which configuration goes with which model


def configured(project: Project, framework: Framework | None) -> Trained:
    """The models behind the configurations of a project. unknown: why there may be others, or why none was found."""
    return project.memo(("configured", framework), lambda: _configured(project, framework))


def _configured(project: Project, framework: Framework | None) -> Trained:
    found = list(_lightning(project) if framework is Framework.LIGHTNING else _by_keyword(project, framework))
    usages = {(u.site.module.path, u.site.node.lineno, u.entry): u for one in found for u in one.usages}
    evidence = dict.fromkeys(e for one in found for e in one.evidence)
    unknown = next((one.unknown for one in found if one.unknown), "")
    if not usages:
        return Trained(unknown=unknown or "what is trained with this configuration is not seen in the code")
    return Trained(tuple(usages.values()), unknown, tuple(evidence))


def _by_keyword(project: Project, framework: Framework | None) -> Iterator[Trained]:
    """`DDP(model, find_unused_parameters=cfg.find_unused_parameters)`; of the Hugging Face Trainer nothing is followed."""
    if framework is Framework.HF:
        return
    for path in project.files_containing(b"find_unused_parameters")[:MOST_FILES]:
        module = project.module(path) if not is_test_file(path) else None
        for wrapper in wrappers(project, module) if module is not None else ():
            if any(s.state is State.UNKNOWN and "find_unused_parameters" in s.text.partition("=")[2] for s in wrapper.settings):
                yield trained_by(project, wrapper)


def _lightning(project: Project) -> Iterator[Trained]:
    from_files = False
    for path in project.files_containing(b"Trainer(")[:MOST_FILES]:
        module = project.module(path) if not is_test_file(path) else None
        for wrapper in wrappers(project, module) if module is not None else ():
            spread = any(k.arg is None for k in wrapper.call.keywords)
            if wrapper.framework is Framework.LIGHTNING and spread and last(dotted(wrapper.call.func)) == "Trainer":
                yield trained_by(project, wrapper)
    for path in project.files_containing(b"LightningCLI(")[:MOST_FILES]:
        module = project.module(path) if not is_test_file(path) else None
        for call in module.calls_named("LightningCLI") if module is not None else ():
            assert module is not None
            site = _cli_model(project, module, call)
            from_files = from_files or site is None
            if site is not None:
                yield _of_class(project, site, Evidence("static", f"LightningCLI trains {site.name}", path, call.lineno))
    if from_files or any(not is_test_file(p) for p in project.files_containing(b"instantiate(")):
        yield from _named_in_files(project)


def _cli_model(project: Project, module: SourceModule, call: ast.Call) -> ClassSite | None:
    given = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "model_class"), None)
    name = dotted(given) if given is not None else ""
    return find_class(project, module, name) if name and qualified(module, call.func) else None


def _named_in_files(project: Project) -> Iterator[Trained]:
    """LightningModules that YAML files name by `_target_` or `class_path`."""
    paths = {p for word in (b"_target_", b"class_path") for p in project.files_containing(word, kinds=TEXT_KINDS)}
    for path in sorted(paths)[: MOST_FILES * 5]:
        file = project.module(path)
        for name, line in class_names(file) if isinstance(file, TextFile) else ():
            site = _class_at(project, name)
            if site is not None and class_facts(project, site.module, site.node).is_a(Role.LIGHTNING_MODULE):
                assert file is not None
                yield _of_class(project, site, Evidence("static", f"a configuration names {name}", path, line))


def _class_at(project: Project, name: str) -> ClassSite | None:
    """The class of a dotted name, as an import at the root of the project finds it."""
    found = project.resolve(name, "config.yaml")
    module = project.module(found.path) if found is not None and len(found.rest) == 1 else None
    return find_class(project, module, found.rest[0]) if module is not None and found is not None else None


def _of_class(project: Project, site: ClassSite, evidence: Evidence) -> Trained:
    return Trained((usage_of(project, site, Entry.TRAINING_STEP),), "", (evidence,))
