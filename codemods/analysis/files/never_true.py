"""Tests that never come out true: of a constant of the file that is off, of a parameter that no caller turns on.

`if DEBUG:` below `DEBUG = False`; `if mode == "replace":` where all calls leave `mode="add"`; `if hasattr(self, "tiles"):` where
nobody sets them; `if os.path.exists("shots/*.png"):`; `if self.use_average:` of an argument that all settings leave off.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_at_top, bindings_in
from codemods.analysis.branches import branches_round
from codemods.analysis.class_index import class_facts
from codemods.analysis.class_values import class_values
from codemods.analysis.conditions import conjuncts
from codemods.analysis.files.file_paths import arguments_of, forms
from codemods.analysis.files.lacked_options import is_of_lacked_option
from codemods.analysis.files.left_at_default import is_made_a_command, left_at_default
from codemods.analysis.files.left_off import is_attribute_left_off, is_local_off
from codemods.analysis.files.own_paths import are_sure, callers_of
from codemods.analysis.files.unwritten_markers import is_of_unwritten_marker
from codemods.analysis.model.signatures import defaults
from codemods.analysis.names import dotted, qualified
from codemods.analysis.ranks.described_parts import is_configured_off
from codemods.analysis.ranks.never_set import asks_for_what_nobody_sets
from codemods.analysis.ranks.uses import uses_of
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project

_MISSING = object()
_ASKS = frozenset({"os.path.exists", "os.path.isfile", "os.path.isdir", "os.path.lexists"})


def is_never_asked_for(project: Project, module: SourceModule, node: ast.AST) -> bool:
    """True under a test that comes out false for what every call of the function gives, and for a test that does so itself."""
    own = [node.test] if isinstance(node, ast.If) and not node.orelse else []
    tested = [part for test in (*own, *_tests_over(module, node)) for part in conjuncts(test)]
    if any(_is_constant_off(module, part) or _asks_for_a_pattern(module, part) for part in tested):
        return True
    if any(asks_for_what_nobody_sets(project, module, part) for part in tested):
        return True
    if any(isinstance(part, ast.Name) and is_local_off(module, part) for part in tested):
        return True
    if any(is_of_lacked_option(project, module, part) or is_of_unwritten_marker(project, module, part) for part in tested):
        return True
    if any(_is_attribute_off(project, module, part) or is_attribute_left_off(project, module, part) for part in tested):
        return True
    function = module.function_of(node)
    return function is not None and any(_is_false_for_all(project, module, function, part) for part in tested)


def is_never_put_out(project: Project, path: str, line: int) -> bool:
    """True where each call of a line stands under such a test."""
    home = project.module(path)
    calls = [c for c in home.nodes(ast.Call) if c.lineno == line] if home is not None else []
    return home is not None and bool(calls) and is_never_asked_for(project, home, calls[0])


def _asks_for_a_pattern(module: SourceModule, part: ast.expr) -> bool:
    """True for `os.path.exists("shots/*.png")`: nobody resolves the star, and no file is called so."""
    if not isinstance(part, ast.Call) or qualified(module, part.func) not in _ASKS or len(part.args) != 1:
        return False
    return any("*" in re.sub(r"<[^<>]*>", "", form) for form in forms(module, part.args[0]))


def _is_constant_off(module: SourceModule, part: ast.expr) -> bool:
    """True for a name that the file sets once, to something false, and hands to nobody who sets it.

    In capitals, or in a script that lets nobody else set its names (`exec(open("overrides.py").read())` does).
    """
    if not isinstance(part, ast.Name) or any(part.id in g.names for g in module.nodes(ast.Global)):
        return False
    function = module.function_of(part)
    if not part.id.isupper() and (function is not None or _sets_names_from_outside(module)):
        return False
    if function is not None and bindings_in(module, function, part.id):
        return False
    bound = bindings_at_top(module, part.id)
    return len(bound) == 1 and isinstance(bound[0].value, ast.Constant) and not bound[0].value.value


def _is_attribute_off(project: Project, module: SourceModule, part: ast.expr) -> bool:
    """True for `self.use_average` that `__init__` takes from an argument which all settings of the class leave off."""
    owner = module.class_of(part) if isinstance(part, ast.Attribute) else None
    if owner is None or not isinstance(part, ast.Attribute) or dotted(part) != f"self.{part.attr}":
        return False
    facts = class_facts(project, module, owner)
    values = class_values(project, facts)
    given = values.given.get(part.attr, [])
    if len(given) != 1 or not values.set_once(part.attr) or given[0].part is not None or given[0].function is None:
        return False
    value, function = _told_by(given[0].value), given[0].function
    if not isinstance(value, ast.Name) or function.name != "__init__":
        return False
    bound = bindings_in(given[0].site.module, function, value.id)
    if len(bound) != 1 or not bound[0].parameter:
        return False
    return is_configured_off(project, given[0].site, function, value.id)


def _told_by(value: ast.expr) -> ast.expr:
    """`decay` of `decay is not None` and of `bool(decay)`: false where the argument is left off."""
    if isinstance(value, ast.Compare) and len(value.ops) == 1 and isinstance(value.ops[0], ast.IsNot):
        other = value.comparators[0]
        return value.left if isinstance(other, ast.Constant) and other.value is None else value
    if isinstance(value, ast.Call) and dotted(value.func) == "bool" and len(value.args) == 1:
        return value.args[0]
    return value


def _sets_names_from_outside(module: SourceModule) -> bool:
    """True for a script that runs text of somebody else's among its names, or stores into `globals()`."""
    if module.calls_named("exec"):
        return True
    for call in module.calls_named("globals"):
        up = module.parent(call)
        if isinstance(up, ast.Attribute) and up.attr not in ("items", "keys", "values", "get"):
            return True
        if isinstance(up, ast.Subscript) and not isinstance(up.ctx, ast.Load):
            return True
    return False


