"""Does Lightning read the `monitor` of a scheduler? Only of a ReduceLROnPlateau, or where `reduce_on_plateau` is set.

Any other scheduler steps by itself, and its `monitor` may name a key that nobody logs (`_configure_schedulers_automatic_opt` in
`core/optimizer.py` of Lightning 2.6.6).
"""

from __future__ import annotations

import ast
import re

from codemods.analysis.bindings import name_or_field_bindings
from codemods.analysis.call_graph import called_function
from codemods.analysis.class_index import class_facts, find_class
from codemods.analysis.distribution import is_test_file
from codemods.analysis.model.signatures import returned
from codemods.analysis.names import dotted, last, qualified
from codemods.files.source import SourceModule
from codemods.store.project import Project

_PLATEAU = "ReduceLROnPlateau"
_UNKNOWN = ""
_SCHEDULERS = ("scheduler", "lr_scheduler")
_SOME = "a learning-rate scheduler's monitor"
_DEPTH = 5
_GIVES_LAMBDA = re.compile(r"get_\w+_schedule(_\w+)?$")  # what transformers makes of the optimizer: a LambdaLR


def reader_of(project: Project, module: SourceModule, entries: dict[str, ast.expr], at: ast.AST) -> str | None:
    """What decides by the monitor among these entries; None where nothing is seen to read it, "" where it is no scheduler's."""
    forced = entries.get("reduce_on_plateau")
    if isinstance(forced, ast.Constant):
        return _SOME if forced.value else None
    made = next((entries[name] for name in _SCHEDULERS if name in entries), None)
    if made is None:
        function = module.function_of(at)
        of_optimizers = function is not None and function.name == "configure_optimizers"
        return "" if not of_optimizers else _SOME if _is_named(project) else None
    kinds = _kinds(project, module, made, _DEPTH)
    if _PLATEAU in kinds:
        return f"the monitor of {_PLATEAU}"
    return _SOME if _UNKNOWN in kinds and _is_named(project) else None


def _is_named(project: Project) -> bool:
    """True where a program or a configuration names it: a scheduler that is not seen may be one then."""

    def ask() -> bool:
        paths = project.files_containing(_PLATEAU.encode(), kinds=(".py", ".yaml", ".yml", ".json", ".toml"))
        return any(not is_test_file(path) for path in paths)

    return project.keep("names a plateau scheduler", ask)


def _kinds(project: Project, module: SourceModule, node: ast.expr, depth: int) -> set[str]:
    """The classes that a scheduler may be of, by their last names; `_UNKNOWN` among them where one is not seen."""
    if depth < 0:
        return {_UNKNOWN}
    if isinstance(node, ast.Dict):
        inner = entries_of(node).get("scheduler")
        return _kinds(project, module, inner, depth - 1) if inner is not None else {_UNKNOWN}
    if isinstance(node, ast.IfExp):
        return _kinds(project, module, node.body, depth) | _kinds(project, module, node.orelse, depth)
    if isinstance(node, ast.Constant):
        return set() if node.value is None else {_UNKNOWN}
    if isinstance(node, ast.Call):
        return _of_call(project, module, node, depth)
    bound = name_or_field_bindings(module, node)
    kinds = set() if bound else {_UNKNOWN}
    for binding in bound:
        if binding.value is None or binding.part:
            kinds.add(_UNKNOWN)
        else:
            kinds |= _kinds(project, module, binding.value, depth - 1)
    return kinds


def _of_call(project: Project, module: SourceModule, call: ast.Call, depth: int) -> set[str]:
    name = dotted(call.func)
    if name and (owner := find_class(project, module, name)) is not None:
        facts = class_facts(project, owner.module, owner.node)
        return {last(base) for base in facts.external} | ({_UNKNOWN} if facts.unresolved else {last(name)})
    if name and (found := called_function(project, module, call)) is not None:
        given = returned(found.node, found.module)
        return {k for value in given for k in _kinds(project, found.module, value, depth - 1)} if given else {_UNKNOWN}
    root, end = name.partition(".")[0], last(qualified(module, call.func))
    imported = module.imports.get(root, ())
    if not imported or any(project.resolve(i.dotted, module.path) for i in imported):
        return {_UNKNOWN}
    return {end} if end[:1].isupper() or _GIVES_LAMBDA.match(end) else {_UNKNOWN}


def entries_of(mapping: ast.Dict) -> dict[str, ast.expr]:
    """The values of a written dict by their literal keys."""
    pairs = zip(mapping.keys, mapping.values, strict=True)
    return {key.value: value for key, value in pairs if isinstance(key, ast.Constant) and isinstance(key.value, str)}
