"""Calls that make a folder: how each is spelled, which folder it makes, and whether it minds one that is there."""

from __future__ import annotations

import ast

from codemods.analysis.given_beforehand import keywords_given
from codemods.analysis.names import dotted, qualified
from codemods.analysis.paths import PATH_CLASSES, is_path
from codemods.files.source import SourceModule


def creates_folder(module: SourceModule, call: ast.Call) -> str:
    """`os.makedirs`, `os.mkdir`, `Path.mkdir` for a call that creates a folder, "" for any other."""
    name = qualified(module, call.func)
    if name in ("os.makedirs", "os.mkdir"):
        return name if dotted(call.func).partition(".")[0] in module.imports else ""
    if name.rpartition(".")[0] in PATH_CLASSES and name.endswith(".mkdir"):
        return "Path.mkdir" if call.args else ""
    if isinstance(call.func, ast.Attribute) and call.func.attr == "mkdir":
        if any(k.arg == "parents" for k in call.keywords) or is_path(module, call.func.value):
            return "path.mkdir"
    return ""


def folder_of(call: ast.Call, spelling: str) -> ast.expr | None:
    """The expression of the folder that a call creates."""
    if spelling == "path.mkdir":
        return call.func.value if isinstance(call.func, ast.Attribute) else None
    if call.args:
        return call.args[0]
    return next((k.value for k in call.keywords if k.arg in ("name", "path")), None)


def gives_exist_ok(module: SourceModule, call: ast.Call, spelling: str) -> bool:
    position = {"os.makedirs": 3, "path.mkdir": 3, "Path.mkdir": 4, "os.mkdir": 99}[spelling]
    if any(isinstance(a, ast.Starred) for a in call.args):
        return True
    return len(call.args) >= position or "exist_ok" in keywords_given(module, call)
