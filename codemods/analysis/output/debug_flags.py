"""Lines under a switch for debugging that is off unless somebody asks for it: nobody sees them in a usual run."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from codemods.analysis.branches import branches_round
from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_SWITCH = lazy(r"^_?(?:is_|do_|use_|in_)?debug(?:ging|_mode|_flag|_prints?)?$", re.IGNORECASE)
_KINDS = (".py", ".yaml", ".yml", ".json", ".toml", ".cfg", ".ini", ".gin", ".sh")
_TRUE = rb"(?:[Tt]rue|1|yes|on)\b"


def is_under_a_debug_switch(project: Project, module: SourceModule, statements: Sequence[ast.AST]) -> bool:
    """True where a test round the statements, or the test of each, is of a switch that the project leaves off."""
    if any(branch.holds and _is_off(project, branch.test) for branch in branches_round(module, statements[0])):
        return True
    return all(isinstance(s, ast.If) and not s.orelse and _is_off(project, s.test) for s in statements)


def _is_off(project: Project, test: ast.expr) -> bool:
    if isinstance(test, ast.BoolOp):
        needed = any if isinstance(test.op, ast.And) else all
        return needed(_is_off(project, v) for v in test.values)
    name = last(dotted(test)) if isinstance(test, (ast.Name, ast.Attribute)) else ""
    return _SWITCH.search(name) is not None and project.keep(("debug switch", name), lambda: not _is_turned_on(project, name))


def _is_turned_on(project: Project, name: str) -> bool:
    """True where a file sets the switch to true, has true for its default, or starts a program with it."""
    word = re.escape(name.encode())
    turned = re.compile(
        rb"\b" + word + rb"\b[\"']?\s*(?::\s*\w+\s*)?[=:]\s*" + _TRUE  # debug=True, debug: bool = True, "debug": true
        + rb"|--" + word + rb"[\"'][^()]*(?:default\s*=\s*" + _TRUE + rb"|store_false)"  # an option
    )  # fmt: skip
    for path in project.files_containing(name.encode(), kinds=_KINDS):
        data = project.read_text(path) or b"" if not is_test_file(path) else b""
        data = re.sub(rb"(?m)^\s*#[^\n]*", b"", data)
        if turned.search(data) or (path.endswith(".sh") and re.search(rb"--" + word + rb"\b(?!=\s*(?:[Ff]alse|0))", data)):
            return True
    return False
