"""Branches of a loop over a dict's keys that no key of the dict leads to: `if key == "accuracy":`, and nobody puts that in."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted
from codemods.analysis.ranks.dict_keys import Key, keys_of
from codemods.files.source import SourceModule
from codemods.store.project import Project


def is_under_absent_key(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True for a place that no round of the loop round it comes to, by the keys that its dict is given."""
    function = module.function_of(node)
    below = node
    for up in module.ancestors(node) if isinstance(function, ast.FunctionDef) else ():
        if up is function:
            break
        wanted = _wanted(up) if isinstance(up, ast.If) and any(below is s for s in up.body) else None
        held = _gone_through(module, up, wanted[0]) if wanted is not None else ""
        if wanted is not None and held and isinstance(function, ast.FunctionDef):
            keys = keys_of(project, module, function, held)
            asked = Key(wanted[1], True, module, up)
            if keys is not None and keys.common and not any(k.may_be(asked) for k in (*keys.common, *keys.zero)):
                return True
        below = up
    return False


def _wanted(test: ast.If) -> tuple[str, str] | None:
    """The name and the text of `if key == "accuracy":`."""
    asked = test.test
    if not isinstance(asked, ast.Compare) or len(asked.ops) != 1 or not isinstance(asked.ops[0], ast.Eq):
        return None
    name, text = asked.left, asked.comparators[0]
    if isinstance(name, ast.Name) and isinstance(text, ast.Constant) and isinstance(text.value, str):
        return name.id, text.value
    return None


def _gone_through(module: SourceModule, node: ast.AST, name: str) -> str:
    """The dict whose keys the loop round `node` gives that name, "" where it gives it another thing."""
    loop = next((up for up in module.ancestors(node) if isinstance(up, ast.For)), None)
    if loop is None:
        return ""
    pairs = isinstance(loop.target, ast.Tuple) and len(loop.target.elts) == 2
    target = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) else loop.target
    source, ends = loop.iter, ("items",) if pairs else ("keys",)
    if not isinstance(target, ast.Name) or target.id != name:
        return ""
    if isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute) and source.func.attr in ends and not source.args:
        return dotted(source.func.value) if isinstance(source.func.value, ast.Name) else ""
    return source.id if isinstance(source, ast.Name) and not pairs else ""
