"""`os.rename(path, name)` where `name = path`: a rename that was switched off takes nothing away."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.names import dotted, qualified
from codemods.files.source import SourceModule

_RENAMES = frozenset({"os.rename", "os.renames", "os.replace", "shutil.move"})


def renames_to_itself(module: SourceModule, call: ast.Call) -> bool:
    if len(call.args) != 2 or qualified(module, call.func) not in _RENAMES:
        return False
    old, new = call.args
    if isinstance(old, ast.Name) and isinstance(new, ast.Name) and old.id != new.id:
        bound = bindings_of(module, new)
        return len(bound) == 1 and isinstance(bound[0].value, ast.Name) and not bound[0].part and bound[0].value.id == old.id
    return bool(dotted(old)) and dotted(old) == dotted(new)
