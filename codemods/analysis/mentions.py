"""Where a project mentions a function, method, module, attribute or keyword that it wants to call by another name.

The rules go by name, narrowed by a dotted one; an import is followed to the file that defines what it brings. What a place means
and cannot be shown is a doubt: it is told and stays.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from codemods.analysis.functions import follow_function
from codemods.analysis.local_names import is_local
from codemods.analysis.mention_places import Found, Rename, first_of, name_of, place
from codemods.analysis.module_mentions import modules
from codemods.analysis.names import dotted, is_parameter, qualified
from codemods.api.findings import Span
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project


@record
class Mentions:
    """places: spans of names with what each becomes. doubts: spans of mentions that stay, with the reason."""

    places: tuple[tuple[Span, str], ...] = ()
    doubts: tuple[tuple[Span, str], ...] = ()


def mentions(project: Project, module: SourceModule, rename: Rename) -> Mentions:
    """Everything in `module` that the rename is about, in source order."""
    found = tuple(_READERS[rename.kind](project, module, rename))
    places = sorted((span, new) for span, new, doubt in found if not doubt)
    doubts = sorted((span, doubt) for span, _, doubt in found if doubt)
    return Mentions(tuple(dict.fromkeys(places)), tuple(dict.fromkeys(doubts)))


# Functions


def _functions(project: Project, module: SourceModule, rename: Rename) -> Iterator[Found]:
    name = rename.name
    home = _defines(project, module, rename)
    brought = [alias for alias, there in _imported(module, name) if _is_meant(project, module, rename, there)]
    starred = not brought and not home and _starred(project, module, rename)
    if home or any(not a.asname for a in brought) or starred:
        if other := _other_meaning(module, name, home=home):
            yield module.span(other), "", f"`{name}` has a second meaning in this file"
            return
        yield from (place(module, n, rename) for n in _bare(module, name, frozenset(brought)))
        yield from _in_all(module, rename)
    if home:
        yield from ((name_of(module, f), rename.new, "") for f in _top_level(module, name))
    yield from ((first_of(module.span(alias), name), rename.new, "") for alias in brought)
    for node in module.nodes(ast.Attribute):
        if node.attr == name and _is_meant(project, module, rename, _imported_name(module, node)):
            yield place(module, node, rename)


def _defines(project: Project, module: SourceModule, rename: Rename) -> bool:
    """True if the function that is meant is defined in `module`."""
    if not _top_level(module, rename.name):
        return False
    if not rename.owner:
        return True
    return rename.owner in _module_names(module.path)


def _module_names(path: str) -> Iterator[str]:
    """`src/pkg/dist.py` -> `src.pkg.dist`, `pkg.dist`, `dist`."""
    parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
    return (".".join(parts[i:]) for i in range(len(parts)))


def _is_meant(project: Project, module: SourceModule, rename: Rename, target: str) -> bool:
    """True if the imported name `target` is the function: by its own name, or followed to the file that defines it."""
    if not target.endswith(rename.name) or "." not in target:
        return False
    if rename.owner and target == rename.old:
        return True
    found = follow_function(project, target, module.path)
    return found is not None and _defines(project, found[0], rename)


def _imported(module: SourceModule, name: str) -> Iterator[tuple[ast.alias, str]]:
    for node in module.nodes(ast.ImportFrom):
        source = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name == name:
                yield alias, f"{source}{name}" if source.endswith(".") else f"{source}.{name}"


def _imported_name(module: SourceModule, node: ast.expr) -> str:
    """The name that a dotted expression was imported as, "" where no import binds its root."""
    root = dotted(node).partition(".")[0]
    if not root or root not in module.imports or is_parameter(module, root, node) or is_local(module, root, node):
        return ""
    return qualified(module, node)


def _starred(project: Project, module: SourceModule, rename: Rename) -> bool:
    stars = [n for n in module.nodes(ast.ImportFrom) if any(a.name == "*" for a in n.names)]
    sources = ["." * n.level + (n.module or "") for n in stars]
    joined = (s + rename.name if s.endswith(".") else f"{s}.{rename.name}" for s in sources)
    return any(_is_meant(project, module, rename, target) for target in joined)


def _top_level(module: SourceModule, name: str) -> list[FunctionNode]:
    return [f for f in module.functions if f.name == name and not module.function_of(f) and not module.class_of(f)]


def _other_meaning(module: SourceModule, name: str, *, home: bool) -> ast.AST | None:
    """A statement at the top of the file, or one that reaches for it, that binds the name to something else."""
    for node in module.nodes(ast.Name):
        if node.id == name and not isinstance(node.ctx, ast.Load) and not is_local(module, name, node):
            return node
    for scope in module.nodes(ast.Global):
        if name in scope.names:
            return scope
    for cls in module.nodes(ast.ClassDef):
        if cls.name == name:
            return cls
    return next((i.node for i in module.imports.get(name, ()) if i.name != name), None) if not home else None


def _bare(module: SourceModule, name: str, brought: frozenset[ast.alias]) -> Iterator[ast.Name]:
    """The bare name, wherever no function round it gives it a meaning of its own. brought: imports of what is meant."""
    for node in module.nodes(ast.Name):
        if node.id == name and not is_local(module, name, node, brought):
            yield node


def _in_all(module: SourceModule, rename: Rename) -> Iterator[Found]:
    """The name's text in `__all__`."""
    for node in module.nodes(ast.Constant):
        if node.value == rename.name and isinstance(holder := module.parent(node), (ast.List, ast.Tuple)):
            owner = module.parent(holder)
            targets = owner.targets if isinstance(owner, ast.Assign) else [getattr(owner, "target", None)]
            if any(dotted(t) == "__all__" for t in targets):
                yield module.span(node), module.text_of(node).replace(rename.name, rename.new), ""


