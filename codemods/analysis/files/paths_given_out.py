"""Paths that a function gives to others, who read the file by them: in an attribute of what it was handed, or returned."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from codemods.analysis.files.file_flow import steps_in
from codemods.analysis.files.own_paths import callers_of
from codemods.analysis.model.signatures import parameters
from codemods.analysis.names import dotted
from codemods.analysis.output.effects import Kind, effects_of
from codemods.analysis.ranks.uses import CallSite
from codemods.files.source import FunctionNode, SourceModule, line_of, walk, walk_scope
from codemods.store.project import Project

_CLIMBS = 3


def given_out(function: FunctionNode, paths: Iterable[ast.expr]) -> str:
    """The attribute of a parameter that the function sets to one of the paths, as it is written; "" for none.

    `deepspeed.initialize(args=args)` reads `args.deepspeed_config` so, on every rank (DeepSpeed 0.16): no call names the path.
    """
    handed = {p.arg for p in parameters(function, bound=False)} - {"self", "cls"}
    attributes = (n for n in walk(function) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store))
    stored = {dotted(n) for n in attributes if dotted(n).partition(".")[0] in handed}
    assigned = [s for s in walk(function) if isinstance(s, ast.Assign)]
    values = {ast.dump(s.value): dotted(t) for s in assigned for t in s.targets if dotted(t) in stored}
    for path in paths:
        if dotted(path) in stored:
            return dotted(path)
        if ast.dump(path) in values:
            return values[ast.dump(path)]
    return ""


def returned_to(project: Project, module: SourceModule, function: FunctionNode, path: ast.expr, climbs: int = 0) -> str:
    """The place of a call that gets the path back and goes on with it, for more than a line of output; "" for none.

    What goes on with it may read the file, in code that nobody sees here. Where the caller waits for the others first, or
    drops what it gets, nobody does.
    """
    written = ast.dump(path)
    returns = (n.value for n in walk_scope(function) if isinstance(n, ast.Return) and n.value is not None)
    if not any(ast.dump(part) == written for value in returns for part in _parts(value)):
        return ""
    found = (_goes_on(project, site, climbs) for site in callers_of(project, module, function))
    return next(filter(None, found), "")


def _parts(value: ast.expr) -> Iterator[ast.expr]:
    yield from value.elts if isinstance(value, (ast.Tuple, ast.List)) else (value,)


def _goes_on(project: Project, site: CallSite, climbs: int) -> str:
    module, statement = site.module, site.module.statement_of(site.call)
    if isinstance(statement, ast.Expr) and statement.value is site.call:
        return ""
    here = f"{module.path}:{line_of(site.call)}"
    if not isinstance(statement, ast.Assign) or statement.value is not site.call:
        return "" if _only_shows(project, module, statement) else here
    got = {name for target in statement.targets for part in _parts(target) if (name := dotted(part))}
    for behind in _behind(module, statement):
        if any(step.act is None for step in steps_in(project, module, [behind])):
            return ""
        read = [n for n in walk(behind) if isinstance(n, (ast.Name, ast.Attribute)) and dotted(n) in got]
        if isinstance(behind, ast.Return) and read and climbs < _CLIMBS:
            function = module.function_of(behind)
            return returned_to(project, module, function, read[0], climbs + 1) if function is not None else ""
        if any(isinstance(n.ctx, ast.Load) for n in read) and not _only_shows(project, module, behind):
            return here
    return here if any("." in name for name in got) else ""


def _behind(module: SourceModule, statement: ast.stmt) -> Iterator[ast.stmt]:
    """The statements behind one in its function, in the order of the text."""
    function = module.function_of(statement) or module.tree
    last = statement.end_lineno or statement.lineno
    found = [n for n in walk_scope(function) if isinstance(n, ast.stmt) and n.lineno > last]
    yield from sorted((n for n in found if not hasattr(n, "body")), key=line_of)


def _only_shows(project: Project, module: SourceModule, statement: ast.stmt) -> bool:
    effects = effects_of(project, module, [statement])
    return bool(effects.output) and not effects.besides() and not any(e.kind is Kind.FILE for e in effects.output)
