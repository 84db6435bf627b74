"""Samplers that are told the epoch when its batches are drawn already: by a `set_epoch` inside of the loop over the batches."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.loading.passes import sources_of
from codemods.analysis.names import dotted
from codemods.files.source import SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_LOOPS = (ast.For, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@record
class ToldLate:
    """statement: the call, with the test that it alone stands under; batches: the loop; movable: it may stand above the loop."""

    call: ast.Call
    statement: ast.stmt
    batches: ast.For
    movable: bool


def told_late(project: Project, module: SourceModule) -> Iterator[ToldLate]:
    """`for x in loader: loader.sampler.set_epoch(epoch)`, in the order of the file."""
    for call in module.calls_named("set_epoch"):
        statement = module.statement_of(call)
        if not isinstance(statement, ast.Expr) or statement.value is not call or len(call.args) != 1:
            continue
        above = module.parent(statement)
        if isinstance(above, ast.If) and above.body == [statement] and not above.orelse:
            statement, above = above, module.parent(above)
        if not isinstance(above, ast.For) or statement not in above.body or not _is_of_its_sampler(project, module, call, above):
            continue
        outer = next((up for up in module.ancestors(above) if isinstance(up, (*_LOOPS, *_FUNCTIONS))), None)
        if _is_told_above(module, call, above):
            continue
        bound = {n.id for s in above.body for n in walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        bound |= {n.id for n in walk(above.target) if isinstance(n, ast.Name)}
        used = {n.id for n in walk(statement) if isinstance(n, ast.Name)}
        if isinstance(outer, _LOOPS) and not bound & {n.id for n in walk(call.args[0]) if isinstance(n, ast.Name)}:
            yield ToldLate(call, statement, above, not bound & used)


def _is_told_above(module: SourceModule, call: ast.Call, batches: ast.For) -> bool:
    """True where the same sampler is told in front of the loop as well."""
    others = (c for c in module.calls_named("set_epoch") if c is not call and c.lineno < batches.lineno)
    same = (c for c in others if ast.unparse(c.func) == ast.unparse(call.func))
    return any(module.function_of(c) is module.function_of(batches) for c in same)


def _is_of_its_sampler(project: Project, module: SourceModule, call: ast.Call, batches: ast.For) -> bool:
    """True where the sampler is that of the loader which the loop goes through."""
    holder = dotted(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    for source in sources_of(project, module, batches.iter):
        name = dotted(source)
        if name and holder in (f"{name}.sampler", f"{name}.batch_sampler", f"{name}.batch_sampler.sampler"):
            return True
        bound = bindings_of(module, source) if isinstance(source, ast.Name) else []
        made = [b.value for b in bound if isinstance(b.value, ast.Call)]
        given = [dotted(k.value) for m in made for k in m.keywords if k.arg in ("sampler", "batch_sampler")]
        if given and len(given) == len(bound) and all(holder and g == holder for g in given):
            return True
    return False
