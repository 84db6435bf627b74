"""The programs that Hydra starts with settings of the project: `@hydra.main(config_path="../conf", config_name="train.yaml")`."""

from __future__ import annotations

import ast
from posixpath import dirname, join, normpath

from codemods.analysis.bindings import bindings_of
from codemods.analysis.names import dotted, last, qualified
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project

_FIND_THE_ROOT = frozenset({"setup_root", "find_root"})  # of rootutils and pyrootutils


@record
class HydraProgram:
    """path: the file. folder: of its settings; primary: the file there, without its end."""

    path: str
    folder: str
    primary: str


def hydra_program(project: Project, path: str) -> HydraProgram | None:
    """The program of a file that Hydra starts with settings of the project, each named by a plain text."""
    if b"hydra" not in (project.read(path) or b""):
        return None
    return project.keep(("hydra program", path), lambda: _find_program(project, path))


def _find_program(project: Project, path: str) -> HydraProgram | None:
    module = project.module(path)
    calls = [c for c in module.nodes(ast.Call) if _is_main(module, c)] if module is not None else []
    if module is None or len(calls) != 1:
        return None
    given = _arguments(module, calls[0])
    name = plain_name(_text(given.get("config_name")))
    folders = _folders(project, module, given.get("config_path"))
    found = [HydraProgram(path, folder, name) for folder in folders if name and settings_file(project, folder, name)]
    return found[0] if len(found) == 1 else None


def started_by_hydra(module: SourceModule) -> FunctionNode | None:
    """The function that `@hydra.main(…)` decorates, where there is one of them."""
    found = [f for f in module.functions if any(isinstance(d, ast.Call) and _is_main(module, d) for d in f.decorator_list)]
    return found[0] if len(found) == 1 else None


def _arguments(module: SourceModule, call: ast.Call) -> dict[str, ast.expr]:
    """With those of `**PARAMS`, which the file writes as a dict."""
    out = dict(zip(("config_path", "config_name"), call.args, strict=False))
    for keyword in call.keywords:
        if keyword.arg is not None:
            out[keyword.arg] = keyword.value
        elif isinstance(held := _bound_to(module, keyword.value), ast.Dict):
            out |= {_text(key): value for key, value in zip(held.keys, held.values, strict=True) if key is not None}
    return out


def _bound_to(module: SourceModule, node: ast.expr) -> ast.expr:
    """What a name is bound to, where it is once; else the node itself."""
    bound = bindings_of(module, node) if isinstance(node, ast.Name) else []
    return bound[0].value if len(bound) == 1 and bound[0].value is not None and not bound[0].part else node


def _folders(project: Project, module: SourceModule, where: ast.expr | None) -> list[str]:
    """The folder of the settings; of `root / "configs"`, whose root is looked for from the file upwards, each that may be it."""
    home = dirname(module.path)
    if text := _text(where):
        return [normpath(join(home, text))] if ":" not in text else []
    if isinstance(where, ast.Call) and dotted(where.func) in ("str", "os.fspath") and len(where.args) == 1:
        where = where.args[0]
    if not isinstance(where, ast.BinOp) or not isinstance(where.op, ast.Div) or not (text := _text(where.right)):
        return []
    root = _bound_to(module, where.left)
    if not isinstance(root, ast.Call) or last(dotted(root.func)) not in _FIND_THE_ROOT:
        return []
    parts = home.split("/") if home else []
    return [normpath(join("/".join(parts[:count]), text)) for count in range(len(parts) + 1)]


def _is_main(module: SourceModule, call: ast.Call) -> bool:
    return qualified(module, call.func) in ("hydra.main", "hydra.main.main")


def _text(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def plain_name(name: str) -> str:
    return name.removesuffix(".yaml").removesuffix(".yml")


def settings_file(project: Project, folder: str, name: str) -> str:
    """The file of a choice, "" where there is none: it is left to be written, or comes with a plug-in."""
    found = (f"{folder}/{plain_name(name)}{end}" for end in (".yaml", ".yml"))
    return next((p for p in map(normpath, found) if p in project.files), "")
