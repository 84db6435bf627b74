"""Whose `save_pretrained` is it? Those of transformers, diffusers and peft store all of it on the process that calls them.

A library that shares a model out has its own: each rank writes its part, and may wait for the others behind it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.analysis.bindings import Binding, bindings_of
from codemods.analysis.call_graph import called_function
from codemods.analysis.class_index import Role, class_facts, external_role, find_class
from codemods.analysis.class_values import class_values
from codemods.analysis.files.every_rank import Way
from codemods.analysis.literals import is_none
from codemods.analysis.names import dotted, end_of, qualified
from codemods.analysis.ranks.handed_arguments import arguments
from codemods.analysis.reaching import reaching, sure_binding
from codemods.files.source import SourceModule, walk, walk_scope
from codemods.runtime.record import record
from codemods.store.project import Project

_WHOLE = frozenset({"transformers", "diffusers", "peft", "sentence_transformers", "adapters"})
_SHARING = frozenset(
    {"oslo", "colossalai", "nemo", "megatron", "tensor_parallel", "parallelformers", "smdistributed", "alpa", "internlm", "libai",
     "bmtrain", "neuronx_distributed", "fairscale"}
)  # fmt: skip
_WRAPS = frozenset(
    {"unwrap_model", "unwrap", "prepare", "prepare_model", "DistributedDataParallel", "DDP", "DataParallel", "compile",
     "extract_model_from_parallel", "prepare_model_for_kbit_training", "prepare_model_for_int8_training"}
)  # fmt: skip
_MOVES = frozenset({"to", "cuda", "cpu", "half", "float", "bfloat16", "eval", "train", "requires_grad_"})
_UNKNOWN = frozenset({""})
_NOTHING: frozenset[str] = frozenset()
_DEPTH = 7
_MOST = 6  # callers


def libraries_of(project: Project, module: SourceModule, stored: ast.expr) -> frozenset[str]:
    """The packages of all that an expression may be an object of; "" among them where one is not shown."""
    return _Search(project, set()).of(module, stored, 0) or _UNKNOWN


def is_stored_whole(project: Project, module: SourceModule, stored: ast.expr) -> bool:
    """True where one process surely writes all of it, and waits for nobody."""
    return libraries_of(project, module, stored) <= _WHOLE


def may_be_shared_out(project: Project, module: SourceModule, stored: ast.expr, way: Way) -> bool:
    """True for a model of a library whose ranks each hold a part, and for one of which nothing is known beside such a library."""
    found = libraries_of(project, module, stored)
    return bool(found & _SHARING) or ("" in found and any(_uses_one(home) for home, _ in way.frames))


def _uses_one(module: SourceModule) -> bool:
    return any(i.dotted.partition(".")[0] in _SHARING for found in module.imports.values() for i in found)


@record
class _Search:
    project: Project
    seen: set[int]  # nodes that are being looked at: what is made of itself adds nothing

    def of(self, module: SourceModule, node: ast.expr, depth: int) -> frozenset[str]:
        if id(node) in self.seen or is_none(node):
            return _NOTHING
        if depth > _DEPTH:
            return _UNKNOWN
        self.seen.add(id(node))
        if isinstance(node, ast.Name):
            return _UNKNOWN if node.id in module.imports else self._name(module, node, depth)
        if isinstance(node, ast.Attribute):
            return self._part(module, node, depth)
        if isinstance(node, ast.Call):
            return self._call(module, node, depth)
        if isinstance(node, ast.IfExp):
            return self._all(((module, v) for v in (node.body, node.orelse)), depth)
        return _UNKNOWN

    def _all(self, values: Iterable[tuple[SourceModule, ast.expr]], depth: int) -> frozenset[str]:
        return frozenset().union(*(self.of(module, value, depth + 1) for module, value in values))

    def _name(self, module: SourceModule, name: ast.Name, depth: int) -> frozenset[str]:
        sure = sure_binding(module, module.function_of(name), name)
        bound = [sure] if sure is not None else reaching(module, name, bindings_of(module, name))
        found = [self._bound(module, name, b, depth) for b in bound]
        return frozenset().union(*found) if found else _UNKNOWN

    def _bound(self, module: SourceModule, name: ast.Name, bound: Binding, depth: int) -> frozenset[str]:
        value = bound.value
        if bound.parameter:
            return self._handed(module, name, bound.node, depth)
        if value is None:
            return _UNKNOWN
        if bound.part:  # `model, optimizer = accelerator.prepare(model, optimizer)`
            wraps = isinstance(value, ast.Call) and end_of(value.func) in (*_WRAPS, "initialize")
            same = [n for n in walk(value) if isinstance(n, ast.Name) and n.id == name.id] if wraps else []
            return self.of(module, same[0], depth + 1) if same else _UNKNOWN
        return self.of(module, value, depth + 1)

    def _handed(self, module: SourceModule, name: ast.Name, node: ast.AST, depth: int) -> frozenset[str]:
        """By what the parameter is noted as, else by what every caller hands over."""
        note = node.annotation if isinstance(node, ast.arg) else None
        if note is not None and dotted(note):
            return self._class(module, note)
        function = module.function_of(name)
        given = list(arguments(self.project, module, function, name.id)) if function is not None else []
        return self._all(given, depth) if 0 < len(given) <= _MOST else _UNKNOWN

    def _part(self, module: SourceModule, node: ast.Attribute, depth: int) -> frozenset[str]:
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            owner = module.class_of(node)
            facts = class_facts(self.project, module, owner) if owner is not None else None
            if facts is None:
                return _UNKNOWN
            if node.attr == "model" and facts.is_a(Role.HF_TRAINER):
                return frozenset({"transformers"})
            given = class_values(self.project, facts).given.get(node.attr, [])
            if not given or any(g.part is not None for g in given):
                return _UNKNOWN
            return self._all(((g.site.module, g.value) for g in given), depth)
        return self.of(module, node.value, depth + 1)  # `model.module`, `pipeline.unet`, `trainer.model`

    def _call(self, module: SourceModule, call: ast.Call, depth: int) -> frozenset[str]:
        name, func = end_of(call.func), call.func
        root = qualified(module, func).partition(".")[0]
        if root in _WHOLE or root in _SHARING:
            return frozenset({root})
        if external_role(qualified(module, func)) is Role.HF_TRAINER:
            return frozenset({"transformers"})  # trl's
        if name in _WRAPS and call.args:
            return self.of(module, call.args[0], depth + 1)
        if name in _MOVES and isinstance(func, ast.Attribute):
            return self.of(module, func.value, depth + 1)
        site = called_function(self.project, module, call)
        if site is not None and site.node.name != "__init__":
            given = [r.value for r in walk_scope(site.node) if isinstance(r, ast.Return) and r.value is not None]
            return self._all(((site.module, v) for v in given), depth) if given else _UNKNOWN
        made = func.value if isinstance(func, ast.Attribute) and name.startswith("from_") else func
        return self._class(module, made)

    def _class(self, module: SourceModule, named: ast.expr) -> frozenset[str]:
        root = qualified(module, named).partition(".")[0]
        if root in _WHOLE or root in _SHARING:
            return frozenset({root})
        site = find_class(self.project, module, dotted(named)) if dotted(named) else None
        if site is None:
            return _UNKNOWN
        facts = class_facts(self.project, site.module, site.node)
        if facts.is_a(Role.HF_TRAINER):
            return frozenset({"transformers"})
        bases = {base.partition(".")[0] for base in facts.external}
        found = frozenset(bases & (_WHOLE | _SHARING))
        return found if found and not facts.unresolved else _UNKNOWN
