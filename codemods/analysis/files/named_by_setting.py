"""Objects of a class whose file a setting names: `importlib.import_module(cfg.trainer.type).Trainer(cfg)`."""

from __future__ import annotations

import ast
import os
import re

from codemods.analysis.bindings import bindings_of
from codemods.analysis.class_index import ClassSite, class_facts, local_class, overriding
from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.unused import ELSEWHERE
from codemods.files.import_statements import stem_of
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project


def leads_by_setting(project: Project, module: SourceModule, call: ast.Call, function: FunctionNode) -> bool:
    """True for a call on an object of such a class, where the one class of that name has the function and no heir another."""
    if not module.holds(b"import_module(") or not isinstance(call.func, ast.Attribute):
        return False
    made = _bound(module, call.func.value)
    name = _class_name(module, made.func) if isinstance(made, ast.Call) else ""
    site = project.memo(("class named by a setting", name), lambda: _only_class(project, name)) if name else None
    if site is None or overriding(project, site, call.func.attr) != ():
        return False
    found = class_facts(project, site.module, site.node).method(call.func.attr)
    return found is not None and found[1] is function


def _bound(module: SourceModule, node: ast.expr) -> ast.expr | None:
    """What the one assignment gives a name; the expression itself where it is none."""
    if not isinstance(node, ast.Name):
        return node
    bound = bindings_of(module, node)
    return bound[0].value if len(bound) == 1 and not bound[0].part and not bound[0].parameter else None


def _class_name(module: SourceModule, node: ast.expr) -> str:
    """`Trainer` of `lib.Trainer` and `getattr(lib, "Trainer")`, where `import_module` gave `lib`; "" for anything else."""
    if isinstance(node, ast.Name):
        value = _bound(module, node)
        return _class_name(module, value) if value is not None and not isinstance(value, ast.Name) else ""
    if isinstance(node, ast.Attribute):
        return node.attr if _is_imported(module, node.value) else ""
    if isinstance(node, ast.Call) and dotted(node.func) == "getattr" and len(node.args) == 2:
        held, named = node.args
        written = named.value if isinstance(named, ast.Constant) and isinstance(named.value, str) else ""
        return written if _is_imported(module, held) else ""
    return ""


def _is_imported(module: SourceModule, node: ast.expr) -> bool:
    value = _bound(module, node)
    return isinstance(value, ast.Call) and last(dotted(value.func)) == "import_module"


def _only_class(project: Project, name: str) -> ClassSite | None:
    """The project's one class of that name, in a file that a setting names."""
    header = re.compile(rb"^\s*class\s+" + re.escape(name.encode()) + rb"\b", re.MULTILINE)
    holding = project.files_containing(f"class {name}".encode())
    paths = [p for p in holding if not is_test_file(p) and header.search(project.read(p) or b"")]
    module = project.module(paths[0]) if len(paths) == 1 else None
    node = local_class(module, name) if module is not None else None
    if module is None or node is None:
        return None
    return ClassSite(module, node) if project.files_containing(os.fsencode(stem_of(module.path)), kinds=ELSEWHERE) else None
