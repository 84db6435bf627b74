"""Programs that lie where they cannot run: a copy of a script whose settings are found from another folder alone."""

from __future__ import annotations

import ast
from posixpath import dirname, join, normpath

from codemods.analysis.names import qualified
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project


def has_lost_settings(project: Project, module: SourceModule, function: FunctionNode) -> bool:
    """True for a program of Hydra's whose `config_path` leads to no folder from its own file, while the folder lies elsewhere.

    Hydra ends with an error before the first line of the function. Settings that are nowhere may be left to be written.
    """
    if not module.holds(b"config_path"):
        return False
    return any(_is_lost(project, module.path, path) for d in function.decorator_list if (path := _settings_of(module, d)))


def _settings_of(module: SourceModule, decorator: ast.expr) -> str:
    """The folder that `@hydra.main(config_path=…)` names, "" where it is none beside the file."""
    if not isinstance(decorator, ast.Call) or qualified(module, decorator.func) not in ("hydra.main", "hydra.main.main"):
        return ""
    given = next((k.value for k in decorator.keywords if k.arg == "config_path"), decorator.args[0] if decorator.args else None)
    path = given.value if isinstance(given, ast.Constant) and isinstance(given.value, str) else ""
    return "" if path.startswith("/") or ":" in path or "$" in path else path


def _is_lost(project: Project, file: str, path: str) -> bool:
    folder = normpath(join(dirname(file), path))
    plain = normpath(path)
    while plain.startswith("../"):
        plain = plain[3:]
    if folder.startswith("..") or plain in (".", "..") or any(p.startswith(f"{folder}/") for p in project.files):
        return False
    return any(f"/{plain}/" in f"/{p}" for p in project.files)