def _tests_over(module: SourceModule, node: ast.AST) -> Iterator[ast.expr]:
    for branch in branches_round(module, node):
        yield branch.test if branch.holds else ast.UnaryOp(ast.Not(), branch.test)


def _is_false_for_all(project: Project, module: SourceModule, function: FunctionNode, part: ast.expr) -> bool:
    if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not):
        given = _given_to(project, module, function, part.operand)
        return bool(given) and all(g is not _MISSING and bool(g) for g in given)
    wanted: object = _MISSING
    name = part
    if isinstance(part, ast.Compare) and len(part.ops) == 1 and isinstance(part.ops[0], ast.IsNot):
        kind = part.comparators[0]
        return isinstance(kind, ast.Constant) and kind.value is None and _gets_only_none(project, module, function, part.left)
    if isinstance(part, ast.Compare) and len(part.ops) == 1 and isinstance(part.ops[0], (ast.Eq, ast.Is)):
        value = part.comparators[0]
        name, wanted = part.left, value.value if isinstance(value, ast.Constant) else _MISSING
        if wanted is _MISSING:
            return False
    given = _given_to(project, module, function, name)
    return bool(given) and all(g is not _MISSING and (not g if wanted is _MISSING else g != wanted) for g in given)


def _gets_only_none(project: Project, module: SourceModule, function: FunctionNode, name: ast.expr) -> bool:
    given = _given_to(project, module, function, name)
    return bool(given) and all(g is None for g in given)


def _given_to(project: Project, module: SourceModule, function: FunctionNode, name: ast.expr) -> list[object]:
    """What the calls give a parameter that the function itself never sets; nothing for any other expression."""
    if not isinstance(name, ast.Name):
        return []
    bound = bindings_in(module, function, name.id)
    return _given(project, module, function, name.id) if len(bound) == 1 and bound[0].parameter else []


def _given(project: Project, module: SourceModule, function: FunctionNode, name: str) -> list[object]:
    """What each call gives the parameter, as far as it stands there; nothing where not all calls are seen."""
    if is_made_a_command(project, module, function):
        return []
    used = uses_of(project, module, function).outside_tests()
    sites = callers_of(project, module, function)
    calls = [c for c in used.calls if c.module is module or not _has_its_own(c.module, function.name)]
    if not sites or used.more or used.handed_on or len(sites) != len(calls) or not are_sure(project, sites, function):
        left = left_at_default(project, module, function, name)
        return [] if left is None else [left.value]
    default = defaults(function).get(name)
    return [_constant(arguments_of(function, s.call).get(name, default), s.call) for s in sites]


def _has_its_own(module: SourceModule, name: str) -> bool:
    """True for a file with a class that has a method of that name: what it calls by it is its own."""
    return any(f.name == name and isinstance(module.parent(f), ast.ClassDef) for f in module.functions)


def _constant(value: ast.expr | None, call: ast.Call) -> object:
    spread = any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords)
    return value.value if isinstance(value, ast.Constant) and not spread else _MISSING
