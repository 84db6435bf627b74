"""The `device_map=` by which a model is loaded: in other files, carried by a dataclass, or kept by a class of the project."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import ClassSite
from codemods.analysis.loading.origins import Origin, made_class, origins
from codemods.analysis.model.signatures import bind
from codemods.analysis.names import dotted, last
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.store.project import Project

KEYWORD = "device_map"
SPREADS = frozenset({"auto", "balanced", "balanced_low_0", "sequential"})
_WRAPPERS = frozenset(
    {"get_peft_model", "prepare_model_for_kbit_training", "prepare_model_for_int8_training", "compile", "prepare_model"}
)


def spread_loads(project: Project, module: SourceModule, model: ast.expr) -> Iterator[tuple[SourceModule, ast.keyword]]:
    """(file, keyword) of each load that may make the model of this expression and lays its layers over all GPUs."""
    asked, todo = set[int](), [Origin(module, model)]
    while todo:
        origin = todo.pop()
        if id(origin.node) in asked:
            continue
        asked.add(id(origin.node))
        found = [origin] if isinstance(origin.node, ast.Call) and not origin.path else _made(project, origin)
        for made in found:
            call = made.node
            if isinstance(call, ast.Attribute) and not made.known:
                todo += _carried(project, made.module, call)
            if not isinstance(call, ast.Call) or made.path:
                continue
            name = last(dotted(call.func))
            if name == "from_pretrained":
                yield from ((made.module, k) for k in call.keywords if k.arg == KEYWORD and _is_spread(k.value))
                todo += [Origin(made.module, a) for a in call.args[:1] if "Peft" in dotted(call.func)]
            elif name in _WRAPPERS:
                todo += [Origin(made.module, a) for a in call.args[:1]]
            elif (site := made_class(project, made)) is not None:
                todo += _inside(made.module, site, call)


def _made(project: Project, origin: Origin) -> list[Origin]:
    return list(origins(project, origin.module, origin.node))


def _is_spread(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value in SPREADS


def _carried(project: Project, module: SourceModule, read: ast.Attribute) -> Iterator[Origin]:
    """`bundle.model` of `Bundle(model=…)`, where the class is a list of fields."""
    for origin in origins(project, module, read.value):
        site = made_class(project, origin)
        if site is None or not isinstance(origin.node, ast.Call) or _initializer(site) is not None:
            continue
        fields = [s.target.id for s in site.node.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]
        given = dict(zip(fields, origin.node.args, strict=False)) | {k.arg or "": k.value for k in origin.node.keywords}
        if read.attr in fields and read.attr in given:
            yield Origin(origin.module, given[read.attr])


def _inside(module: SourceModule, site: ClassSite, call: ast.Call) -> Iterator[Origin]:
    """What the constructor of a class keeps as it is: `self.backbone = backbone`."""
    function = _initializer(site)
    given = bind(function, call, bound=True) if function is not None else None
    for node in walk(function) if function is not None and given is not None else ():
        assert given is not None
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and dotted(node.targets[0]).startswith("self."):
            if node.value.id in given:
                yield Origin(module, given[node.value.id])


def _initializer(site: ClassSite) -> FunctionNode | None:
    return next((s for s in site.node.body if isinstance(s, ast.FunctionDef) and s.name == "__init__"), None)
