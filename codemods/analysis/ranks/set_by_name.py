"""May a file give some object an attribute without writing the attribute as such: `setattr`, `__dict__`, `__getattr__`?"""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted, family, qualified
from codemods.files.source import SourceModule

_READING_METHODS = frozenset({"items", "keys", "values", "get", "copy"})
_READING_FUNCTIONS = frozenset({"print", "dict", "str", "repr", "len", "sorted", "list", "tuple", "set", "pprint"})
# Packages whose functions put out or copy the dict that they are handed.
_READING_PACKAGES = frozenset({"json", "yaml", "pprint", "copy", "wandb", "pickle"})


def may_set_by_name(module: SourceModule, attribute: str) -> bool:
    """True where an object may get the attribute under a name that is worked out; `setattr` of another literal name cannot."""
    if module.holds(b"__getattr__") or module.holds(b"__setattr__"):
        return True
    if module.holds(b"setattr") and _may_be_given(module, attribute):
        return True
    return module.holds(b"__dict__") and _may_change_a_dict(module)


def _may_be_given(module: SourceModule, attribute: str) -> bool:
    for node in module.nodes(ast.Name):
        if node.id != "setattr":
            continue
        call = module.parent(node)
        if not isinstance(call, ast.Call) or call.func is not node or len(call.args) < 2:
            return True
        name = call.args[1]
        if not isinstance(name, ast.Constant) or name.value == attribute:
            return True
    return any(n.attr == "setattr" for n in module.nodes(ast.Attribute))


def _may_change_a_dict(module: SourceModule) -> bool:
    if any(n.value == "__dict__" for n in module.nodes(ast.Constant)):
        return True
    return any(n.attr == "__dict__" and not _is_only_read(module, n) for n in module.nodes(ast.Attribute))


def _is_only_read(module: SourceModule, node: ast.Attribute) -> bool:
    """True for `json.dump(args.__dict__, file)`, `**args.__dict__`, `args.__dict__.items()` and the like."""
    if not isinstance(node.ctx, ast.Load):
        return False
    up = module.parent(node)
    if isinstance(up, ast.Attribute):
        call = module.parent(up)
        return up.attr in _READING_METHODS and isinstance(call, ast.Call) and call.func is up
    if isinstance(up, ast.Subscript):
        return up.value is not node or isinstance(up.ctx, ast.Load)
    if isinstance(up, ast.keyword):
        handed = module.parent(up)
        return up.arg is None or (isinstance(handed, ast.Call) and _only_reads(module, handed))
    if isinstance(up, ast.Call):
        return up.func is not node and _only_reads(module, up)
    if isinstance(up, ast.Dict):
        return any(key is None and value is node for key, value in zip(up.keys, up.values, strict=True))
    return isinstance(up, (ast.FormattedValue, ast.Compare, ast.For, ast.comprehension))


def _only_reads(module: SourceModule, call: ast.Call) -> bool:
    """True for a call that does not change a dict that it is handed."""
    if dotted(call.func) in _READING_FUNCTIONS:
        return True
    return family(qualified(module, call.func)) in _READING_PACKAGES
