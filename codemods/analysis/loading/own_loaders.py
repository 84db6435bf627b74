"""Classes of the project that derive from torch's loader, and make its sampler themselves."""

from __future__ import annotations

import ast

from codemods.analysis.class_index import ClassSite
from codemods.analysis.loading.origins import Origin, made_facts
from codemods.analysis.loading.samplers import Loader, is_torch_loader
from codemods.analysis.names import dotted
from codemods.analysis.variance.paths import parameters
from codemods.files.source import FunctionNode, walk
from codemods.store.project import Project


def own_loader(project: Project, origin: Origin) -> Loader | None:
    """The `super().__init__(..., sampler=...)` to which such an object hands the sampler that its constructor makes."""
    facts = made_facts(project, origin)
    if facts is None or facts.unresolved or not any(is_torch_loader(name) for name in facts.external):
        return None
    makers = [(s, s.methods()["__init__"]) for s in facts.lineage if "__init__" in s.methods()]
    if not makers or facts.method("sampler") is not None or not all(_hands_sampler_on(m) for _, m in makers[1:]):
        return None
    return _given(*makers[0])


def _given(site: ClassSite, made: FunctionNode) -> Loader | None:
    """The one call of the base that is given a sampler which the constructor was not itself given."""
    calls = [c for c in _base_calls(made) if (value := _sampler(c)) is not None and dotted(value) not in parameters(made)]
    return Loader(site.module, calls[0]) if len(calls) == 1 else None


def _hands_sampler_on(made: FunctionNode) -> bool:
    """True where a base takes a sampler by its name, and hands the same one to its own base."""
    return "sampler" in parameters(made) and any(dotted(_sampler(c)) == "sampler" for c in _base_calls(made))


def _base_calls(made: FunctionNode) -> list[ast.Call]:
    inner = (n for n in walk(made) if isinstance(n, ast.Call))
    return [c for c in inner if isinstance(c.func, ast.Attribute) and c.func.attr == "__init__"]


def _sampler(call: ast.Call) -> ast.expr | None:
    return next((k.value for k in call.keywords if k.arg == "sampler"), None)
