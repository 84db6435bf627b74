"""The names that a log call may log under where its keys are put together: `f"{stage}_acc"`, `for name, value in scores.items()`.

A part counts only where every value that it may have is seen to be a string: a guessed name would lead to the monitor of another
model.
"""

from __future__ import annotations

import ast
from itertools import product

from codemods.analysis.bindings import bindings_of
from codemods.analysis.loading.origins import origins
from codemods.analysis.logged.log_calls import LogCall, key_nodes, logged_value
from codemods.analysis.names import dotted
from codemods.files.source import SourceModule
from codemods.store.project import Project

_MOST = 24
_DEPTH = 4


def possible_keys(log: LogCall) -> tuple[str, ...]:
    """Every name that is seen, those that are written out first; none for a key of which a part is not seen."""
    written = key_nodes(log)
    found = [text for node in written for text in _texts(log.project, log.module, node, 0)]
    if not written and not log.is_log:
        mapping = logged_value(log.call)
        found += _keys(log.project, log.module, mapping, 0) if mapping is not None else []
    return tuple(dict.fromkeys(found))


def _texts(project: Project, module: SourceModule, node: ast.expr, depth: int) -> list[str]:
    """The strings that an expression may be; empty where one of them is not seen."""
    if isinstance(node, ast.Constant):
        return [str(node.value)]
    if depth > _DEPTH:
        return []
    if isinstance(node, ast.JoinedStr):
        parts = [p.value if isinstance(p, ast.FormattedValue) else p for p in node.values]
        plain = all(p.conversion in (-1, 115) and p.format_spec is None for p in node.values if isinstance(p, ast.FormattedValue))
        return _joined([_texts(project, module, p, depth + 1) for p in parts]) if plain else []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _joined([_texts(project, module, side, depth + 1) for side in (node.left, node.right)])
    if isinstance(node, ast.Name) and (source := _looped(module, node)) is not None:
        return _keys(project, module, source, depth + 1)
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return []
    made = origins(project, module, node)
    if any(not o.known or o.path or o.node is node for o in made):
        return []
    each = [_texts(project, o.module, o.node, depth + 1) for o in made]
    return [text for texts in each for text in texts] if all(each) else []


def _joined(parts: list[list[str]]) -> list[str]:
    count = 1
    for part in parts:
        count *= len(part)
    return ["".join(chosen) for chosen in product(*parts)] if 0 < count <= _MOST else []


def _looped(module: SourceModule, name: ast.Name) -> ast.expr | None:
    """`scores` for `name` in `for name, value in scores.items()`, and in `for name in scores`."""
    loops = [b.node for b in bindings_of(module, name)]
    for up in module.ancestors(name):
        loops += [g for g in getattr(up, "generators", ()) if isinstance(g, ast.comprehension)]
    around = [n for n in loops if isinstance(n, (ast.For, ast.comprehension)) and _first(n.target) == name.id]
    if len(around) != 1:
        return None
    through = around[0].iter
    if isinstance(through, ast.Call) and isinstance(through.func, ast.Attribute) and through.func.attr in ("items", "keys"):
        return through.func.value if not through.args else None
    return through if isinstance(around[0].target, ast.Name) else None


def _first(target: ast.expr) -> str:
    return dotted(target.elts[0]) if isinstance(target, (ast.Tuple, ast.List)) and target.elts else dotted(target)


def _keys(project: Project, module: SourceModule, node: ast.expr, depth: int) -> list[str]:
    """The keys of a dictionary, or the elements of a list of names, as they are written out where it is made."""
    if depth > _DEPTH:
        return []
    out: list[str] = []
    for origin in origins(project, module, node):
        made = origin.node
        parts: list[ast.expr | None] = []
        if isinstance(made, ast.Dict):
            parts = list(made.keys)
        elif isinstance(made, (ast.List, ast.Tuple)):
            parts = list(made.elts)
        elif isinstance(made, ast.DictComp):
            parts = [made.key]
        texts = [_texts(project, origin.module, p, depth + 1) if p is not None else [] for p in parts]
        if origin.path or not origin.known or not texts or not all(texts):
            return []
        out += [text for each in texts for text in each]
    return out
