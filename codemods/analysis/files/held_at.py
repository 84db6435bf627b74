"""Which of its values a name of a function holds at one place, as far as the text shows it."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import Binding, bindings_in
from codemods.analysis.names import dotted
from codemods.files.source import SourceModule, line_of, walk

_CHANGE = frozenset({"append", "extend", "insert", "pop", "remove", "clear"})


def last_above(module: SourceModule, name: ast.Name, bound: list[Binding]) -> Binding | None:
    """The binding of a name that is bound anew, where it stands above in one of the blocks round the place and none between."""
    before = [b for b in bound if not b.parameter and line_of(b.node) < name.lineno]
    nearest = max(before, key=lambda b: line_of(b.node), default=None)
    if nearest is None or not isinstance(nearest.node, ast.Assign):
        return None
    around = [module.statement_of(name), *module.ancestors(name)]
    loops = [up for up in around if isinstance(up, (ast.For, ast.AsyncFor, ast.While)) and up.lineno > line_of(nearest.node)]
    if any(line_of(loop) <= line_of(b.node) <= (loop.end_lineno or 0) for loop in loops for b in bound):
        return None  # the next round has another value
    block = module.block_of(nearest.node)
    return nearest if any(s is up for up in around for s in block) else None


def only_item(module: SourceModule, name: ast.Name) -> ast.expr | None:
    """The one item of `for path in [folder / "a.pt"]:`, read inside of the loop; of `for path in paths:` where `paths` is it."""
    function = module.function_of(name)
    for up in module.ancestors(name):
        if up is function:
            return None
        if isinstance(up, ast.For) and isinstance(up.target, ast.Name) and up.target.id == name.id:
            inside = (n for s in up.body for n in walk(s) if isinstance(n, ast.Name) and n.id == name.id)
            if any(isinstance(n.ctx, ast.Store) for n in inside) or any(n is name for n in walk(up.iter)):
                return None
            items = _listed(module, up.iter)
            return items[0] if len(items) == 1 and not isinstance(items[0], ast.Starred) else None
    return None


def _listed(module: SourceModule, items: ast.expr) -> list[ast.expr]:
    """The elements of a list that nothing changes."""
    function = module.function_of(items)
    if isinstance(items, ast.Name) and function is not None:
        bound = bindings_in(module, function, items.id)
        held = bound[0] if len(bound) == 1 else last_above(module, items, bound)
        changed = any(isinstance(c.func, ast.Attribute) and dotted(c.func.value) == items.id and c.func.attr in _CHANGE
                      for c in module.calls_named(*_CHANGE) if module.function_of(c) is function)  # fmt: skip
        if held is None or held.part or held.value is None or changed:
            return []
        items = held.value
    return list(items.elts) if isinstance(items, (ast.List, ast.Tuple)) else []
