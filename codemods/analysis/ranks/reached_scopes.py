"""What a program comes to: its top level, and each function and class that it names, or that what it names does.

With the top levels of the files that these stand in, which run on import. What is handed on counts as called.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from codemods.analysis.call_graph import find_function
from codemods.analysis.class_index import class_facts, find_class, local_class
from codemods.analysis.conditions import is_main_block
from codemods.analysis.functions import functions_by_name
from codemods.analysis.local_names import is_local_value
from codemods.analysis.names import dotted
from codemods.analysis.ranks.cannot_run import is_never
from codemods.analysis.ranks.installed_commands import is_installed_command
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project

T = TypeVar("T")
MOST_SCOPES = 200  # functions and classes that one program comes to: what a larger one does is open


class LeftOut(Protocol):
    """Says which parts of a program are not followed."""

    def followed(self, module: SourceModule, node: ast.AST) -> list[ast.AST] | None:
        """The parts of a node that are followed; None for all of them."""


_Asks = Callable[[Project, SourceModule, ast.AST, LeftOut | None], T]


def reached(
    project: Project, program: SourceModule, left_out: LeftOut | None, entries: Sequence[FunctionNode] | None = None
) -> Iterator[tuple[SourceModule, ast.AST]]:
    """The program's top level, and each function and class that it names, or that what it names does: handed on is called.

    With the top levels of the files that these stand in, which run on import. entries: the functions that the command line
    calls in the run which is asked about; all that it may call, if left out.
    """
    queue: list[tuple[SourceModule, ast.AST]] = [(program, program.tree)]
    if entries is None:
        own = [f for f in program.tree.body if isinstance(f, (ast.FunctionDef, ast.AsyncFunctionDef))]
        entries = [f for f in own if _is_entry(f) or is_installed_command(project, program, f)]
    queue += ((program, f) for f in entries)
    seen = {(program.path, 0)}
    while queue and len(seen) < MOST_SCOPES:
        module, scope = queue.pop(0)
        yield module, scope
        for other, node in _named(project, module, scope, left_out):
            for line, part in ((node.lineno, node), (0, _on_import(other))):
                if (other.path, line) not in seen:
                    seen.add((other.path, line))
                    queue.append((other, part))


def _on_import(module: SourceModule) -> ast.Module:
    """The top level of a file without the block of a program."""
    body = [s for s in module.tree.body if not is_main_block(s)]
    return ast.Module(body=body, type_ignores=[])


def _is_entry(function: FunctionNode) -> bool:
    """True for `main`, which an installed command calls, and for what a decorator may hand to a command line."""
    return function.name == "main" or bool(function.decorator_list)


def _named(
    project: Project, module: SourceModule, scope: ast.AST, left_out: LeftOut | None
) -> Iterator[tuple[SourceModule, FunctionNode | ast.ClassDef]]:
    for name in once_a_scope(project, module, scope, left_out, "names in", _names_in):
        root = name.partition(".")[0]
        if not root or not (root in module.imports or "*" in module.imports or _is_top(module, root)):
            continue
        if (site := find_function(project, module, name)) is not None and site.node.name != "__init__":
            yield site.module, site.node
        elif (made := find_class(project, module, name)) is not None:
            yield from ((s.module, s.node) for s in class_facts(project, made.module, made.node).lineage)
    if isinstance(scope, ast.ClassDef):
        for above in class_facts(project, module, scope).lineage[1:]:
            yield above.module, above.node


def _names_in(project: Project, module: SourceModule, scope: ast.AST, left_out: LeftOut | None) -> tuple[str, ...]:
    read = [
        node for node in inside(module, scope, left_out)
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)
    ]  # fmt: skip
    return tuple(sorted({dotted(node) for node in read if not _is_of_a_local_value(module, node)}))


def _is_of_a_local_value(module: SourceModule, node: ast.Name | ast.Attribute) -> bool:
    """True for `run.name` behind `run = wandb.init()` in a file that has a function `run`, too."""
    root: ast.expr = node
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name) or not (root.id in module.imports or _is_top(module, root.id)):
        return False
    return is_local_value(module, root)


def once_a_scope(
    project: Project, module: SourceModule, scope: ast.AST, left_out: LeftOut | None, question: str, ask: _Asks[T]
) -> T:
    """The answer for a scope, which is the same for each program that reaches it."""
    if left_out is not None:
        return ask(project, module, scope, left_out)
    line = -1 if scope is module.tree else getattr(scope, "lineno", 0)
    return project.keep((question, module.path, line), lambda: ask(project, module, scope, None))


def _is_top(module: SourceModule, name: str) -> bool:
    return name in functions_by_name(module) or local_class(module, name) is not None


def inside(module: SourceModule, scope: ast.AST, left_out: LeftOut | None = None) -> Iterator[ast.AST]:
    for part in parts_of(scope):
        yield from _without(module, part, left_out)


def _without(module: SourceModule, part: ast.AST, left_out: LeftOut | None) -> Iterator[ast.AST]:
    """All nodes but for those that stand under `if False:`, and what is left out."""
    queue = [part]
    while queue:
        node = queue.pop()
        yield node
        some = left_out.followed(module, node) if left_out is not None else None
        if some is not None:
            queue += some
        elif isinstance(node, ast.If) and is_never(node.test):
            queue += [node.test, *node.orelse]
        else:
            queue += ast.iter_child_nodes(node)


def parts_of(scope: ast.AST) -> list[ast.AST]:
    """A function or class itself; of a file the statements of its top level, which define functions and do not run them."""
    if not isinstance(scope, ast.Module):
        return [scope]
    return [s for s in scope.body if not isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))]
