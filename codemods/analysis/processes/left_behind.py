"""Lists and dicts that spawned workers fill and their parent reads: each worker fills a copy of its own."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from codemods.analysis.bindings import Binding, bindings_at_top, bindings_of
from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.names import last, qualified
from codemods.analysis.processes.changes import Change, change_of, changes_itself, handed_to
from codemods.analysis.processes.starts import Start, reached_by, run_after
from codemods.files.source import SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_MAKERS = frozenset({"list", "dict", "set", "defaultdict", "OrderedDict", "Counter", "deque"})
_ARRAYS = frozenset({"zeros", "empty", "ones", "full", "array"})
_DISPLAYS = (ast.List, ast.Tuple, ast.Dict, ast.Set, ast.Starred)
_BUILTINS = frozenset(dir(builtins))


@record
class LeftBehind:
    """name: what the workers fill. made: where the parent makes it empty. change: by a worker. read: by the parent."""

    name: str
    made: ast.AST
    change: Change
    read: ast.Name


def left_behind(project: Project, module: SourceModule, start: Start) -> Iterator[LeftBehind]:
    """What is handed to the workers, and what stands in the file for both to read."""
    for parameter, value in start.given.items():
        if isinstance(value, ast.Name) and (made := _made_empty(module, bindings_of(module, value))) is not None:
            change = change_of(project, start.worker, parameter)
            read = _first_read(project, module, start, value.id, made) if change is not None else None
            if change is not None and read is not None:
                yield LeftBehind(value.id, made.node, change, read)
    if start.worker.module is module:
        yield from _of_the_file(project, module, start)


def _of_the_file(project: Project, module: SourceModule, start: Start) -> Iterator[LeftBehind]:
    reached = [s for s in reached_by(project, start.worker) if s.module is module]
    changed: dict[str, Change] = {}
    for site in reached:
        for node in walk(site.node):
            for name in _names_changed(node):
                if [b for b in bindings_of(module, name) if module.function_of(b.node) is not None] == []:
                    changed.setdefault(name.id, Change(module, node))
    own = {id(s.node) for s in reached}
    for word, change in changed.items():
        made = _made_empty(module, bindings_at_top(module, word))
        if made is None or not _is_changed_by_workers_alone(module, word, own):
            continue
        if (read := _first_read(project, module, start, word, made, own)) is not None:
            yield LeftBehind(word, made.node, change, read)


def _names_changed(node: ast.AST) -> list[ast.Name]:
    if isinstance(node, (ast.Call, ast.Assign, ast.AugAssign)):
        return [n for n in walk(node) if isinstance(n, ast.Name) and changes_itself(node, n.id)]
    return []


def _is_changed_by_workers_alone(module: SourceModule, word: str, own: set[int]) -> bool:
    reads = (n for n in module.nodes(ast.Name) if n.id == word)
    for name in reads:
        function = module.function_of(name)
        if any(changes_itself(up, word) for up in _near(module, name)) and (function is None or id(function) not in own):
            return False
    return True


def _near(module: SourceModule, name: ast.Name) -> Iterator[ast.AST]:
    for up in module.ancestors(name):
        yield up
        if isinstance(up, ast.stmt):
            return


def _made_empty(module: SourceModule, bound: list[Binding]) -> Binding | None:
    """The one place where a name is given something empty."""
    if len(bound) != 1 or bound[0].part or bound[0].parameter or bound[0].value is None:
        return None
    holds = isinstance(bound[0].value, (*_DISPLAYS, ast.Call, ast.BinOp))
    return bound[0] if holds and _is_empty(module, bound[0].value) else None


def _is_empty(module: SourceModule, value: ast.expr) -> bool:
    if isinstance(value, ast.Constant):
        return value.value is None or value.value in (0, "")
    if isinstance(value, (ast.List, ast.Set)):
        return all(_is_empty(module, e) for e in value.elts)
    if isinstance(value, ast.Dict):
        return None not in value.keys and all(_is_empty(module, v) for v in value.values)
    if isinstance(value, ast.BinOp):
        return isinstance(value.op, ast.Mult) and isinstance(value.left, ast.List) and _is_empty(module, value.left)
    if not isinstance(value, ast.Call):
        return False
    name = qualified(module, value.func)
    if name.startswith("numpy.") and last(name) in _ARRAYS - {"array"}:
        return True
    if last(name) not in _MAKERS or name.rpartition(".")[0] not in ("", "collections", "builtins"):
        return False
    return all(k.arg == "maxlen" for k in value.keywords) and (not value.args or last(name) == "defaultdict")


def _first_read(
    project: Project, module: SourceModule, start: Start, word: str, made: Binding, workers: set[int] | None = None
) -> ast.Name | None:
    """The parent's first read behind the start; None where somebody else may fill the object, or nobody reads it."""
    behind = {id(n): None for s in run_after(module, start.end) for n in walk(s)}
    found: list[ast.Name] = []
    given = {id(n) for v in start.given.values() for n in walk(v)}
    for name in module.nodes(ast.Name):
        if name.id != word or id(name) in given or not isinstance(name.ctx, ast.Load) or not _is_same(module, name, made):
            continue
        if workers is not None and _is_within(module, name, workers):
            continue
        use = _use(project, module, name)
        if use == "fill":
            return None
        if use == "read" and id(name) in behind:
            found.append(name)
    return min(found, key=lambda n: (n.lineno, n.col_offset), default=None)


