"""Does somebody read the number that a function returns as the status of the program?

`return -1` ends the run where it reaches `sys.exit(main())`: the launcher stops the others. Where every call throws the number
away, it is an exit like any other, and the process ends with status 0.
"""

from __future__ import annotations

import ast

from codemods.analysis.ranks.uses import calls_of
from codemods.files.source import SourceModule
from codemods.store.project import Project


def is_status(project: Project, module: SourceModule, returning: ast.Return) -> bool:
    """True for a number given back to a caller that is not seen to throw it away."""
    value = returning.value.operand if isinstance(returning.value, ast.UnaryOp) else returning.value
    if not isinstance(value, ast.Constant) or not isinstance(value.value, int) or isinstance(value.value, bool):
        return False
    function = module.function_of(returning)
    calls = calls_of(project, module, function) if function is not None else None
    return not calls or not all(isinstance(s.module.parent(s.call), ast.Expr) for s in calls)
