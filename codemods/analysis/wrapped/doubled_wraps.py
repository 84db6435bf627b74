"""A model that is wrapped twice: `net = DDP(net)` and, further down, `net = DDP(net)` once more, which another was meant for."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted
from codemods.analysis.wrapped.wraps import Side, held, inner_of, wraps_in
from codemods.files.source import SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project


@record
class Doubled:
    """name: what is wrapped again, as it is written. first, again: the two calls."""

    name: str
    first: ast.Call
    again: ast.Call


def doubled_wraps(project: Project, module: SourceModule) -> tuple[Doubled, ...]:
    """The calls of a file that wrap what is a wrapper already, wherever they come."""
    return project.memo(("doubled wraps", module.path), lambda: _find(project, module))


def _find(project: Project, module: SourceModule) -> tuple[Doubled, ...]:
    calls = wraps_in(module)
    found: list[Doubled] = []
    for again in calls if len(calls) > 1 else ():
        inner = inner_of(again)
        known = held(project, module, inner) if inner is not None and dotted(inner) else None
        if known is None or known.side is not Side.WRAPPER or known.module is not module or inner is None:
            continue
        if any(known.wrap is call for call in calls) and _comes_first(module, known.wrap, again):
            found.append(Doubled(dotted(inner), known.wrap, again))
    return tuple(found)


def _comes_first(module: SourceModule, first: ast.Call, again: ast.Call) -> bool:
    """True where whoever comes to the second has come by the first: it stands above, in a block round the second."""
    if first.lineno >= again.lineno or module.function_of(first) is not module.function_of(again):
        return False
    round_it = [again, *module.ancestors(again)]
    block = module.block_of(module.statement_of(first))
    return any(one is up for one in block for up in round_it)
