"""Objects that gather the samples of all ranks, and count of the repeated ones only the first."""

from __future__ import annotations

import ast

from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.names import dotted
from codemods.files.source import FunctionNode, walk, walk_scope

_PUT_TOGETHER = ("gather", "reduce")


def counts_each_once(site: FunctionSite) -> bool:
    """True for a method that gathers into `self.x`, where another one goes over `self.x` and asks `sample not in seen`."""
    owner = site.module.parent(site.node)
    if not isinstance(owner, ast.ClassDef):
        return False
    calls = (n for n in walk_scope(site.node) if isinstance(n, ast.Call))
    if not any(word in dotted(c.func).lower() for c in calls for word in _PUT_TOGETHER):
        return False
    stored = (n for n in walk_scope(site.node) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store))
    kept = {name for n in stored if (name := dotted(n)).startswith("self.")}
    return any(_asks_for_seen(method, kept) for method in site.module.methods_of(owner).values())


def _asks_for_seen(method: FunctionNode, kept: set[str]) -> bool:
    for loop in walk_scope(method):
        if not isinstance(loop, ast.For) or not any(dotted(n) in kept for n in walk(loop.iter)):
            continue
        items = {n.id for n in walk(loop.target) if isinstance(n, ast.Name)}
        for asked in (n for s in loop.body for n in walk(s) if isinstance(n, ast.Compare)):
            if any(isinstance(op, ast.NotIn) for op in asked.ops) and isinstance(asked.left, ast.Name) and asked.left.id in items:
                return True
    return False
