"""Does a function only measure a model? It goes backward, makes no step of an optimizer, and nothing of the project calls it."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted
from codemods.analysis.ranks.run_by_programs import has_programs
from codemods.analysis.ranks.uses import uses_of
from codemods.files.left_alone import left
from codemods.files.source import SourceModule, walk
from codemods.store.project import Project


def only_measures(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True in such a function of a project with programs: whose model it is, and that it is wrapped, is shown nowhere."""
    function = module.function_of(node)
    if function is None or module.parent(function) is not module.tree or not has_programs(project):
        return False
    if any(isinstance(n, ast.Attribute) and n.attr == "step" for n in walk(function)):
        return False
    uses = uses_of(project, module, function).outside_tests()
    if function.name == "main" or uses.more:
        return False
    places = [*((s.module, s.call.func) for s in uses.calls), *((h.module, h.node) for h in uses.handed_on)]
    if not all(_is_another(project, home, named) for home, named in places):
        return False
    return left(module, node, "its function makes no step of an optimizer, and nothing calls it: it measures a model")


def _is_another(project: Project, module: SourceModule, named: ast.expr) -> bool:
    """True for something else of that name: a package's (`thop.profile`), or a field of an object (`args.profile`)."""
    root, _, end = dotted(named).partition(".")
    if end and root in module.imports:
        return all(project.resolve(i.module, module.path) is None for i in module.imports[root])
    if isinstance(named, ast.Attribute):
        return bool(root)
    inside = module.function_of(named)
    imports = (n for n in walk(inside) if isinstance(n, ast.ImportFrom)) if inside is not None else ()
    given = [n for n in imports if any((a.asname or a.name) == root for a in n.names)]
    return bool(given) and all(n.level == 0 and project.resolve(n.module or "", module.path) is None for n in given)
