"""What a call does to a path that others share: it writes it anew, moves or removes it."""

from __future__ import annotations

import ast
import re

from codemods.analysis.bound_values import assigned
from codemods.analysis.files.file_calls import Act, FileCall, file_call
from codemods.analysis.files.rotating_logs import rotates
from codemods.analysis.files.written_saves import is_in_memory
from codemods.analysis.model.signatures import defaults
from codemods.analysis.names import dotted, is_parameter, last, qualified
from codemods.files.source import SourceModule

_EMPTYING = frozenset({"w", "w+", "wt", "w+t", "wt+"})
MOVES = frozenset({"os.rename", "os.renames", "os.replace", "shutil.move"})


def changed(module: SourceModule, call: ast.Call) -> FileCall | None:
    """The change that a call makes; None for any other, and for lines that are added: those stay with their rank."""
    found = file_call(module, call)
    if found is None or found.act not in (Act.WRITES, Act.FILLS, Act.REMOVES) or is_in_memory(module, found.path):
        return None
    name = qualified(module, call.func)
    if name == "lmdb.open":
        return None  # who writes there waits for the others: it is those who read too early that lose
    if is_log(module, call) and not _empties(module, call) and not rotates(module, call):
        return None  # lines that are added stay those of their rank
    if name in MOVES and call.args:
        return FileCall(call, call.args[0], found.act)  # the second rank no longer finds what it is to move
    if found.act is Act.FILLS and name != "shutil.copytree":
        return None
    adds = (last(name) or last(dotted(call.func))) in ("open", "to_csv", "to_json")
    mode = _mode(call) if adds else ""
    return None if "a" in mode or "+" in mode.replace("w+", "") else found


def is_log(module: SourceModule, call: ast.Call) -> bool:
    return qualified(module, call.func).startswith("logging.")


def _empties(module: SourceModule, call: ast.Call) -> bool:
    """`FileHandler(path, "w")`, `basicConfig(filename=path, filemode="w")`: each rank empties the log first.

    So it does in a run that does not resume, `"a" if resume else "w"`.
    """
    modes = modes_of_log(call)
    modes += [v for m in modes if isinstance(m, ast.Name) for v in (*assigned(module, m, m.id), *_left(module, m))]
    arms = [arm for m in modes for arm in ((m.body, m.orelse) if isinstance(m, ast.IfExp) else (m,))]
    return any(isinstance(m, ast.Constant) and m.value in _EMPTYING for m in arms)


def modes_of_log(call: ast.Call) -> list[ast.expr]:
    return [*call.args[1:2], *(k.value for k in call.keywords if k.arg in ("mode", "filemode"))]


def _left(module: SourceModule, name: ast.Name) -> list[ast.expr]:
    """What a parameter is where a caller leaves it: `def make_log(path, mode="w")`."""
    function = module.function_of(name)
    left = defaults(function).get(name.id) if function is not None and is_parameter(module, name.id, name) else None
    return [left] if left is not None else []


def _mode(call: ast.Call) -> str:
    given = [*call.args[:2], *(k.value for k in call.keywords if k.arg == "mode")]
    texts = [g.value for g in given if isinstance(g, ast.Constant) and isinstance(g.value, str)]
    return next((t for t in reversed(texts) if re.fullmatch(r"[rwaxbtU+]{1,4}", t)), "")
