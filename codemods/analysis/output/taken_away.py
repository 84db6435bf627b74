"""Files that every rank takes away: does it matter who is first?"""

from __future__ import annotations

import ast

from codemods.analysis.handlers import takes, tries_over
from codemods.analysis.names import dotted, last
from codemods.analysis.output.effect_kinds import REMOVALS, Effect
from codemods.files.source import SourceModule, walk

_MISSING = frozenset({"FileNotFoundError", "OSError", "IOError", "EnvironmentError", "Exception"})


def may_be_gone(module: SourceModule, effect: Effect) -> bool:
    """True where the effect takes a file away, and the code puts up with it that another rank was there first."""
    if effect.path != module.path or effect.called not in REMOVALS:
        return False
    calls = [c for c in module.calls_named(*sorted(REMOVALS)) if c.lineno == effect.line]
    return bool(calls) and all(_puts_up_with_it(module, c) and not _is_made_again(module, c) for c in calls)


def _is_made_again(module: SourceModule, call: ast.Call) -> bool:
    """True for a folder that is made anew: who comes late takes away what the first one has put there."""
    if last(dotted(call.func)) in ("remove", "unlink") or not call.args:
        return False
    path = module.text_of(call.args[0])
    made = (c for c in module.calls_named("makedirs", "mkdir", "copytree") if module.function_of(c) is module.function_of(call))
    return any(path in module.text_of(c) for c in made)


def _puts_up_with_it(module: SourceModule, call: ast.Call) -> bool:
    if any(k.arg == "missing_ok" and isinstance(k.value, ast.Constant) and k.value.value is True for k in call.keywords):
        return True
    for up in module.ancestors(call):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
        if isinstance(up, (ast.With, ast.AsyncWith)):
            entered = [i.context_expr for i in up.items if isinstance(i.context_expr, ast.Call)]
            if any(last(dotted(c.func)) == "suppress" and any(last(dotted(a)) in _MISSING for a in c.args) for c in entered):
                return True
    return any(_goes_on(attempt, call) for attempt in tries_over(module, call))


def _goes_on(attempt: ast.Try | ast.TryStar, call: ast.Call) -> bool:
    """True where a missing file is caught and no handler raises; of a folder, an error that is reported is none put up with."""
    silent = all(isinstance(s, (ast.Pass, ast.Continue)) for h in attempt.handlers for s in h.body)
    raised = any(isinstance(n, ast.Raise) for h in attempt.handlers for n in walk(h))
    may_be_told = last(dotted(call.func)) in ("remove", "unlink")
    return not raised and (silent or may_be_told) and any(takes(h, _MISSING) for h in attempt.handlers)
