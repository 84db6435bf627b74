"""Files that a function makes, reads back and takes away again: each process needs one of its own, not rank 0 one for all."""

from __future__ import annotations

import ast

from codemods.analysis.files.file_calls import Act, file_call
from codemods.analysis.files.file_paths import forms
from codemods.analysis.names import dotted
from codemods.files.source import SourceModule, line_of, walk_scope
from codemods.runtime.lazy_pattern import lazy

OF_ONE_PROCESS = (
    "it is a scratch file, which every rank writes, reads back and removes: give each process one of its own "
    "(`tempfile.NamedTemporaryFile`, or the rank in the name); what rank 0 writes may be other data than a rank needs"
)
_MAKES = lazy(r"(?:[wW]rit|[sS]av|[dD]ump|[eE]xport|[rR]ender)|(?<![a-z])to_|To[A-Z]")  # of packages that nobody here knows
_READS = lazy(r"(?<!down)(?<!Down)[lL]oad|[rR]ead|[oO]pen|[pP]arse|from_|From[A-Z]")


def is_scratch(module: SourceModule, node: ast.AST, path: ast.expr) -> bool:
    """True where the function round `node` has the path made, hands it on to be read, and removes it, in this order."""
    function, wanted = module.function_of(node), forms(module, path)
    if function is None or not wanted:
        return False
    made = used = False
    for call in sorted((n for n in walk_scope(function) if isinstance(n, ast.Call)), key=line_of):
        found = file_call(module, call)
        if not _is_given(module, call, wanted):
            continue
        act = found.act if found is not None and wanted & forms(module, found.path) else None
        name = getattr(call.func, "attr", "") or dotted(call.func)
        if act is Act.REMOVES and made and used:
            return True
        if act in (Act.READS, Act.LOADS) or (act is None and _READS.search(name)):
            used = made
        elif act in (Act.WRITES, Act.FILLS) or (act is None and _MAKES.search(name)):
            made = True
    return False


def _is_given(module: SourceModule, call: ast.Call, wanted: frozenset[str]) -> bool:
    given = [*call.args, *(k.value for k in call.keywords), *([call.func.value] if isinstance(call.func, ast.Attribute) else [])]
    return any(wanted & forms(module, a) for a in given if not isinstance(a, ast.Starred))
