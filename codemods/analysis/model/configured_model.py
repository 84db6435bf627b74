"""The models that a configuration file may be used with: what the project's own code hands to a Trainer made from one."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator

from codemods.analysis.class_index import ClassSite, Role, class_facts, find_class
from codemods.analysis.distribution import is_test_file
from codemods.analysis.model.by_hand import lightning_usage
from codemods.analysis.model.config_targets import class_at
from codemods.analysis.model.flag_setting import Framework, State, Wrapper
from codemods.analysis.model.trained_model import Trained, trained_by
from codemods.analysis.model.unused_flag import wrappers
from codemods.analysis.names import dotted, last, qualified
from codemods.api.findings import Evidence
from codemods.files.source import SourceModule
from codemods.files.text_file import YAML_KINDS
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

MOST_SCRIPTS = 6  # of more programs nobody could say which configuration goes with which
# told from the bytes: composing every file of a large configuration takes seconds
_NAMED = lazy(rb"^[ \t-]*(?:_target_|class_path):[ \t]*[\"']?([A-Za-z_][\w.]*\.\w+)", re.M)


_TRAINER = lazy(rb"Trainer\(")
_TOKEN = lazy(rb"[()]|\*\*|#[^\n]*|\"[^\"\n]*\"|'[^'\n]*'")


def configured(project: Project, framework: Framework | None) -> Trained:
    """The models behind the configurations of a project. unknown: why there may be others, or why none was found."""
    return project.memo(("configured", framework), lambda: _configured(project, framework))


def _configured(project: Project, framework: Framework | None) -> Trained:
    makers = _lightning(project) if framework is Framework.LIGHTNING else _by_keyword(project, framework)
    if len({e.path for e in makers}) > MOST_SCRIPTS:
        return Trained(unknown="many programs of the project take configurations: which one takes this is not in the code")
    found = [trained for maker in makers for trained in maker.models()]
    usages = {(u.site.module.path, u.site.node.lineno, u.entry): u for one in found for u in one.usages}
    evidence = dict.fromkeys(e for one in found for e in one.evidence)
    unknown = next((one.unknown for one in found if one.unknown), "")
    if not usages:
        return Trained(unknown=unknown or "what is trained with this configuration is not seen in the code")
    return Trained(tuple(usages.values()), unknown, tuple(evidence))


@record
class _Maker:
    """A place that makes a Trainer or a wrapper from a configuration, and the models behind it, worked out when asked for."""

    path: str
    models: Callable[[], Iterable[Trained]]


def _by_keyword(project: Project, framework: Framework | None) -> list[_Maker]:
    """`DDP(model, find_unused_parameters=cfg.find_unused_parameters)`; of the Hugging Face Trainer nothing is followed."""
    if framework is Framework.HF:
        return []
    return [
        _Maker(wrapper.module.path, lambda w=wrapper: [trained_by(project, w)])  # type: ignore[misc]
        for wrapper in _wrappers_in(project, b"find_unused_parameters")
        if any(s.state is State.UNKNOWN and "find_unused_parameters" in s.text.partition("=")[2] for s in wrapper.settings)
    ]


def _wrappers_in(project: Project, word: bytes) -> Iterator[Wrapper]:
    for path in project.files_containing(word):
        module = project.module(path) if not is_test_file(path) else None
        yield from wrappers(project, module) if module is not None else ()


def _lightning(project: Project) -> list[_Maker]:
    out = []
    for path in project.files_containing(b"Trainer("):
        data = project.read(path) or b""
        wanted = b"ightning" in data and not is_test_file(path) and _spreads(data)
        module = project.module(path) if wanted else None
        for wrapper in wrappers(project, module) if module is not None else ():
            spread = any(k.arg is None for k in wrapper.call.keywords)
            if wrapper.framework is Framework.LIGHTNING and spread and last(dotted(wrapper.call.func)) == "Trainer":
                out.append(_Maker(path, lambda w=wrapper: [trained_by(project, w)]))  # type: ignore[misc]
    named = False
    for path in project.files_containing(b"LightningCLI("):
        module = project.module(path) if not is_test_file(path) else None
        for call in module.calls_named("LightningCLI") if module is not None else ():
            assert module is not None
            site = _cli_model(project, module, call)
            named = named or site is None
            if site is not None:
                evidence = Evidence("static", f"LightningCLI trains {site.name}", path, call.lineno)
                out.append(_Maker(path, lambda s=site, e=evidence: [_of_class(project, s, e)]))  # type: ignore[misc]
    if named or any(not is_test_file(p) for p in project.files_containing(b"instantiate(")):
        out.append(_Maker("", lambda: _named_in_files(project)))
    return out


def _spreads(data: bytes) -> bool:
    """False where no call of a Trainer in the text has a `**` between its brackets."""
    for call in _TRAINER.finditer(data):
        depth = 1
        for token in _TOKEN.finditer(data, call.end()):
            text = token.group()
            if text == b"**":
                return True
            depth += (text == b"(") - (text == b")")
            if depth == 0:
                break
    return False


def _cli_model(project: Project, module: SourceModule, call: ast.Call) -> ClassSite | None:
    given = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "model_class"), None)
    name = dotted(given) if given is not None else ""
    return find_class(project, module, name) if name and qualified(module, call.func) else None


def _named_in_files(project: Project) -> Iterator[Trained]:
    """LightningModules that YAML files name by `_target_` or `class_path`."""
    paths = {p for word in (b"_target_", b"class_path") for p in project.files_containing(word, kinds=YAML_KINDS)}
    places = [(path, match) for path in sorted(paths) for match in _NAMED.finditer(project.read(path) or b"")]
    seen: set[str] = set()
    for path, match in places:
        name = match.group(1).decode("ascii", "replace")
        site = class_at(project, name) if name not in seen else None
        seen.add(name)
        if site is not None and _may_be_trained(project, site):
            line = (project.read(path) or b"").count(b"\n", 0, match.start(1)) + 1
            yield _of_class(project, site, Evidence("static", f"a configuration names {name}", path, line))


def _may_be_trained(project: Project, site: ClassSite) -> bool:
    """True for a LightningModule, but for one that has no training_step: data may be derived from it by mistake."""
    facts = class_facts(project, site.module, site.node)
    return facts.is_a(Role.LIGHTNING_MODULE) and (bool(facts.opaque) or facts.method("training_step") is not None)


def _of_class(project: Project, site: ClassSite, evidence: Evidence) -> Trained:
    found = lightning_usage(project, site)
    return Trained(unknown=found, evidence=(evidence,)) if isinstance(found, str) else Trained((found,), "", (evidence,))
