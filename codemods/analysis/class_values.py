"""What a class puts into its attributes: one walk over each class, remembered for the project."""

from __future__ import annotations

import ast

from codemods.analysis.class_index import ClassFacts, ClassSite
from codemods.analysis.names import dotted
from codemods.files.source import FunctionNode, walk
from codemods.runtime.record import field, record
from codemods.store.project import Project

# Methods that run once, before any batch: what only they set is configuration.
SETUP_METHODS = frozenset({"__init__", "__post_init__", "setup", "configure_model", "configure_sharded_model", "build", "_build"})
_FILLERS = frozenset({"append", "extend", "update", "add", "insert", "appendleft", "setdefault"})


@record
class Given:
    """A value that `self.x` is given, and the method that does it. part: the element, where it is unpacked."""

    site: ClassSite
    value: ast.expr
    function: FunctionNode | None
    part: int | None = None


@record(frozen=False)
class ClassValues:
    """given: attribute -> its values. items: what `self.x[...] = value` puts into it. filled: collections that a method other
    than the set-up puts something into. fillers: what it puts there. grown: numbers that such a method adds to. loose: values
    given to attributes whose names are worked out (`setattr`)."""

    given: dict[str, list[Given]] = field(default_factory=dict)
    filled: set[str] = field(default_factory=set)
    fillers: dict[str, list[ast.expr]] = field(default_factory=dict)
    grown: set[str] = field(default_factory=set)
    items: dict[str, list[Given]] = field(default_factory=dict)
    loose: list[Given] = field(default_factory=list)

    def add(self, other: ClassValues) -> None:
        for name, values in other.given.items():
            self.given.setdefault(name, []).extend(values)
        for name, values in other.items.items():
            self.items.setdefault(name, []).extend(values)
        for name, fillers in other.fillers.items():
            self.fillers.setdefault(name, []).extend(fillers)
        self.filled |= other.filled
        self.grown |= other.grown
        self.loose += other.loose

    def set_once(self, name: str) -> bool:
        """True where `self.name` is given values in the set-up only, and nothing is put into it later."""
        values = self.given.get(name, [])
        fixed = all(g.function is None or g.function.name in SETUP_METHODS for g in values)
        return bool(values) and fixed and name not in self.filled and name not in self.grown


def class_values(project: Project, facts: ClassFacts) -> ClassValues:
    """The attributes of a class and of its project ancestors."""
    start = facts.lineage[0]

    def build() -> ClassValues:
        out = ClassValues()
        for site in facts.lineage:
            out.add(_of_site(project, site))
        return out

    return project.memo(("class values", start.module.path, start.node.lineno), build)


def _of_site(project: Project, site: ClassSite) -> ClassValues:
    return project.memo(("own class values", site.module.path, site.node.lineno), lambda: _read(site))


def _read(site: ClassSite) -> ClassValues:
    out = ClassValues()
    for statement in site.node.body:
        function = statement if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)) else None
        later = function is not None and function.name not in SETUP_METHODS
        for node in walk(statement):
            _take(out, site, node, function, later)
    return out


def _take(out: ClassValues, site: ClassSite, node: ast.AST, function: FunctionNode | None, later: bool) -> None:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            _assign(out, site, target, node.value, function, later)
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        _assign(out, site, node.target, node.value, function, later)
    elif isinstance(node, ast.AugAssign) and later:
        if name := _own(node.target):
            out.grown.add(name)
    elif isinstance(node, ast.Call):
        _call(out, site, node, function, later)


def _assign(
    out: ClassValues, site: ClassSite, target: ast.expr, value: ast.expr, function: FunctionNode | None, later: bool
) -> None:
    if isinstance(target, (ast.Tuple, ast.List)):
        for i, part in enumerate(target.elts):
            if isinstance(part, ast.Attribute) and (name := _own(part)):
                out.given.setdefault(name, []).append(Given(site, value, function, i))
    elif isinstance(target, ast.Attribute):
        if name := _own(target):
            out.given.setdefault(name, []).append(Given(site, value, function))
            if later and any(isinstance(n, ast.Attribute) and _own(n) == name for n in walk(value)):
                out.grown.add(name)
    elif isinstance(target, ast.Name) and function is None:
        out.given.setdefault(target.id, []).append(Given(site, value, None))
    elif isinstance(target, ast.Subscript) and (name := _own(target)):
        out.items.setdefault(name, []).append(Given(site, value, function))
        if later:
            out.filled.add(name)
            out.fillers.setdefault(name, []).append(value)


def _call(out: ClassValues, site: ClassSite, node: ast.Call, function: FunctionNode | None, later: bool) -> None:
    func = node.func
    if isinstance(func, ast.Attribute) and func.attr in _FILLERS and later:
        if name := _own(func.value):
            out.filled.add(name)
            out.fillers.setdefault(name, []).append(node.args[-1] if node.args else node)
    setting = isinstance(func, ast.Name) and func.id == "setattr" and len(node.args) == 3
    if setting and dotted(node.args[0]) == "self":
        key, value = node.args[1], node.args[2]
        if isinstance(key, ast.Constant):
            out.given.setdefault(str(key.value), []).append(Given(site, value, function))
        else:
            out.loose.append(Given(site, value, function))


def _own(node: ast.expr) -> str:
    """`x` for `self.x` and `self.x[...]`, "" otherwise."""
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return node.attr
    return ""
