"""The rank put into the name of a file, where the name is written out and nobody else in the repository says it."""

from __future__ import annotations

import ast
import re

from codemods.analysis.bound_values import assigned
from codemods.analysis.guards.entry_points import group_name
from codemods.analysis.guards.global_rank_at import is_global, starts_always
from codemods.analysis.hooks import WRITER_HOOKS
from codemods.analysis.output.run_before import bound_above
from codemods.analysis.variance.paths import parameters
from codemods.api.findings import Edit, ReplaceExpression
from codemods.files.source import SourceModule
from codemods.files.text_file import TEXT_KINDS
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_NAME = lazy(r"(?P<stem>[\w.@ -]*?)(?P<end>\.\w+)$")
_LITERAL = lazy(r"(?P<prefix>[fF]?)(?P<quote>[\"'])(?P<text>[^\"'\\\r\n]*)(?P=quote)$")


@record
class Renamed:
    """edits: none where `why` says what stands against it. name: the new one, with a star for the rank."""

    edits: tuple[Edit, ...]
    name: str = ""
    why: str = ""


def named_by_rank(project: Project, module: SourceModule, path: ast.expr, at: ast.stmt) -> Renamed:
    """The path with the rank in the name of the file."""
    literal = _literal(module, path)
    written = _LITERAL.match(module.text_of(literal)) if literal is not None else None
    name = _NAME.search(written["text"].rpartition("/")[2]) if written is not None else None
    if literal is None or written is None or name is None:
        return Renamed((), why="put the rank into the name, and read one file for each rank")
    old = name["stem"].strip() + name["end"]
    rank = _rank(project, module, at)
    if rank is None:
        return Renamed((), why=f"put the rank into the name `{old}`, and read one file for each rank")
    if (reader := _said_elsewhere(project, module, old, literal)) is not None:
        return Renamed((), why=f"put the rank into the name, and read one file for each rank in {reader}")
    if not written["prefix"] and set(written["text"]) & set("{}"):
        return Renamed((), why=f"put the rank into the name `{old}`, and read one file for each rank")
    text = written["text"][: -len(name["end"])] + f"-rank{{{rank}}}" + name["end"]
    code = f"f{written['quote']}{text}{written['quote']}"
    return Renamed((ReplaceExpression(module.path, module.span(literal), code),), f"{name['stem']}-rank*{name['end']}")


def _literal(module: SourceModule, path: ast.expr, depth: int = 2) -> ast.expr | None:
    """The text in which the path ends."""
    if isinstance(path, (ast.Constant, ast.JoinedStr)):
        return path
    if isinstance(path, ast.BinOp) and isinstance(path.op, ast.Div):
        return _literal(module, path.right, depth)
    if isinstance(path, ast.Call) and path.args and not path.keywords:
        return _literal(module, path.args[-1], depth) if re.search(r"(?:join|Path|str)$", module.text_of(path.func)) else None
    if isinstance(path, ast.Name) and depth:
        values = assigned(module, path, path.id)
        reads = [n for n in module.reads_of(path.id) if isinstance(n, ast.Name)]
        once = len([n for n in reads if module.function_of(n) is module.function_of(path)]) == 1
        return _literal(module, values[0], depth - 1) if len(values) == 1 and once else None
    return None


def _rank(project: Project, module: SourceModule, at: ast.stmt) -> str | None:
    """How the rank is asked for at a place."""
    for name, value in bound_above(module, module.function_of(at), at):
        if is_global(module, value):
            return name
    function = module.function_of(at)
    if function is not None and function.name in WRITER_HOOKS and len(given := parameters(function)) > 1:
        return f"{given[1]}.global_rank"  # the Trainer, whatever the hook calls it
    name = group_name(module, at)
    if not name or not module.holds(b"init_process_group"):
        return None
    return f"{name}.get_rank()" if starts_always(project) else f"{name}.get_rank() if {name}.is_initialized() else 0"


def _said_elsewhere(project: Project, module: SourceModule, name: str, literal: ast.expr) -> str | None:
    """Another place that names the file."""
    for path in project.files_containing(name.encode(), kinds=(".py", *TEXT_KINDS)):
        lines = (project.read(path) or b"").decode("utf-8", "replace").split("\n")
        for number, line in enumerate(lines, 1):
            if name in line and (path != module.path or number != literal.lineno):
                return f"{path}:{number}"
    return None
