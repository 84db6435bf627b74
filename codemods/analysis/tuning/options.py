"""Which option of a command line, or field of a dataclass, stands behind `args.x`, and what its default is."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file
from codemods.analysis.importing import imported_files
from codemods.analysis.names import last, qualified
from codemods.files.source import SourceModule
from codemods.files.text_file import PYTHON_KINDS
from codemods.runtime.record import record
from codemods.store.project import Project


@record
class Option:
    """An option. name: as the program reads it. node: the literal whole number that is its default, None where there is none.

    read_also: another place that reads it than the one it was looked up for, "" for none. default: whatever it is given, `-1` and
    a text, too.
    """

    name: str
    module: SourceModule
    node: ast.Constant | None
    read_also: str = ""
    default: ast.expr | None = None

    @property
    def value(self) -> int | None:
        return self.node.value if self.node is not None and isinstance(self.node.value, int) else None


def option_behind(project: Project, module: SourceModule, value: ast.expr) -> Option | None:
    """The option of `args.x`, where the file and what it imports know exactly one of that name."""
    if not isinstance(value, ast.Attribute) or not isinstance(value.value, (ast.Name, ast.Attribute)):
        return None
    only = option_named(project, module, value.attr)
    if only is None:
        return None
    return Option(only.name, only.module, only.node, _read_also(project, module, value), only.default)


def option_named(project: Project, module: SourceModule, name: str) -> Option | None:
    """The option of a name, where the file and what it imports know exactly one."""
    found = [o for path in sorted(imported_files(project, module)) for o in _in_file(project, path, name)]
    return found[0] if len(found) == 1 else None


def _in_file(project: Project, path: str, name: str) -> Iterator[Option]:
    module = project.module(path) if path.endswith(PYTHON_KINDS) and not is_test_file(path) else None
    if module is None:
        return
    for call in module.calls_named("add_argument"):
        given = {k.arg: k.value for k in call.keywords}
        dest = given.get("dest")
        flags = [str(a.value) for a in call.args if isinstance(a, ast.Constant)]
        names = [str(dest.value)] if isinstance(dest, ast.Constant) else [f.lstrip("-").replace("-", "_") for f in flags]
        if name in names and any(f.startswith("--") for f in flags):
            yield Option(name, module, _whole(given.get("default")), default=given.get("default"))
    for field in module.nodes(ast.AnnAssign):
        inside = module.class_of(field) is not None and module.function_of(field) is None
        if inside and isinstance(field.target, ast.Name) and field.target.id == name:
            default = _field_default(module, field.value)
            yield Option(name, module, _whole(default), default=default)


def _field_default(module: SourceModule, value: ast.expr | None) -> ast.expr | None:
    if isinstance(value, ast.Call) and last(qualified(module, value.func)) in ("field", "Field"):
        return next((k.value for k in value.keywords if k.arg == "default"), None)
    return value


def _whole(value: ast.expr | None) -> ast.Constant | None:
    return value if isinstance(value, ast.Constant) and type(value.value) is int else None


def _read_also(project: Project, module: SourceModule, value: ast.Attribute) -> str:
    for path in sorted(imported_files(project, module)):
        other = project.module(path)
        for node in other.reads_of(value.attr) if other is not None else ():
            if node is not value and isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                return f"{path}:{node.lineno}"
    return ""
