"""Names and attributes that hold something false wherever the program reads them: nobody sets them to anything else."""

from __future__ import annotations

import ast
import re

from codemods.analysis.bindings import bindings_in
from codemods.analysis.class_index import ClassSite, class_facts, find_class, subclasses
from codemods.analysis.class_values import Given, class_values
from codemods.analysis.files.file_paths import arguments_of
from codemods.analysis.files.left_at_default import is_made_a_command
from codemods.analysis.literals import is_none
from codemods.analysis.model.signatures import defaults
from codemods.analysis.names import dotted
from codemods.analysis.ranks.uses import CallSite, constructions
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project

_SETTINGS = (".yaml", ".yml", ".json", ".toml", ".cfg", ".ini", ".gin", ".sh")


def is_local_off(module: SourceModule, name: ast.Name) -> bool:
    """True for a name that its function binds once, to something false: `run_validation = False`."""
    function = module.function_of(name)
    elsewhere = [*(n.names for n in module.nodes(ast.Nonlocal)), *(n.names for n in module.nodes(ast.Global))]
    if function is None or any(name.id in names for names in elsewhere):
        return False
    bound = bindings_in(module, function, name.id)
    if len(bound) != 1 or bound[0].parameter:
        return False
    return isinstance(bound[0].node, ast.Assign) and _is_false(bound[0].value)


def is_attribute_left_off(project: Project, module: SourceModule, part: ast.expr) -> bool:
    """True for `self.plots` that the class sets once, to something false or to an argument that every program leaves off."""
    asked = _asked_for_none(part)
    wants_none = asked is not None
    part = asked if asked is not None else part
    owner = module.class_of(part) if isinstance(part, ast.Attribute) else None
    if owner is None or not isinstance(part, ast.Attribute) or dotted(part) != f"self.{part.attr}":
        return False
    values = class_values(project, class_facts(project, module, owner))
    given = values.given.get(part.attr, [])
    if len(given) != 1 or not values.set_once(part.attr) or given[0].part is not None or values.loose:
        return False
    value = given[0].value
    home = given[0].site.module
    if not isinstance(home.parent(value), ast.Assign):
        return False  # a field with a type is an argument of the constructor
    if isinstance(value, ast.Constant):
        off = is_none(value) if wants_none else _is_false(value)
        return off and project.keep(("set once", part.attr), lambda: _is_set_once(project, part.attr))
    return _is_argument_left_off(project, given[0], wants_none) and _is_stored_by_itself(project, given[0].site, part.attr)


def _asked_for_none(part: ast.expr) -> ast.expr | None:
    """`x` of `x is not None` and `x != None`, and of the `else` of `x is None` and `x == None`."""
    kinds: tuple[type[ast.cmpop], ...] = (ast.IsNot, ast.NotEq)
    if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not):
        part, kinds = part.operand, (ast.Is, ast.Eq)
    plain = isinstance(part, ast.Compare) and len(part.ops) == 1 and isinstance(part.ops[0], kinds)
    return part.left if plain and isinstance(part, ast.Compare) and is_none(part.comparators[0]) else None


def _is_stored_by_itself(project: Project, site: ClassSite, name: str) -> bool:
    """False where another may put something into it: from outside, `meter.file = open(path)`, or a class that derives from it."""

    def build() -> bool:
        stores = re.compile(rb"([\w\])]+)\." + re.escape(name.encode()) + rb"\s*(?::[^=\n]*|,[^()\n]*)?[-+*/|&]?=(?!=)")
        files = project.files_containing(f".{name}".encode())
        return all(found == b"self" for p in files for found in stores.findall(project.read(p) or b""))

    heirs = (class_values(project, class_facts(project, h.module, h.node)) for h in subclasses(project, site))
    return project.keep(("stored by itself", name), build) and all(len(h.given.get(name, [])) == 1 for h in heirs)


