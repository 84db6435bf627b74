"""Does every rank send on what it has written? `upload_from_filename(path)` below `json.dump(…)`: the file has to be there."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.analysis.files.file_paths import forms
from codemods.analysis.names import end_of
from codemods.analysis.ranks.rank_guards import ranks_at
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_SENDS = lazy(r"(?i)upload|log_artifact|push|publish|put_(?:object|file)|send_file|add_file|fput")


def sent_on_by_all(project: Project, module: SourceModule, last: ast.stmt, paths: Iterable[ast.expr]) -> int | None:
    """The line behind `last`, in its function, in which every rank sends one of the paths on."""
    wanted = frozenset(f for path in paths for f in forms(module, path))
    function = module.function_of(last)
    for call in module.nodes(ast.Call) if wanted else ():
        behind = call.lineno > (last.end_lineno or 0) and module.function_of(call) is function
        if not behind or not _SENDS.search(end_of(call.func)):
            continue
        given = [*call.args, *(k.value for k in call.keywords)]
        if any(wanted & forms(module, g) for g in given) and not ranks_at(module, call, project=project).some:
            return call.lineno
    return None
