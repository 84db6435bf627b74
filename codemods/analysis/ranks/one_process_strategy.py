"""Is a Trainer asked for DataParallel (`dp`)? One process drives all its devices then, and there are no ranks."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.job_files.documented_starts import starts_of
from codemods.files.source import SourceModule
from codemods.store.project import Project

_NAME = "dp"


def is_of_one_process(project: Project, module: SourceModule, value: ast.expr) -> bool:
    """True for `dp`, for a name that is bound to nothing else, and for an option that is left at it by each command."""
    if isinstance(value, ast.Name):
        bound = bindings_of(module, value)
        return bool(bound) and all(b.value is not None and not b.part and _is_dp(b.value) for b in bound)
    return _is_left_at_it(project, module, value.attr) if isinstance(value, ast.Attribute) else _is_dp(value)


def _is_dp(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value == _NAME


def _is_left_at_it(project: Project, module: SourceModule, option: str) -> bool:
    """True where the option is `dp` by default, and the commands that start the script (there are some) give no other."""
    made = [c for c in module.calls_named("add_argument") if c.args and _option(c.args[0]) == option]
    defaults = [next((k.value for k in c.keywords if k.arg == "default"), None) for c in made]
    if not defaults or not all(d is not None and _is_dp(d) for d in defaults):
        return False
    commands = starts_of(project, module.path)
    return bool(commands) and not any(s.several or s.more or option in s.flags for s in commands or ())


def _option(node: ast.expr) -> str:
    text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
    return text.lstrip("-").replace("-", "_")