def _is_set_once(project: Project, name: str) -> bool:
    """True where the files of the project hold one assignment of the name, and no setting or text of it."""
    word = re.escape(name.encode())
    if any(re.search(rb"\b" + word + rb"\b", project.read_text(p) or b"") for p in
           project.files_containing(name.encode(), kinds=_SETTINGS)):  # fmt: skip
        return False
    files = [project.read(p) or b"" for p in project.files_containing(name.encode())]
    if any(re.search(rb"""["'](?:--?)?""" + word + rb"""["']""", data) for data in files):
        return False
    if any(b"__dict__" in data or re.search(rb"\b(?:as|for)\s+[\w.]*\." + word + rb"\b", data) for data in files):
        return False
    sets = re.compile(rb"\b" + word + rb"\s*(?::[^=\n]*|,[^()\n]*)?[-+*/|&]?=(?!=)")
    return sum(len(sets.findall(data)) for data in files) == 1


def _is_argument_left_off(project: Project, given: Given, wants_none: bool) -> bool:
    """True where each place that makes an object of the class leaves the argument off, or gives something false.

    So it is in the calls that the constructors of derived classes make of this one.
    """
    site, function, value = given.site, given.function, given.value
    if function is None or function.name != "__init__" or not isinstance(value, ast.Name):
        return False
    bound = bindings_in(site.module, function, value.id)
    if len(bound) != 1 or not bound[0].parameter or is_made_a_command(project, site.module, function):
        return False
    kin = (site, *subclasses(project, site))
    if any(project.files_containing(one.node.name.encode(), kinds=_SETTINGS) for one in kin):
        return False  # a setting may make one
    key = ("argument left off", site.module.path, function.lineno, value.id, wants_none)
    return project.keep(key, lambda: _is_off_at_all(project, site, function, value.id, wants_none))


def _is_off_at_all(project: Project, site: ClassSite, function: FunctionNode, name: str, wants_none: bool) -> bool:
    made = constructions(project, site.module, site.node)
    used = made.outside_tests() if made is not None else None
    if used is None or used.more or used.handed_on or not used.calls:
        return False
    for one in (site, *subclasses(project, site)):
        own = one.methods().get("__init__")
        if own is None or own is function:
            calls = [p for p in used.calls if _makes(project, p, one)]
            if not all(_leaves_off(p.module, p.call, function, name, wants_none) for p in calls):
                return False
        elif not all(_is_handed_off(project, one, own, call, function, name, wants_none) for call in _calls_above(one, own)):
            return False
    return True


def _makes(project: Project, place: CallSite, site: ClassSite) -> bool:
    """False for an object of another class of the kin."""
    found = find_class(project, place.module, dotted(place.call.func))
    return found is None or found.node is site.node


def _calls_above(site: ClassSite, constructor: FunctionNode) -> list[ast.Call]:
    """`super().__init__(…)` and `Base.__init__(self, …)`."""
    return [c for c in site.module.calls_named("__init__") if site.module.function_of(c) is constructor]


def _is_handed_off(
    project: Project, heir: ClassSite, own: FunctionNode, call: ast.Call, function: FunctionNode, name: str, wants_none: bool
) -> bool:
    """True where a derived class hands on what its own makers leave off, or leaves it off itself."""
    value = _given(call, function, name)
    if isinstance(value, ast.Name) and [b.parameter for b in bindings_in(heir.module, own, value.id)] == [True]:
        return _is_off_at_all(project, heir, own, value.id, wants_none) or _is_never_made(project, heir)
    return _leaves_off(heir.module, call, function, name, wants_none)


def _is_never_made(project: Project, site: ClassSite) -> bool:
    made = constructions(project, site.module, site.node)
    return made is not None and not (made.more or made.calls or made.handed_on)


def _leaves_off(module: SourceModule, call: ast.Call, function: FunctionNode, name: str, wants_none: bool) -> bool:
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return False
    value = _given(call, function, name)
    if isinstance(value, ast.Name) and is_local_off(module, value):
        value = bindings_in(module, module.function_of(value), value.id)[0].value
    return is_none(value) if wants_none else _is_false(value)


def _given(call: ast.Call, function: FunctionNode, name: str) -> ast.expr | None:
    """What the call gives the parameter, or its default; `self` of `Base.__init__(self, …)` is none of its arguments."""
    if call.args and isinstance(call.func, ast.Attribute) and dotted(call.func.value) and call.func.attr == "__init__":
        call = ast.Call(call.func, call.args[1:], call.keywords)
    return arguments_of(function, call).get(name, defaults(function).get(name))


def _is_false(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and not value.value
