"""Whether a load may read what a save writes: not one of another name, nor one of a program that reads back its own files."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_in
from codemods.analysis.names import dotted, last
from codemods.analysis.wrapped.holders import wrapper_in
from codemods.analysis.wrapped.saving_calls import entries, of_state, saving_calls
from codemods.analysis.wrapped.wrapper_tests import is_tested
from codemods.files.source import SourceModule
from codemods.store.project import Project

_NAMES_DEEP = 2
_OPEN = ("", "")


def reads_back_bare_files(project: Project, module: SourceModule, key: str) -> bool:
    """True for a file that saves bare models under the key, and no wrapper: its loads read what it saves itself."""
    found = False
    for call, written in saving_calls(project, module, torch_only=True):
        for own, value in entries(module, written):
            holder = of_state(_followed(module, value))
            if own != key or holder is None:
                continue
            if wrapper_in(project, module, holder) is not None or is_tested(module, call):
                return False
            found = found or (dotted(holder) != "" and not _is_other_state(holder))
    return found


def _followed(module: SourceModule, value: ast.expr) -> ast.expr:
    """`net.state_dict()` for a name that is bound to it once."""
    bound = bindings_in(module, module.function_of(value), value.id) if isinstance(value, ast.Name) else []
    only = bound[0].value if len(bound) == 1 and not bound[0].part else None
    return only if only is not None else value


def _is_other_state(holder: ast.expr) -> bool:
    return any(word in dotted(holder).lower() for word in ("optim", "opt", "sched", "scaler", "ema"))


def have_other_names(saving: SourceModule, save: ast.Call, loading: SourceModule, state: ast.expr) -> bool:
    """True where the names of both files are seen, and cannot be the same."""
    load = _load_in(loading, state, 0)
    if load is None or not load.args or last(dotted(save.func)) != "save" or len(save.args) < 2:
        return False
    (start, end), (other_start, other_end) = _ends(saving, save.args[1], 0), _ends(loading, _by_default(loading, load.args[0]), 0)
    begins = start.startswith(other_start) or other_start.startswith(start)
    return not begins or not (end.endswith(other_end) or other_end.endswith(end))


def _by_default(module: SourceModule, path: ast.expr) -> ast.expr:
    """The name that the program reads where its flag is not given: that of `args.weights`, from `add_argument`."""
    if not isinstance(path, ast.Attribute):
        return path
    given = [c for c in module.calls_named("add_argument") if c.args and _flag(c.args[0]) == path.attr]
    defaults = [k.value for c in given for k in c.keywords if k.arg == "default"]
    return defaults[0] if len(defaults) == 1 and isinstance(defaults[0], ast.Constant) and defaults[0].value else path


def _flag(node: ast.expr) -> str:
    return node.value.lstrip("-").replace("-", "_") if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _load_in(module: SourceModule, state: ast.expr, depth: int) -> ast.Call | None:
    """The `load` from which a state comes, over keys and names that are bound once."""
    if isinstance(state, ast.Subscript):
        return _load_in(module, state.value, depth)
    if isinstance(state, ast.Name) and depth < _NAMES_DEEP:
        followed = _followed(module, state)
        return _load_in(module, followed, depth + 1) if followed is not state else None
    return state if isinstance(state, ast.Call) and last(dotted(state.func)) == "load" else None


def _ends(module: SourceModule, path: ast.expr, depth: int) -> tuple[str, str]:
    """How the name of a file begins and how it ends, as far as the source says: ("model_", ".pt") of f"{folder}/model_{n}.pt"."""
    if isinstance(path, ast.Constant) and isinstance(path.value, str):
        name = path.value.rpartition("/")[2]
        return (name, name) if name else _OPEN
    if isinstance(path, ast.Name) and depth < _NAMES_DEEP:
        followed = _followed(module, path)
        return _ends(module, followed, depth + 1) if followed is not path else _OPEN
    if isinstance(path, ast.Call) and last(dotted(path.func)) == "join" and path.args and not path.keywords:
        return _ends(module, path.args[-1], depth) if not isinstance(path.args[-1], ast.Starred) else _OPEN
    if isinstance(path, ast.BinOp) and isinstance(path.op, ast.Add):
        return "", _ends(module, path.right, depth)[1]  # the left part may be a folder, or the beginning of the name
    if not isinstance(path, ast.JoinedStr):
        return _OPEN
    return _ends_of_parts([p.value if isinstance(p, ast.Constant) else None for p in path.values])


def _ends_of_parts(parts: list[object]) -> tuple[str, str]:
    """Those of an f-string; a part that is not known may hold a `/`, so the beginning counts only behind the last one written."""
    texts = [p if isinstance(p, str) else "" for p in parts]
    cut = max((i for i, t in enumerate(texts) if "/" in t), default=None)
    start = texts[cut].rpartition("/")[2] if cut is not None else ""
    return start, texts[-1].rpartition("/")[2]
