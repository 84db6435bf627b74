"""Names of new folders that are worked out of what a folder holds: `f"run{len(os.listdir(root))}"`, `max(numbers) + 1`.

A process that comes later finds what an earlier one has made, and takes the next number.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

from codemods.analysis.bindings import Binding, attribute_bindings, bindings_of
from codemods.analysis.call_graph import called_function
from codemods.analysis.model.signatures import returned
from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_LISTS = frozenset({"listdir", "glob", "iglob", "rglob", "iterdir", "scandir", "walk"})
_EXISTS = frozenset({"exists", "isdir", "is_dir", "isfile", "is_file", "lexists"})
_MOST = 200  # expressions behind one name
_DEPTH = 3  # functions


@record
class Counted:
    """Where the number is worked out: a `len` of a listing, a `max(...) + 1`, or the test of a search for a free name."""

    module: SourceModule
    node: ast.expr
    searched: bool = False


def counted_in(project: Project, module: SourceModule, path: ast.expr) -> Counted | None:
    """What a path counts, where its number is one that no folder has yet."""
    behind = list(_behind(project, module, path, 0, set()))
    for there, node in behind:
        if _is_length(node, there) and _lists(project, there, node.args[0]):
            return Counted(there, node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and _is_next(project, there, node):
            return Counted(there, node)
        if isinstance(node, ast.Name) and (search := _searched(there, node)) is not None:
            return Counted(there, search, searched=True)
    return None


def _behind(
    project: Project, module: SourceModule, node: ast.AST, depth: int, seen: set[int]
) -> Iterator[tuple[SourceModule, ast.AST]]:
    """Every expression that a value is made of, through names, fields and functions of the project."""
    stack = [node]
    while stack and len(seen) < _MOST:
        top = stack.pop(0)
        if id(top) in seen:
            continue
        seen.add(id(top))
        yield module, top
        if isinstance(top, ast.Name):
            stack += [source for b in bindings_of(module, top) if (source := _source(b)) is not None]
        elif isinstance(top, ast.Attribute) and dotted(top):
            stack += [b.value for b in attribute_bindings(module, top) if b.value is not None] or _settings(module, top)
        if isinstance(top, ast.Call) and depth < _DEPTH and (site := called_function(project, module, top)) is not None:
            for value in returned(site.node, site.module):
                yield from _behind(project, site.module, value, depth + 1, seen)
        stack += list(ast.iter_child_nodes(top))


def _settings(module: SourceModule, node: ast.Attribute) -> list[ast.expr]:
    """What `args.folder` is given in the same function, else in the file, where the settings go by one name."""
    function, name = module.function_of(node), dotted(node)
    given = [a for a in module.nodes(ast.Assign) if any(dotted(t) == name for t in a.targets)]
    return [a.value for a in given if module.function_of(a) is function] or [a.value for a in given]


def _source(bound: Binding) -> ast.expr | None:
    return bound.node.iter if bound.value is None and isinstance(bound.node, ast.For) else bound.value


def _lists(project: Project, module: SourceModule, node: ast.expr) -> bool:
    """True for what is made of the names in a folder."""
    calls = (n for _, n in _behind(project, module, node, _DEPTH, set()) if isinstance(n, ast.Call))
    return any((last(dotted(c.func)) or getattr(c.func, "attr", "")) in _LISTS for c in calls)


def _is_length(node: ast.AST, module: SourceModule) -> TypeGuard[ast.Call]:
    """True for `len(names)`, but where it is only held against a number."""
    if not isinstance(node, ast.Call) or dotted(node.func) != "len" or not node.args:
        return False
    return not isinstance(module.parent(node), (ast.Compare, ast.If, ast.IfExp))


def _is_next(project: Project, module: SourceModule, node: ast.BinOp) -> bool:
    """`max(numbers) + 1`, also of the last of them sorted, by a name, and where a flag keeps the last: `0 if keep else 1`."""
    added = [node.right.body, node.right.orelse] if isinstance(node.right, ast.IfExp) else [node.right]
    if not all(isinstance(a, ast.Constant) and isinstance(a.value, int) for a in added) or not _lists(project, module, node.left):
        return False
    picked = (n for _, n in _behind(project, module, node.left, _DEPTH, set()))
    return any(
        (isinstance(n, ast.Call) and dotted(n.func) in ("max", "len"))
        or (isinstance(n, ast.Subscript) and isinstance(n.slice, ast.UnaryOp))
        for n in picked
    )


def _searched(module: SourceModule, name: ast.Name) -> ast.expr | None:
    """The test of `while os.path.exists(f"run{n}"): n += 1`, and of `if not os.path.exists(path): break` in such a loop."""
    function = module.function_of(name)
    loops: list[ast.While | ast.For] = [*module.nodes(ast.While), *module.nodes(ast.For)]
    for loop in loops:
        if module.function_of(loop) is not function or loop.lineno > name.lineno:
            continue
        test = loop.test if isinstance(loop, ast.While) and _asks(loop.test) else _test_of_exit(loop)
        if test is not None and _changes(loop, name.id):
            return test
    return None


def _test_of_exit(loop: ast.While | ast.For) -> ast.expr | None:
    """What lets a loop end at a path that is not there."""
    tests = (n for s in loop.body for n in walk(s) if isinstance(n, ast.If) and _asks(n.test))
    return next((t.test for t in tests if any(isinstance(s, (ast.Break, ast.Return)) for s in t.body)), None)


def _asks(test: ast.expr) -> bool:
    calls = (n for n in walk(test) if isinstance(n, ast.Call))
    return any((last(dotted(c.func)) or getattr(c.func, "attr", "")) in _EXISTS for c in calls)


def _changes(loop: ast.While | ast.For, name: str) -> bool:
    changed = (n for s in loop.body for n in walk(s) if isinstance(n, (ast.Assign, ast.AugAssign)))
    targets = [t for n in changed for t in (n.targets if isinstance(n, ast.Assign) else [n.target])]
    return any(dotted(t) == name for t in targets) or (isinstance(loop, ast.For) and dotted(loop.target) == name)
