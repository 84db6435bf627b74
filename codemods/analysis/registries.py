"""Classes behind a table: `MODELS[name](…)`, `ENCODERS.build(cfg)`, `{"a": A, "b": B}.get(kind)(…)` -> those it may make."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.class_index import ClassSite, find_class
from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import dotted, last
from codemods.files.source import FunctionNode, SourceModule
from codemods.files.text_file import TEXT_KINDS
from codemods.runtime.record import record, replace
from codemods.store.project import Project

MOST = 12  # of more classes the verdict on all of them says nothing about the one that is trained
_BUILDERS = ("build", "build_from_cfg")  # mmcv's and mmengine's registries, and those made after them


@record
class Choices:
    """What a table may make. table: its name. open: other packages may add to it, so these are all that the project has.

    assumed: what has to hold where only those are given that a configuration names.
    """

    sites: tuple[ClassSite, ...]
    table: str
    open: bool = False
    assumed: str = ""


@record
class _Table:
    """A module-level (or local) name that holds classes."""

    module: SourceModule
    name: str


def built_by(project: Project, module: SourceModule, call: ast.Call) -> Choices | None:
    """The project classes of which the call makes one, None where it asks no table or the table is not written out."""
    func: ast.expr | None = call.func
    if isinstance(func, ast.Name):
        func = _bound(module, func, call)
        if isinstance(func, ast.Tuple):
            func = None
    if isinstance(func, ast.Subscript):
        return _entries(project, module, func.value, call)
    if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Subscript) and makes_one(func.attr):
        return _entries(project, module, func.value.value, call)
    if isinstance(func, ast.Call) and isinstance(func.func, ast.Attribute) and func.func.attr in ("get", "pop"):
        return _entries(project, module, func.func.value, call)
    if isinstance(func, ast.Attribute) and func.attr in _BUILDERS and dotted(func.value):
        found = _entries(project, module, func.value, call)
        return _configured(project, found) if found is not None and found.open else None
    if isinstance(func, ast.Name) and func.id == "build_from_cfg" and len(call.args) > 1:
        found = _entries(project, module, call.args[1], call)
        return _configured(project, found) if found is not None else None
    return None


def makes_one(method: str) -> bool:
    """True for the names of class methods that make an object of their class: `from_config`, `load_from_checkpoint`."""
    return "from_" in method or method in ("build_model", "build", "create", "load")


def _bound(module: SourceModule, name: ast.Name, at: ast.AST) -> ast.expr:
    """`cls = MODELS[kind]` above `cls(…)`: the one value of a local name, else the name itself."""
    home = module.function_of(at)
    values = [
        a.value for a in module.nodes(ast.Assign)
        if module.function_of(a) is home and any(isinstance(t, ast.Name) and t.id == name.id for t in a.targets)
    ]  # fmt: skip
    return values[0] if len(values) == 1 and home is not None else name


def _entries(project: Project, module: SourceModule, owner: ast.expr, at: ast.AST) -> Choices | None:
    if isinstance(owner, ast.Dict):
        return _literal(project, module, owner, "the table")
    name = dotted(owner)
    if not name or name.startswith("self."):
        return None
    if isinstance(owner, ast.Name) and isinstance(local := _bound(module, owner, at), ast.Dict):
        return _literal(project, module, local, name)
    table = _home(project, module, name)
    if table is None:
        return None
    return project.memo(("entries of a table", table.module.path, table.name), lambda: _registered(project, table))


def _literal(project: Project, module: SourceModule, table: ast.Dict, name: str) -> Choices | None:
    sites = [find_class(project, module, dotted(v)) if dotted(v) else None for v in table.values]
    found = [site for site in sites if site is not None]
    return Choices(_unique(found), name) if found and len(found) == len(sites) <= MOST else None


def _home(project: Project, module: SourceModule, name: str, depth: int = 0) -> _Table | None:
    """The file and the name under which the table is made, through imports and re-exports."""
    root, _, rest = name.partition(".")
    if not rest and any(_binds(a, root) for a in module.nodes(ast.Assign) if module.function_of(a) is None):
        return _Table(module, root)
    for found in module.imports.get(root, ()):
        resolved = project.resolve(f"{found.dotted}.{rest}" if rest else found.dotted, module.path)
        inner = project.module(resolved.path) if resolved is not None and len(resolved.rest) == 1 else None
        if inner is not None and resolved is not None and depth < 6:
            return _home(project, inner, resolved.rest[0], depth + 1)
    return None


def _binds(assign: ast.Assign, name: str) -> bool:
    return any(isinstance(t, ast.Name) and t.id == name for t in assign.targets)


def _registered(project: Project, table: _Table) -> Choices | None:
    """What is written into the table, stored in it, or put there by a decorator."""
    sites: list[ClassSite] = []
    literals = [a.value for a in table.module.nodes(ast.Assign) if _binds(a, table.name) and table.module.function_of(a) is None]
    for value in literals:
        if isinstance(value, ast.Dict) and value.values:
            written = _literal(project, table.module, value, table.name)
            if written is None:
                return None
            sites += written.sites
    decorated = list(_decorated(project, table))
    sites += decorated
    found = _unique(sites)
    return Choices(found, table.name, open=bool(decorated)) if 0 < len(found) <= MOST else None


def _decorated(project: Project, table: _Table) -> Iterator[ClassSite]:
    """Classes under `@TABLE.register…` and under a decorator whose body stores what it is given in the table."""
    storing = {f.name for f in _storing(table)}
    for word in (table.name, *storing):
        used = re.compile(rb"@[\w.]*\b" + re.escape(word.encode()) + rb"\b")  # from the bytes: an import alone is not parsed
        for path in project.files_containing(word.encode()):
            asked = not is_test_file(path) and used.search(project.read(path) or b"")
            module = project.module(path) if asked else None
            for node in module.nodes(ast.ClassDef) if module is not None else ():
                assert module is not None
                for decorator in node.decorator_list:
                    name = dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)
                    head = name.rpartition(".")[0] if "register" in last(name) and "." in name else ""
                    by_method = bool(head) and word == table.name and _is(project, module, head, table)
                    if by_method or (last(name) == word and word in storing and _defined(project, module, name, table)):
                        yield ClassSite(module, node)


def _is(project: Project, module: SourceModule, name: str, table: _Table) -> bool:
    home = _home(project, module, name)
    return home is not None and (home.module.path, home.name) == (table.module.path, table.name)


def _defined(project: Project, module: SourceModule, name: str, table: _Table) -> bool:
    """True if the decorator's name leads to the table's own file (or stands in it)."""
    if module is table.module:
        return True
    root = name.partition(".")[0]
    for found in module.imports.get(root, ()):
        resolved = project.resolve(found.dotted, module.path)
        if resolved is not None and table.module.path in (resolved.path, *_next(project, resolved.path, root)):
            return True
    return False


def _next(project: Project, path: str, name: str) -> list[str]:
    """Where a package takes a name from that it only hands on."""
    inner = project.module(path)
    found = (project.resolve(i.dotted, path) for i in inner.imports.get(name, ())) if inner is not None else ()
    return [r.path for r in found if r is not None]


def _storing(table: _Table) -> list[FunctionNode]:
    """Top-level functions of the table's file that store one of their (or of an inner function's) arguments in it."""
    out = []
    for assign in table.module.nodes(ast.Assign):
        function = table.module.function_of(assign)
        if function is None or not isinstance(assign.value, ast.Name):
            continue
        if any(isinstance(t, ast.Subscript) and dotted(t.value) == table.name for t in assign.targets):
            given = {a.arg for a in (*function.args.args, *function.args.kwonlyargs)}
            while (outer := table.module.function_of(function)) is not None:
                function = outer
            if assign.value.id in given and not table.module.class_of(function):
                out.append(function)
    return out


def _configured(project: Project, found: Choices) -> Choices:
    """Of a registry that is asked by `type`, the classes that some configuration names; all where none is named."""
    if len(found.sites) == 1:
        return found
    named = [site for site in found.sites if _names(project, site)]
    if not named or len(named) == len(found.sites):
        return found
    only = " or ".join(site.name for site in named)
    return replace(found, sites=tuple(named), assumed=f"{found.table} builds {only}, as in the project's configurations")


def _names(project: Project, site: ClassSite) -> bool:
    word = site.name.encode()
    pattern = re.compile(rb"[\"']?\btype[\"']?[ \t]*[:=][ \t]*[\"']?" + re.escape(word) + rb"\b")
    paths = [*project.files_containing(word), *project.files_containing(word, kinds=TEXT_KINDS)]
    return any(pattern.search(project.read(path) or b"") for path in paths if not is_test_file(path))


def _unique(sites: list[ClassSite]) -> tuple[ClassSite, ...]:
    return tuple({(s.module.path, s.node.lineno): s for s in sites}.values())