def _is_within(module: SourceModule, node: ast.AST, functions: set[int]) -> bool:
    return any(id(up) in functions for up in module.ancestors(node))


def _is_same(module: SourceModule, name: ast.Name, made: Binding) -> bool:
    return any(b is made for b in bindings_of(module, name))


def _use(project: Project, module: SourceModule, name: ast.Name) -> str:
    """"read", "fill" where the object may be filled or get another name, "" for what says nothing."""
    node: ast.AST = name
    for up in module.ancestors(name):
        if changes_itself(up, name.id):
            return "fill"
        if isinstance(up, ast.Call):
            if node is up.func:
                return "read"  # `losses.items()`
            return _handed(project, module, up, name, whole=node is name or isinstance(node, (*_DISPLAYS, ast.keyword)))
        if isinstance(up, (*_DISPLAYS, ast.keyword)):
            node = up
            continue
        if isinstance(up, ast.Attribute) and up.value is node:
            node = up
            continue
        if isinstance(up, ast.Subscript) and up.value is node:
            return "fill" if _is_renamed_and_changed(module, up) else "read"
        if isinstance(up, ast.stmt):
            return "fill" if isinstance(up, (ast.Assign, ast.AnnAssign)) and up.value is node else "read"
        return "fill" if isinstance(up, (ast.Lambda, ast.NamedExpr, ast.IfExp, ast.BoolOp)) else "read"
    return ""


def _is_renamed_and_changed(module: SourceModule, part: ast.Subscript) -> bool:
    """True for `row = history["loss"]` where `row` is filled."""
    above = module.parent(part)
    names = [t.id for t in above.targets if isinstance(t, ast.Name)] if isinstance(above, ast.Assign) else []
    calls = (*module.nodes(ast.Call), *module.nodes(ast.Assign), *module.nodes(ast.AugAssign)) if names else ()
    return any(changes_itself(n, name) for n in calls for name in names)


def _handed(project: Project, module: SourceModule, call: ast.Call, name: ast.Name, *, whole: bool) -> str:
    if not whole:
        return "read"
    sites: list[tuple[FunctionSite, str]] = list(handed_to(project, module, call, name.id))
    if sites:
        return "fill" if any(change_of(project, s, p) is not None for s, p in sites) else "read"
    target = qualified(module, call.func)
    if target in _BUILTINS or _is_from_package(project, module, target):
        return "read"
    return "" if _is_of_a_package(project, module, call.func) else "fill"


def _is_of_a_package(project: Project, module: SourceModule, func: ast.expr) -> bool:
    """True for a method of what a package made: `ax.plot(losses)` behind `fig, ax = plt.subplots()`, `f.write` behind `open`."""
    while isinstance(func, (ast.Attribute, ast.Subscript)):
        func = func.value
    bound = bindings_of(module, func) if isinstance(func, ast.Name) else []
    made = [b.node if b.value is None else b.value for b in bound]
    targets = [qualified(module, m.func) for m in made if isinstance(m, ast.Call)]
    return bool(bound) and len(targets) == len(bound) and all(
        t == "open" or _is_from_package(project, module, t) for t in targets
    )  # fmt: skip


def _is_from_package(project: Project, module: SourceModule, target: str) -> bool:
    root = target.partition(".")[0]
    imported = any(m.partition(".")[0] == root for m in module.imported_modules)
    return imported and project.resolve(target, module.path) is None