# Methods and attributes


def _methods(project: Project, module: SourceModule, rename: Rename) -> Iterator[Found]:
    for f in module.functions:
        owner = module.parent(f)
        if f.name == rename.name and isinstance(owner, ast.ClassDef) and _belongs(module, rename, owner):
            yield name_of(module, f), rename.new, ""
    yield from _uses(project, module, rename)


def _attributes(project: Project, module: SourceModule, rename: Rename) -> Iterator[Found]:
    for cls in module.nodes(ast.ClassDef):
        if _belongs(module, rename, cls):
            for statement in cls.body:
                targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
                yield from ((module.span(t), rename.new, "") for t in targets if isinstance(t, ast.Name) and t.id == rename.name)
    yield from _uses(project, module, rename)


def _uses(project: Project, module: SourceModule, rename: Rename) -> Iterator[Found]:
    for node in module.nodes(ast.Attribute):
        if node.attr != rename.name:
            continue
        where, new, doubt = place(module, node, rename)
        if imported := _imported_name(module, node.value):
            if _leads_to_class(project, module, imported, rename.owner.rpartition(".")[2]):
                yield where, new, doubt
        elif not rename.owner or _is_own(module, rename, node):
            yield where, new, doubt
        elif rename.owner.rpartition(".")[2].encode() in module.data and not _is_anothers(module, rename, node):
            yield where, "", f"whose `{rename.name}` this is, is not known"


def _leads_to_class(project: Project, module: SourceModule, imported: str, owner: str) -> bool:
    """True for `Class.member` where the class is one of the project (that of the rename, if it names one)."""
    found = project.resolve(imported, module.path)
    if found is None or len(found.rest) != 1 or (owner and found.rest[0] != owner):
        return False
    there = project.module(found.path)
    return there is not None and any(c.name == found.rest[0] for c in there.nodes(ast.ClassDef))


def _is_own(module: SourceModule, rename: Rename, node: ast.Attribute) -> bool:
    """True for `self.x`, `cls.x`, `super().x` in the class or an heir of it in this file, and for `Class.x`."""
    base = node.value
    is_super = isinstance(base, ast.Call) and isinstance(base.func, ast.Name) and base.func.id == "super"
    name = "self" if is_super else dotted(base)
    if name == rename.owner.rpartition(".")[2]:
        return True
    cls = module.class_of(node)
    return name in ("self", "cls") and cls is not None and _belongs(module, rename, cls)


def _is_anothers(module: SourceModule, rename: Rename, node: ast.Attribute) -> bool:
    """True for `self.x` in a class that defines `x` itself and is not the one that is meant."""
    cls = module.class_of(node)
    return dotted(node.value) in ("self", "cls") and cls is not None and rename.name in module.methods_of(cls)


def _belongs(module: SourceModule, rename: Rename, cls: ast.ClassDef) -> bool:
    """True if the class is the one that the rename names, or inherits from it as far as this file shows."""
    wanted = rename.owner.rpartition(".")[2]
    if not wanted or cls.name == wanted:
        return True
    named = {c.name: c for c in module.nodes(ast.ClassDef)}
    seen, todo = {cls.name}, [dotted(b).rpartition(".")[2] for b in cls.bases]
    while todo:
        base = todo.pop()
        if base == wanted:
            return True
        if base in named and base not in seen:
            seen.add(base)
            todo += [dotted(b).rpartition(".")[2] for b in named[base].bases]
    return False


# Keywords


def _keywords(project: Project, module: SourceModule, rename: Rename) -> Iterator[Found]:
    del project
    for call in module.nodes(ast.Call):
        for keyword in call.keywords:
            if keyword.arg != rename.name:
                continue
            if not rename.owner or f".{qualified(module, call.func)}".endswith(f".{rename.owner}"):
                if any(k.arg == rename.new for k in call.keywords):
                    yield module.span(keyword), "", f"the call has a `{rename.new}` already"
                else:
                    yield place(module, keyword, rename)


_READERS: dict[str, Callable[[Project, SourceModule, Rename], Iterator[Found]]] = {
    "functions": _functions,
    "methods": _methods,
    "modules": modules,
    "attributes": _attributes,
    "keywords": _keywords,
}
