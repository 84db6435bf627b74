"""The project class that an object has by the annotation of the parameter it comes from, and what functions hand back."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_in
from codemods.analysis.call_graph import called_function
from codemods.analysis.class_index import ClassFacts, class_facts, find_class
from codemods.analysis.class_values import class_values
from codemods.analysis.handed import handed
from codemods.analysis.model.signatures import parameters, returned
from codemods.analysis.names import dotted
from codemods.files.source import SourceModule
from codemods.store.project import Project


def given_back(project: Project, module: SourceModule, call: ast.Call) -> ast.expr | None:
    """The argument that a project function gives back as it is, asked for `model = change(model)` alone."""
    up = module.parent(call)
    target = dotted(up.targets[0]) if isinstance(up, ast.Assign) and len(up.targets) == 1 else ""
    if not target or not any(dotted(a) == target for a in call.args):
        return None
    site = called_function(project, module, call)
    values = {dotted(v) for v in returned(site.node, site.module)} if site is not None else set()
    name = values.pop() if len(values) == 1 else ""
    if site is None or not name or len(bindings_in(site.module, site.node, name)) != 1:
        return None
    return handed(site, call).get(name)


def annotated_class(project: Project, module: SourceModule, node: ast.expr) -> ClassFacts | None:
    """The project class of a parameter with an annotation, or of a field that such a parameter is put into."""
    if isinstance(node, ast.Attribute) and dotted(node.value) == "self" and (owner := module.class_of(node)):
        for one in class_values(project, class_facts(project, module, owner)).given.get(node.attr, ()):
            if isinstance(one.value, ast.Name) and (found := annotated_class(project, one.site.module, one.value)):
                return found
        return None
    function = module.function_of(node) if isinstance(node, ast.Name) else None
    if function is None or not isinstance(node, ast.Name):
        return None
    noted = next((p.annotation for p in parameters(function, bound=False) if p.arg == node.id), None)
    written = noted.value if isinstance(noted, ast.Constant) and isinstance(noted.value, str) else dotted(noted)
    site = find_class(project, module, written) if written else None
    return class_facts(project, site.module, site.node) if site is not None else None
