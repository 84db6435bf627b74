"""Does the program set the level of its loggers by the rank? Then a plain `logger.info` is seen once already."""

from __future__ import annotations

import ast

from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import dotted, last
from codemods.analysis.output.effects import names_rank
from codemods.analysis.paths import origin_text
from codemods.analysis.ranks.rank_guards import ranks_at
from codemods.late_pattern import late
from codemods.project import Project
from codemods.source import SourceModule

_MAIN = late(r"main_?proc|is_?(?:main|master|primary)|master|global_zero|process_zero")


def has_levels_by_rank(project: Project) -> bool:
    """True for `basicConfig(level=INFO if rank == 0 else WARNING)`, and for `setLevel` under a test of the rank."""
    return project.keep("levels by rank", lambda: _find(project))


def _find(project: Project) -> bool:
    paths = {p for word in (b"basicConfig(", b"setLevel(") for p in project.files_containing(word)}
    for path in sorted(paths):
        if is_test_file(path) or (module := project.module(path)) is None:
            continue
        if any(_is_by_rank(project, module, call) for call in module.calls_named("basicConfig", "setLevel")):
            return True
    return False


def _is_by_rank(project: Project, module: SourceModule, call: ast.Call) -> bool:
    if last(dotted(call.func)) == "setLevel" or getattr(call.func, "attr", "") == "setLevel":
        if ranks_at(module, call, project=project).some:
            return True
        levels = call.args[:1]
    else:
        levels = [k.value for k in call.keywords if k.arg == "level"]
    texts = [origin_text(module, level) for level in levels]
    return any(names_rank(t) or _MAIN.search(t) for t in texts)
