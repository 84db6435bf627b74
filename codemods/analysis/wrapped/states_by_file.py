"""Files that the project saves the state of an optimizer into, alone, by the name that is written for them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from posixpath import basename

from codemods.analysis.bound_values import assigned
from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import dotted, last, qualified
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_OPTIMIZER = lazy(r"optim|\bopt(?:_|\b)|_opt\b|adam", 0)


def saved_by_file(project: Project) -> dict[str, tuple[SourceModule, ast.expr]]:
    """`optimizer.pt`, by `torch.save(optimizer.state_dict(), os.path.join(folder, "optimizer.pt"))`: where that stands."""
    return project.keep("files of one optimizer", lambda: dict(_all_saved(project)))


def is_optimizer(receiver: str) -> bool:
    """True for the name of an optimizer: nobody hands out the state of one with his weights, so it is of this training."""
    return _OPTIMIZER.search(last(receiver).lower()) is not None


def written_name(module: SourceModule, path: ast.expr, *, depth: int = 1) -> str:
    """The name of the file that a path ends in, where it is written out as a whole; "" where it is not."""
    if isinstance(path, ast.Constant):
        return basename(path.value) if isinstance(path.value, str) else ""
    if isinstance(path, ast.Call) and last(dotted(path.func)) in ("join", "joinpath", "str", "Path") and path.args:
        return written_name(module, path.args[-1], depth=depth)
    if isinstance(path, ast.BinOp) and isinstance(path.op, ast.Div):
        return written_name(module, path.right, depth=depth)
    end = path.values[-1] if isinstance(path, ast.JoinedStr) and path.values else None
    if isinstance(path, ast.BinOp) and isinstance(path.op, ast.Add):
        end = path.right
    if isinstance(end, ast.Constant) and isinstance(end.value, str):
        return basename(end.value) if "/" in end.value else ""  # else the end of a name
    if isinstance(path, ast.Name) and depth > 0:
        names = {written_name(module, value, depth=depth - 1) for value in assigned(module, path, path.id)}
        return names.pop() if len(names) == 1 else ""
    return ""


def _all_saved(project: Project) -> Iterator[tuple[str, tuple[SourceModule, ast.expr]]]:
    for path in sorted(p for p in project.files_containing(b".save(") if not is_test_file(p)):
        data = project.read(path) or b""
        if b".state_dict()" not in data or (module := project.module(path)) is None:
            continue
        for call in module.calls_named("save"):
            if qualified(module, call.func) != "torch.save" or len(call.args) < 2:
                continue
            state, name = call.args[0], written_name(module, call.args[1])
            if name and isinstance(state, ast.Call) and isinstance(state.func, ast.Attribute) and not state.args:
                if state.func.attr == "state_dict" and is_optimizer(dotted(state.func.value)):
                    yield name, (module, state)
